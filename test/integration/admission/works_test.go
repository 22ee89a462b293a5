package admission_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
)

// TestAnExecutorTakesARightAlsoWithoutTheWebhook writes works where nobody serves a webhook.
func TestAnExecutorTakesARightAlsoWithoutTheWebhook(t *testing.T) {
	t.Parallel()
	const namespace = "executors"
	require.NoError(t, plane.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	work := func(name, executor string) *workv1.ManifestWork {
		w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		w.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{
			Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"x"}}`),
		}}}
		if executor != "" {
			w.Spec.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
				Type:           workv1.ExecutorSubjectTypeServiceAccount,
				ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: "apps", Name: executor},
			}}
		}
		return w
	}
	writes := rbacv1.PolicyRule{
		APIGroups: []string{workv1.GroupName}, Resources: []string{"manifestworks"}, Verbs: []string{"get", "create", "update"},
	}
	executes := rbacv1.PolicyRule{
		APIGroups: []string{workv1.GroupName}, Resources: []string{"manifestworks"}, Verbs: []string{"execute-as"},
		ResourceNames: []string{"system:serviceaccount:apps:deployer"},
	}
	plain, deployer := user(t, "work-plain", writes), user(t, "work-deployer", writes, executes)
	own := plane.Account(t, names.NamespaceHub, names.ServiceAccountManager)

	for sentence, tc := range map[string]struct {
		by       client.Client
		executor string
		want     bool
	}{
		"who has no right chooses no executor":      {plain, "deployer", false},
		"who has it for one chooses that":           {deployer, "deployer", true},
		"who has it for one chooses no other":       {deployer, "admin", false},
		"who chooses none needs none":               {plain, "", true},
		"the hub manager is no exception":           {own, "deployer", false},
		"the works of add-ons, which have none, go": {own, "", true},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := tc.by.Create(t.Context(), work("new", tc.executor), client.DryRunAll)
			if tc.want {
				require.NoError(t, err)
				return
			}
			forbidden(t, err, "manifestwork-executors.spokelet.io", "applied as system:serviceaccount:apps:"+tc.executor)
		})
	}
	kept := work("kept", "deployer")
	require.NoError(t, deployer.Create(t.Context(), kept))
	kept.Spec.Executor.Subject.ServiceAccount.Name = "admin"
	forbidden(t, plain.Update(t.Context(), kept), "manifestwork-executors.spokelet.io")
	forbidden(t, deployer.Update(t.Context(), kept), "manifestwork-executors.spokelet.io")
}
