package works_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/suite"
)

// filled is a work of manifests that is not written yet.
func (w *world) filled(name string, manifests ...string) *workv1.ManifestWork {
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: w.cluster, Name: name}}
	for _, one := range manifests {
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests,
			workv1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(one)}})
	}
	return work
}

// checked waits until what is written is checked: by the webhook, when the hub manager has told the API server, and by
// the policies, when the API server has put them into force.
func (w *world) checked() {
	w.Helper()
	nobody := w.author(w.cluster + "-nobody")
	require.Eventually(w, func() bool {
		return plane.Client.Create(w.Context(), w.filled("empty"), client.DryRunAll) != nil &&
			nobody.Create(w.Context(), w.filled("empty", goodManifest), client.DryRunAll) != nil
	}, suite.Timeout, suite.Tick)
}

// forbidden requires that a policy refused a write, with these words. Where several refuse it, joined by orElse, any of
// them may answer.
func (w *world) forbidden(err error, policy string, says ...string) {
	w.Helper()
	require.True(w, apierrors.IsForbidden(err), "%v", err)
	require.True(w, slices.ContainsFunc(strings.Split(policy, orElse), func(one string) bool {
		return strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+one+"'")
	}), "%v is not the answer of %s", err, policy)
	for _, words := range says {
		require.ErrorContains(w, err, words)
	}
}

const (
	executors       = "manifestwork-executors.spokelet.io"
	withoutExecutor = "manifestworks-without-executor.spokelet.io"
	orElse          = " or "
)

// author is a user who may write works of the cluster, and has the rights besides.
func (w *world) author(name string, rules ...rbacv1.PolicyRule) client.Client {
	w.Helper()
	w.create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: w.cluster, Name: name}, Rules: append(rules, rbacv1.PolicyRule{
		APIGroups: []string{workv1.GroupName}, Resources: []string{"manifestworks"},
		Verbs: []string{"get", "create", "update", "delete"},
	})})
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.cluster, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	})
	c := plane.As(w, name)
	// The authorizer of the API server learns of new roles by a watch.
	require.Eventually(w, func() bool {
		err := c.Get(w.Context(), client.ObjectKey{Namespace: w.cluster, Name: "none"}, &workv1.ManifestWork{})
		return apierrors.IsNotFound(err)
	}, suite.Timeout, suite.Tick)
	return c
}

const goodManifest = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"good"}}`

// Shows: work/refused
func TestAWorkThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.checked()
	large := strings.Replace(goodManifest, `"metadata"`, fmt.Sprintf(`"data":{"a":%q},"metadata"`, strings.Repeat("x", 512000)), 1)
	for name, c := range map[string]struct {
		manifests []string
		says      string
	}{
		"empty":    {nil, "manifests should not be empty"},
		"nameless": {[]string{strings.Replace(goodManifest, `,"name":"good"`, "", 1)}, "spec.workload.manifests[0] has no metadata.name"},
		"duplicate": {[]string{goodManifest, goodManifest},
			"duplicate manifest for resource default/good with resource type v1.ConfigMap"},
		"oversize": {[]string{large}, "bytes which exceeds the 512000 limit"},
	} {
		t.Run(name, func(t *testing.T) {
			err := plane.Client.Create(t.Context(), w.filled(name, c.manifests...))
			require.True(t, apierrors.IsBadRequest(err), "%v", err)
			assert.Contains(t, err.Error(), c.says)
		})
	}
	good := w.filled("good", goodManifest)
	w.create(good)
	good.Spec.Workload.Manifests = append(good.Spec.Workload.Manifests, good.Spec.Workload.Manifests[0])
	err := plane.Client.Update(t.Context(), good)
	require.True(t, apierrors.IsBadRequest(err), "%v", err)
}

// Shows: work/executor-nil-right, work/executor-right
func TestAnExecutorTakesTheRightToExecuteAsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.checked()
	with := func(name, account string) *workv1.ManifestWork {
		work := w.filled(name, goodManifest)
		work.Spec.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
			Type:           workv1.ExecutorSubjectTypeServiceAccount,
			ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: "apps", Name: account},
		}}
		return work
	}
	ann := w.author(w.cluster+"-ann", rbacv1.PolicyRule{
		APIGroups: []string{workv1.GroupName}, Resources: []string{"manifestworks"}, Verbs: []string{"execute-as"},
		ResourceNames: []string{"system:serviceaccount:apps:deployer"},
	})
	work := with("hers", "deployer")
	require.NoError(t, ann.Create(t.Context(), work))
	w.forbidden(ann.Create(t.Context(), with("not-hers", "admin")), executors,
		"may not have ManifestWorks in namespace "+w.cluster+" applied as system:serviceaccount:apps:admin",
		`resourceNames: ["system:serviceaccount:apps:admin"], verbs: [execute-as]`)

	bob := w.author(w.cluster + "-bob")
	w.forbidden(bob.Create(t.Context(), with("not-his", "deployer")), executors)
	w.forbidden(bob.Create(t.Context(), w.filled("plain", goodManifest)), withoutExecutor,
		"system:serviceaccount::klusterlet-work-sa", shippedRole)
	eve := w.author(w.cluster+"-eve", rbacv1.PolicyRule{
		APIGroups: []string{workv1.GroupName}, Resources: []string{"manifestworks"}, Verbs: []string{"execute-as"},
		ResourceNames: []string{"system:serviceaccount::klusterlet-work-sa"},
	})
	require.NoError(t, eve.Create(t.Context(), w.filled("plain", goodManifest)))
	require.NoError(t, bob.Get(t.Context(), client.ObjectKeyFromObject(work), work))
	work.Labels = map[string]string{"by": "bob"}
	require.NoError(t, bob.Update(t.Context(), work), "the executor stays")
	changed := work.DeepCopy()
	changed.Spec.Executor.Subject.ServiceAccount.Name = "admin"
	w.forbidden(bob.Update(t.Context(), changed), executors, "applied as system:serviceaccount:apps:admin")
	w.forbidden(ann.Update(t.Context(), changed), executors, "applied as system:serviceaccount:apps:admin")
	none := work.DeepCopy()
	none.Spec.Executor = nil
	w.forbidden(bob.Update(t.Context(), none), executors+orElse+withoutExecutor)
	w.forbidden(ann.Update(t.Context(), none), withoutExecutor)
	w.forbidden(eve.Update(t.Context(), none), executors, "the executor so far")
	require.NoError(t, plane.Client.Update(t.Context(), none))
	none.Labels["by"] = "eve"
	require.NoError(t, bob.Update(t.Context(), none), "none stays none")
}
