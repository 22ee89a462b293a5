package authors_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// kubelet lets pods run: each is ready at once, except those of Jobs, which the tests play.
type kubelet struct{ client.Client }

// Reconcile implements reconcile.Reconciler.
func (k kubelet) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var pod corev1.Pod
	if err := k.Get(ctx, request.NamespacedName, &pod); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if _, job := pod.Labels[batchv1.JobNameLabel]; job || pod.Status.Phase == corev1.PodRunning {
		return ctrl.Result{}, nil
	}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	err := k.Status().Update(ctx, &pod)
	if apierrors.IsConflict(err) {
		return ctrl.Result{}, nil // A newer pod comes by an event of its own.
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

// startKubelet plays the kubelets of a cluster.
func startKubelet(t suite.T, name string, own *suite.Plane) {
	t.Helper()
	skip := true
	mgr, err := ctrl.NewManager(own.Admin(), ctrl.Options{
		Scheme: suite.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &skip},
	})
	require.NoError(t, err)
	err = ctrl.NewControllerManagedBy(mgr).Named("kubelet").For(&corev1.Pod{}).Complete(kubelet{mgr.GetClient()})
	require.NoError(t, err)
	suite.StartManager(t, "the kubelets of "+name, mgr)
}

// finish waits for a pod of a Job, and ends it with success.
func finish(t *testing.T, cluster, namespace, job string) {
	t.Helper()
	suite.Eventually(t, func() error {
		var pods corev1.PodList
		err := clusters[cluster].Client.List(t.Context(), &pods, client.InNamespace(namespace),
			client.MatchingLabels{batchv1.JobNameLabel: job})
		if err != nil {
			return err
		}
		for i := range pods.Items {
			if pod := &pods.Items[i]; pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodPending {
				pod.Status.Phase = corev1.PodSucceeded
				return clusters[cluster].Client.Status().Update(t.Context(), pod)
			}
		}
		return fmt.Errorf("there is no pod of Job %s on %s", job, cluster)
	})
}

// enable creates a ManagedClusterAddOn with a spec and annotations.
func enable(t *testing.T, addOn, cluster, spec string, annotations map[string]string) {
	t.Helper()
	text := fmt.Sprintf("apiVersion: addon.open-cluster-management.io/v1beta1\nkind: ManagedClusterAddOn\n"+
		"metadata: {name: %s, namespace: %s}\nspec: %s\n", addOn, cluster, spec)
	objects, err := sandbox.Decode([]byte(text))
	require.NoError(t, err)
	objects[0].SetAnnotations(annotations)
	require.NoError(t, plane.Client.Create(t.Context(), objects[0]))
}

// disable deletes a ManagedClusterAddOn.
func disable(t *testing.T, addOn, cluster string) {
	t.Helper()
	require.NoError(t, plane.Client.Delete(t.Context(), addOnOf(addOn, cluster)))
}

func addOnOf(addOn, cluster string) *addonv1beta1.ManagedClusterAddOn {
	return &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: addOn}}
}

// says waits until conditions of an add-on, each as "Type=Status", hold.
func says(t *testing.T, addOn, cluster string, conditions ...string) {
	t.Helper()
	suite.Eventually(t, func() error {
		found, err := plane.AddOns.GetAddOn(t.Context(), client.ObjectKey{Namespace: cluster, Name: addOn})
		if err != nil {
			return err
		}
		for _, want := range conditions {
			kind, status, _ := strings.Cut(want, "=")
			if !meta.IsStatusConditionPresentAndEqual(found.Status.Conditions, kind, metav1.ConditionStatus(status)) {
				return fmt.Errorf("%s on %s: not %s: %+v", addOn, cluster, want, found.Status.Conditions)
			}
		}
		return nil
	})
}

// get waits for an object on a cluster and returns it.
func get[O client.Object](t *testing.T, cluster, namespace, name string, object O) O {
	t.Helper()
	suite.Eventually(t, func() error {
		return clusters[cluster].Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object)
	})
	return object
}

// goes waits until objects are gone.
func goes(t *testing.T, from *suite.Plane, objects ...client.Object) {
	t.Helper()
	suite.Eventually(t, func() error {
		var left []error
		for _, object := range objects {
			if err := from.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
				left = append(left, fmt.Errorf("%T %s is left on %s (%w), finalizers %v", object, object.GetName(), from.Name, err,
					object.GetFinalizers()))
			}
		}
		return errors.Join(left...)
	})
}

// at is the metadata of an object.
func at(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}
