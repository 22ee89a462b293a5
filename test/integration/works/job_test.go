package works_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/spokelet/spokelet/agent/work"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// hubUser is the agent of the cluster on the hub, with the rights that a hub gives it (docs/reference/work.md, "Access
// to the hub").
func (w *world) hubUser() *rest.Config {
	w.Helper()
	group := "system:open-cluster-management:" + w.cluster
	api := []string{"work.open-cluster-management.io"}
	w.create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: w.cluster, Name: "work"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: api, Resources: []string{"manifestworks"}, Verbs: []string{"get", "list", "watch", "update", "patch"}},
		{APIGroups: api, Resources: []string{"manifestworks/status"}, Verbs: []string{"patch", "update"}},
	}})
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.cluster, Name: "work"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "work"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: group}},
	})
	user, err := plane.User(group+":agent", group)
	require.NoError(w, err)
	return user
}

// startAgent runs a work agent of the cluster until the test ends.
func (w *world) startAgent() {
	w.Helper()
	account := plane.AccountConfig(w, names.NamespaceAgent, names.ServiceAccountAgent)
	mgr, err := ctrl.NewManager(plane.Admin(), ctrl.Options{
		Scheme: suite.Scheme(), Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	})
	require.NoError(w, err)
	side := func(config *rest.Config, o client.Object, by cache.ByObject) cluster.Cluster {
		c, err := cluster.New(config, func(options *cluster.Options) {
			by.Transform = work.Transform
			options.Scheme, options.Cache.ByObject = suite.Scheme(), map[client.Object]cache.ByObject{o: by}
		})
		require.NoError(w, err)
		require.NoError(w, mgr.Add(c))
		return c
	}
	require.NoError(w, (&work.Reconciler{
		Cluster: w.cluster, HubHash: work.HubHash("https://hub.example/" + w.cluster),
		Hub: side(w.hubUser(), &workv1.ManifestWork{}, cache.ByObject{
			Namespaces: map[string]cache.Config{w.cluster: {}},
		}),
		Spoke: side(account, &workv1.AppliedManifestWork{}, cache.ByObject{}),
	}).SetupWithManager(mgr))
	suite.StartManager(w, "the work agent", mgr)
}

// Shows: work/ttl-job
func TestAWorkGoesWithItsJobWhenThatIsDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startAgent()
	one := w.work("w", ptr.To[int64](1), func(one *workv1.ManifestWork) {
		one.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: fmt.Appendf(nil,
			`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"job","namespace":%q},"spec":{"template":{"spec":{
				"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`, w.cluster)}}}
		one.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
			ResourceIdentifier: workv1.ResourceIdentifier{
				Group: "batch", Resource: "jobs", Namespace: w.cluster, Name: "job",
			},
			ConditionRules: []workv1.ConditionRule{{
				Type: workv1.WellKnownConditionsType, Condition: workv1.ManifestComplete,
			}},
		}}
	})
	// There is no kubelet here that would run the pod.
	require.Eventually(t, func() bool {
		var pods corev1.PodList
		err := plane.Client.List(t.Context(), &pods, client.InNamespace(w.cluster), client.MatchingLabels{batchv1.JobNameLabel: "job"})
		if err != nil || len(pods.Items) == 0 {
			return false
		}
		pods.Items[0].Status.Phase = corev1.PodSucceeded
		return plane.Client.Status().Update(t.Context(), &pods.Items[0]) == nil
	}, suite.Timeout, suite.Tick, "the Job should have a pod")
	w.gone(one)
	err := plane.Client.Get(t.Context(), client.ObjectKey{Namespace: w.cluster, Name: "job"}, &batchv1.Job{})
	require.True(t, apierrors.IsNotFound(err), "the Job should be gone with its work: %v", err)
}
