package executor

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spokelet/spokelet/agent/work/manifest"
)

const bindingManifest = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"x"},
	"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"}}`

// clusterRoleBinding is the question about a ClusterRoleBinding.
func clusterRoleBinding() Question {
	return Question{
		Object:  manifest.ID{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings", Name: "x"},
		Version: "v1", Verbs: VerbsOwn,
	}
}

func TestTheEscalationCheck(t *testing.T) {
	rbac := func(resource string) schema.GroupResource {
		return schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: resource}
	}
	for name, c := range map[string]struct {
		answer  *apierrors.StatusError
		verdict Verdict
		cause   string
	}{
		"accepted":          {nil, Allowed, ""},
		"the object exists": {apierrors.NewAlreadyExists(rbac("clusterrolebindings"), "x"), Allowed, ""},
		"forbidden": {
			apierrors.NewForbidden(rbac("clusterrolebindings"), "x", nil), Denied,
			"system:serviceaccount:ns:deployer may not hand out rights that it does not have",
		},
		"its role does not exist": {
			apierrors.NewNotFound(rbac("clusterrolebindings"), "view"), Denied,
			"system:serviceaccount:ns:deployer may not bind ClusterRole view, which does not exist",
		},
		"its kind is not served": {
			apierrors.NewGenericServerResponse(http.StatusNotFound, "create", rbac("clusterrolebindings"), "", "no", 0, true),
			Unknown, "trying whether the executor may make clusterrolebindings.rbac.authorization.k8s.io x",
		},
		"its namespace does not exist": {
			apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "n"), Unknown, "namespaces \"n\" not found",
		},
		"the server is not ready": {apierrors.NewServiceUnavailable("later"), Unknown, "later"},
		"the manifest is invalid": {apierrors.NewInvalid(schema.GroupKind{}, "x", nil), Unknown, "is invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newTest(t, &fakeReviews{allowed: allow(VerbsOwn)})
			if c.answer != nil {
				a.status = c.answer.ErrStatus
			}
			q := clusterRoleBinding()
			s := a.Begin("w", deployer, noon)
			s.Decide(t.Context(), []Question{q})
			d := s.CheckEscalation(t.Context(), q, manifestOf(t, bindingManifest))
			assert.Equal(t, []string{"system:serviceaccount:ns:deployer POST " +
				"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings?dryRun=All&fieldManager=work-agent"}, a.dryRuns)
			assert.Equal(t, c.verdict, d.Verdict)
			assert.Equal(t, c.verdict == Allowed, d.EscalationChecked)
			require.NoError(t, d.ReadErr, "the check says nothing about reading")
			if c.verdict == Allowed {
				require.NoError(t, d.Err)
			} else {
				require.ErrorContains(t, d.Err, c.cause)
			}
			cached := a.decideAt(t, time.Second, q)
			switch c.verdict {
			case Allowed:
				assert.True(t, cached.EscalationChecked, "it is not checked again")
			case Denied:
				assert.Equal(t, Denied, cached.Verdict)
				assert.Equal(t, noon.Add(deniedRetry), cached.Recheck)
				require.ErrorContains(t, cached.Err, ", error: permission escalation, will try again in 1m0s")
			case Unknown:
				assert.Equal(t, Allowed, cached.Verdict, "what was asked before is still known")
				assert.False(t, cached.EscalationChecked)
			}
		})
	}
}

func TestARefusedWriteIsCached(t *testing.T) {
	a := newTest(t, &fakeReviews{allowed: allow(VerbsOwn)})
	q := clusterRoleBinding()
	s := a.Begin("w", deployer, noon)
	s.Decide(t.Context(), []Question{q})
	d := s.DenyWrite(q)
	require.ErrorContains(t, d.Err, "the API server does not accept this write from system:serviceaccount:ns:deployer")
	assert.Equal(t, noon.Add(deniedRetry), d.Recheck)
	assert.Equal(t, Denied, a.decideAt(t, time.Second, q).Verdict)
	assert.Equal(t, Allowed, a.decideAt(t, time.Minute, q).Verdict)
}

// Whether a role may be bound depends on its rules, no matter who is bound to it.
func TestARoleThatAWorkBindsIsCheckedAgainWhenItChanges(t *testing.T) {
	a := newTest(t, &fakeReviews{allowed: allow(VerbsOwn)})
	q, other := clusterRoleBinding(), configMap("x", VerbsOwn)
	s := a.Begin("w", deployer, noon)
	s.Decide(t.Context(), []Question{q, other})
	require.True(t, s.CheckEscalation(t.Context(), q, manifestOf(t, bindingManifest)).EscalationChecked)

	a.woken = nil
	a.rbac.roleChanged(roleKey{Name: "edit"})
	assert.Empty(t, a.woken)
	a.rbac.roleChanged(roleKey{Name: "view"})
	assert.Equal(t, []string{"w"}, a.woken)
	_, known := a.cache.get("w", q)
	assert.False(t, known)
	_, known = a.cache.get("w", other)
	assert.True(t, known, "it grants nothing")
}

// A definite no does not last beyond the next pass of another epoch: a change of RBAC while the check runs counts.
func TestAChangeDuringTheCheckCounts(t *testing.T) {
	a := newTest(t, &fakeReviews{allowed: allow(VerbsOwn)})
	q := clusterRoleBinding()
	s := a.Begin("w", deployer, noon)
	s.Decide(t.Context(), []Question{q})
	a.bind("")
	s.CheckEscalation(t.Context(), q, manifestOf(t, bindingManifest))
	_, known := a.cache.get("w", q)
	assert.False(t, known)
}

func TestWhetherTheExecutorMayDelete(t *testing.T) {
	for name, c := range map[string]struct {
		api     *fakeReviews
		verdict Verdict
		text    string
	}{
		"allowed": {&fakeReviews{allowed: allow(VerbsOwn)}, Allowed, ""},
		"denied": {&fakeReviews{}, Denied, "not allowed to apply the resource  configmaps, app x, will try again in 1m0s; " +
			"it cannot be changed in place, and to make it again system:serviceaccount:ns:deployer lacks delete"},
		"no answer": {&fakeReviews{failure: assert.AnError}, Unknown, assert.AnError.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			d := newTest(t, c.api).Begin("w", deployer, noon).MayDelete(t.Context(), configMap("x", VerbsApply))
			assert.Equal(t, c.verdict, d.Verdict)
			if c.text == "" {
				require.NoError(t, d.Err)
				return
			}
			require.ErrorContains(t, d.Err, c.text)
		})
	}
}
