package install

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
)

// TestAPageThatIsAboutToGoInstallsNothing: a finalizer of another client keeps a page with a cluster that is not
// selected any more. The removal did not count it and the installation did, so that the add-on went and came again.
func TestAPageThatIsAboutToGoInstallsNothing(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, install := range []func(*runtime.Scheme) error{
		clusterv1.Install, clusterv1beta1.Install, clusterv1beta2.Install, addonv1alpha1.Install, corev1.AddToScheme,
	} {
		require.NoError(t, install(scheme))
	}
	cma := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello", UID: "cma"}}
	cma.Spec.InstallStrategy.Type = addonv1alpha1.AddonInstallStrategyPlacements
	cma.Spec.InstallStrategy.Placements = []addonv1alpha1.PlacementStrategy{{
		PlacementRef: addonv1alpha1.PlacementRef{Namespace: "ns", Name: "p"},
	}}
	stays, goes := pageOf("p", 1, "c1"), pageOf("p", 2, "c2")
	for _, page := range []*clusterv1beta1.PlacementDecision{stays, goes} {
		page.Namespace, page.Labels = "ns", map[string]string{names.LabelPlacement: "p"}
	}
	goes.Finalizers, goes.DeletionTimestamp = []string{"example.com/backup"}, new(metav1.NewTime(noon()))
	placement := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p", Generation: 2}}
	placement.Status.NumberOfSelectedClusters = 1
	placement.Status.Conditions = []metav1.Condition{fleet.Mark(2, []*clusterv1beta1.PlacementDecision{stays})}
	objects := []client.Object{cma, stays, goes, placement}
	for _, name := range []string{"c1", "c2"} {
		managed := clusterThat(metav1.ConditionTrue, noon().Add(-time.Hour))
		managed.Name, managed.Spec.HubAcceptsClient = name, true
		addon := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
			Namespace: name, Name: "hello", Labels: map[string]string{names.LabelInstalledBy: names.InstalledByPlacement},
			CreationTimestamp: metav1.NewTime(noon().Add(-time.Hour)),
		}}
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{names.LabelClusterName: name}}}
		objects = append(objects, managed, addon, namespace)
	}
	made, removed := 0, 0
	var r *Reconciler
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrlreconcile.Request]())
	defer q.ShutDown()
	clock := &ticking{at: noon().Add(time.Hour)}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&clusterv1beta1.PlacementDecision{}, addonapi.IndexCluster, addonapi.SelectedClusters).
		WithIndex(&addonv1alpha1.ManagedClusterAddOn{}, addonapi.IndexName, func(o client.Object) []string { return []string{o.GetName()} }).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
				made++
				o.SetCreationTimestamp(metav1.NewTime(clock.Now()))
				err := c.Create(ctx, o, options...)
				r.ofAddOn().CreateFunc(ctx, event.CreateEvent{Object: o}, q)
				return err
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
				removed++
				err := c.Delete(ctx, o, options...)
				r.ofAddOn().DeleteFunc(ctx, event.DeleteEvent{Object: o}, q)
				return err
			},
		}).Build()
	r = &Reconciler{
		Client: c, AddOns: addonapi.Client{Client: c}, Clock: clock, Workers: 1,
		Placements: &fleet.Placements{Client: c, Clock: clock, Own: true},
	}
	q.Add(ctrlreconcile.Request{NamespacedName: types.NamespacedName{Name: "hello"}}) // the event of the page
	for n := 0; q.Len() > 0 && n < 100; n++ {
		request, _ := q.Get()
		q.Done(request)
		result, err := r.Reconcile(t.Context(), request)
		require.NoError(t, err)
		clock.step(time.Second)
		if result.RequeueAfter > 0 {
			clock.step(result.RequeueAfter)
			q.Add(request)
		}
	}
	t.Log("an hour and", clock.Now().Sub(noon().Add(time.Hour)))
	assert.Equal(t, []int{0, 1}, []int{made, removed}, "made, removed")
}
