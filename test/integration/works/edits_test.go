package works_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
)

// administrator binds the ServiceAccount of a team to everything, which neither the team nor its author may do.
const administrator = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding",` +
	`"metadata":{"name":"team"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},` +
	`"subjects":[{"kind":"ServiceAccount","namespace":"team-a","name":"team-a"}]}`

// executed is a work that the agent applies with the rights of the ServiceAccount of a team; "" is the agent itself.
func (w *world) executed(name, team string) *workv1.ManifestWork {
	work := w.filled(name, goodManifest)
	if team != "" {
		work.Spec.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
			Type:           workv1.ExecutorSubjectTypeServiceAccount,
			ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: team, Name: team},
		}}
	}
	return work
}

// of is the rule to have works applied as the ServiceAccount of a team.
func of(team string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{workv1.GroupName}, Resources: []string{"manifestworks"}, Verbs: []string{"execute-as"},
		ResourceNames: []string{"system:serviceaccount:" + team + ":" + team},
	}
}

// edit patches a work as JSON patch does.
func (w *world) edit(c client.Client, name, patch string) error {
	w.Helper()
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: w.cluster, Name: name}}
	return c.Patch(w.Context(), work, client.RawPatch(types.JSONPatchType, []byte(patch)))
}

// Shows: security/works-of-others
func TestAnAuthorCannotUseTheRightsOfTheWorksOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.checked()
	for name, team := range map[string]string{"infra": "", "of-a": "team-a", "of-b": "team-b"} {
		w.create(w.executed(name, team))
	}
	author := w.author(w.cluster+"-a", of("team-a"), rbacv1.PolicyRule{
		APIGroups: []string{workv1.GroupName}, Resources: []string{"manifestworks"}, Verbs: []string{"patch"},
	})
	const (
		add      = `{"op":"add","path":"/spec/workload/manifests/-","value":` + administrator + `}`
		removes  = `{"op":"replace","path":"/spec/workload/manifests","value":[` + administrator + `]}`
		executor = `{"op":"add","path":"/spec/executor","value":{"subject":{"type":"ServiceAccount",` +
			`"serviceAccount":{"namespace":"team-a","name":"team-a"}}}}`
		orphans = `{"op":"add","path":"/spec/deleteOption","value":{"propagationPolicy":"Orphan"}}`
		label   = `{"op":"add","path":"/metadata/labels","value":{"a":"b"}}`
	)
	for sentence, tc := range map[string]struct{ work, patch, policy string }{
		"adds to a work without an executor":            {"infra", add, withoutExecutor},
		"takes over a work without an executor":         {"infra", executor, withoutExecutor},
		"has what a work without an executor made stay": {"infra", orphans, withoutExecutor},
		"adds to the work of another team":              {"of-b", add, executors},
		"takes over the work of another team":           {"of-b", executor, executors},
		"empties the work of another team":              {"of-b", executor + "," + removes, executors},
		"drops its executor":                            {"of-a", `{"op":"remove","path":"/spec/executor"}`, withoutExecutor},
		"drops that of another team":                    {"of-b", `{"op":"remove","path":"/spec/executor"}`, executors + orElse + withoutExecutor},
	} {
		t.Run(sentence, func(t *testing.T) {
			w.forbidden(w.edit(author, tc.work, "["+tc.patch+"]"), tc.policy, "execute-as")
		})
	}
	require.NoError(t, w.edit(author, "of-a", "["+add+"]"), "its own work it changes; its executor has no right to this")
	for _, work := range []string{"infra", "of-b"} {
		require.NoError(t, w.edit(author, work, "["+label+"]"), "what applies nothing takes no right")
	}
	w.author(csr.ClusterUser(w.cluster, "agent"), rbacv1.PolicyRule{
		APIGroups: []string{workv1.GroupName}, Resources: []string{"manifestworks"}, Verbs: []string{"patch"},
	})
	agent := plane.As(t, csr.ClusterUser(w.cluster, "agent"), csr.ClusterGroup(w.cluster), csr.GroupManagedClusters)
	const finalizer = `[{"op":"add","path":"/metadata/finalizers","value":["cluster.open-cluster-management.io/manifest-work-cleanup"]}]`
	for _, work := range []string{"infra", "of-a", "of-b"} {
		require.NoError(t, w.edit(agent, work, finalizer), "an agent writes finalizers of all works")
	}
}
