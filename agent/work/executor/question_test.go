package executor

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/manifest"
)

var deployer = ServiceAccount{Namespace: "ns", Name: "deployer"}

// configMap is the question about a ConfigMap in the namespace app.
func configMap(name string, verbs Verbs) Question {
	return Question{
		Object:  manifest.ID{Resource: "configmaps", Namespace: "app", Name: name},
		Version: "v1", Desired: manifest.Digest{1}, Verbs: verbs,
	}
}

// roleBinding is the question about a RoleBinding in the namespace app.
func roleBinding() Question {
	q := configMap("x", VerbsOwn)
	q.Object.Group, q.Object.Resource = "rbac.authorization.k8s.io", "rolebindings"
	return q
}

// manifestOf decodes a manifest.
func manifestOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	require.NoError(t, json.Unmarshal([]byte(text), &object.Object))
	return object
}

func TestTheExecutorOfAWork(t *testing.T) {
	account := &workv1.ManifestWorkSubjectServiceAccount{Namespace: "ns", Name: "deployer"}
	for name, c := range map[string]struct {
		subject workv1.ManifestWorkExecutorSubject
		wrong   string
	}{
		"a ServiceAccount":            {subject: workv1.ManifestWorkExecutorSubject{Type: "ServiceAccount", ServiceAccount: account}},
		"another type":                {workv1.ManifestWorkExecutorSubject{Type: "User"}, "only support ServiceAccount type for the executor"},
		"a ServiceAccount left blank": {workv1.ManifestWorkExecutorSubject{Type: "ServiceAccount"}, "the executor service account is nil"},
	} {
		t.Run(name, func(t *testing.T) {
			who, err := Of(&workv1.ManifestWorkExecutor{Subject: c.subject})
			if c.wrong != "" {
				require.EqualError(t, err, c.wrong)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, "system:serviceaccount:ns:deployer", who.String())
			assert.Equal(t, []string{"system:serviceaccounts", "system:authenticated", "system:serviceaccounts:ns"}, who.groups())
		})
	}
}

func TestVerbs(t *testing.T) {
	assert.Equal(t, []string{"get"}, VerbsRead.list())
	assert.Equal(t, []string{"create", "update", "patch", "get"}, VerbsApply.list())
	assert.Equal(t, []string{"create", "update", "patch", "get", "delete"}, VerbsOwn.list())
	assert.True(t, VerbsOwn.Has("delete"))
	assert.False(t, VerbsApply.Has("delete"))
}

// Shows: work/executor-escalation-kinds
func TestOnlyRolesAndBindingsGrantPermissions(t *testing.T) {
	for name, c := range map[string]struct {
		group, resource string
		verbs           Verbs
		want            bool
	}{
		"a RoleBinding":                            {"rbac.authorization.k8s.io", "rolebindings", VerbsApply, true},
		"a ClusterRoleBinding":                     {"rbac.authorization.k8s.io", "clusterrolebindings", VerbsOwn, true},
		"a Role":                                   {"rbac.authorization.k8s.io", "roles", VerbsOwn, true},
		"a ClusterRole":                            {"rbac.authorization.k8s.io", "clusterroles", VerbsOwn, true},
		"a RoleBinding that is only read":          {"rbac.authorization.k8s.io", "rolebindings", VerbsRead, false},
		"a resource of that name, another group":   {"", "rolebindings", VerbsOwn, false},
		"another resource in the group of RBAC":    {"rbac.authorization.k8s.io", "others", VerbsOwn, false},
		"a RoleBinding of OpenShift":               {"authorization.openshift.io", "rolebindings", VerbsOwn, true},
		"an object that has nothing to do with it": {"", "configmaps", VerbsOwn, false},
		"an object of another API server":          {"example.com", "others", VerbsOwn, false},
	} {
		t.Run(name, func(t *testing.T) {
			q := configMap("x", c.verbs)
			q.Object.Group, q.Object.Resource = c.group, c.resource
			assert.Equal(t, c.want, q.GrantsPermissions())
		})
	}
}

func TestWhatKubernetesDoesNotServeItselfIsTriedAsTheExecutor(t *testing.T) {
	for name, c := range map[string]struct {
		group, resource string
		verbs           Verbs
		want            bool
	}{
		"a RoleBinding":                         {"rbac.authorization.k8s.io", "rolebindings", VerbsApply, true},
		"a RoleBinding of OpenShift":            {"authorization.openshift.io", "rolebindings", VerbsApply, true},
		"an object of another API server":       {"example.com", "others", VerbsOwn, true},
		"metrics, which one serves":             {"metrics.k8s.io", "pods", VerbsOwn, true},
		"one that is only read":                 {"example.com", "others", VerbsRead, false},
		"an admission policy":                   {"admissionregistration.k8s.io", "validatingadmissionpolicies", VerbsOwn, true},
		"its binding":                           {"admissionregistration.k8s.io", "validatingadmissionpolicybindings", VerbsApply, true},
		"a trust bundle":                        {"certificates.k8s.io", "clustertrustbundles", VerbsOwn, true},
		"a ConfigMap":                           {"", "configmaps", VerbsOwn, false},
		"a Deployment":                          {"apps", "deployments", VerbsOwn, false},
		"another resource in the group of RBAC": {"rbac.authorization.k8s.io", "others", VerbsOwn, false},
	} {
		t.Run(name, func(t *testing.T) {
			q := configMap("x", c.verbs)
			q.Object.Group, q.Object.Resource = c.group, c.resource
			assert.Equal(t, c.want, q.MustTry())
		})
	}
}

func TestTheRoleThatAManifestBinds(t *testing.T) {
	cluster := roleBinding()
	cluster.Object.Resource, cluster.Object.Namespace = "clusterrolebindings", ""
	for name, c := range map[string]struct {
		q        Question
		manifest string
		role     roleKey
		binds    bool
	}{
		"a Role": {roleBinding(), `{"roleRef":{"kind":"Role","name":"r"}}`, roleKey{Namespace: "app", Name: "r"}, true},
		"a ClusterRole in a namespace": {
			roleBinding(), `{"roleRef":{"kind":"ClusterRole","name":"r"}}`, roleKey{Name: "r"}, true,
		},
		"a ClusterRole in the cluster": {cluster, `{"roleRef":{"kind":"ClusterRole","name":"r"}}`, roleKey{Name: "r"}, true},
		"no binding":                   {configMap("x", VerbsOwn), `{"roleRef":{"kind":"ClusterRole","name":"r"}}`, roleKey{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			role, binds := c.q.boundRole(manifestOf(t, c.manifest))
			assert.Equal(t, c.binds, binds)
			assert.Equal(t, c.role, role)
		})
	}
}
