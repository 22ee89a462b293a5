package work

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/executor"
	"github.com/spokelet/spokelet/agent/work/feedback"
)

const (
	bindingWanted = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: x},
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view},
		subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: somebody}]}`
	bindingLive = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding,
		metadata: {name: x, uid: u, resourceVersion: "7"},
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}}`
)

// speaker is a client that remembers what was written with it and answers writes with an error, if it has one.
type speaker struct {
	spoke
	fake *dynamicfake.FakeDynamicClient
	err  error
}

func newSpeaker(live *unstructured.Unstructured, dryRun ...string) *speaker {
	s := &speaker{fake: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())}
	s.spoke = spoke{client: s.fake, dryRun: dryRun}
	s.fake.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		switch action := action.(type) {
		case clienttesting.GetActionImpl:
			if live == nil {
				return true, nil, apierrors.NewNotFound(schema.GroupResource{}, "x")
			}
			return true, live.DeepCopy(), nil
		case clienttesting.CreateActionImpl:
			made, ok := action.Object.DeepCopyObject().(*unstructured.Unstructured)
			if !ok {
				return false, nil, nil
			}
			made.SetResourceVersion("1")
			return true, made, s.err
		case clienttesting.UpdateActionImpl:
			return true, action.Object, s.err
		case clienttesting.PatchActionImpl:
			patched := &unstructured.Unstructured{}
			if err := json.Unmarshal(action.Patch, &patched.Object); err != nil {
				return true, nil, err
			}
			return true, patched, s.err
		}
		return true, nil, s.err
	})
	return s
}

// written are the writes with the option dryRun, which is taken out, except those of owners and managed fields.
func (s *speaker) written(t *testing.T, dryRun []string) []clienttesting.Action {
	t.Helper()
	var list []clienttesting.Action
	for _, action := range s.fake.Actions() {
		switch a := action.(type) {
		case clienttesting.CreateActionImpl:
			assert.Equal(t, dryRun, a.CreateOptions.DryRun)
			a.CreateOptions.DryRun = nil
			list = append(list, a)
		case clienttesting.UpdateActionImpl:
			assert.Equal(t, dryRun, a.UpdateOptions.DryRun)
			a.UpdateOptions.DryRun = nil
			list = append(list, a)
		case clienttesting.PatchActionImpl:
			if a.PatchType == "application/merge-patch+json" {
				continue
			}
			assert.Equal(t, dryRun, a.PatchOptions.DryRun)
			a.PatchOptions.DryRun = nil
			list = append(list, a)
		case clienttesting.DeleteActionImpl:
			assert.Equal(t, dryRun, a.DeleteOptions.DryRun)
			a.DeleteOptions.DryRun = nil
			list = append(list, a)
		}
	}
	return list
}

// bindingTask is the task of a binding with a strategy and a trial.
func bindingTask(t *testing.T, strategy workv1.UpdateStrategy, posing spoke) *task {
	t.Helper()
	raw, err := json.Marshal(object(t, bindingWanted))
	require.NoError(t, err)
	one := taskOn("clusterrolebindings", "x", rbacTask, func(t *task) {
		t.gvk = schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"}
		t.resource.Resource, t.namespace, t.raw = "clusterrolebindings", "", raw
		t.option.strategy, t.owner = strategy, ownerReference("applied", "a")
	})
	one.trial = &trial{spoke: posing, refuse: func() error {
		one.follow(executor.Decision{
			Verdict: executor.Denied, Err: errors.New("error: permission escalation, will try again in 1m0s"),
		})
		return one.denied.err
	}}
	return one
}

// The dry run of the executor and the request of the agent are the same: verb, body, field manager, force.
// Weakness: W20
func TestTheExecutorTriesTheRequestThatIsSent(t *testing.T) {
	applied := func(force bool, fields ...workv1.IgnoreField) workv1.UpdateStrategy {
		return workv1.UpdateStrategy{
			Type:            workv1.UpdateStrategyTypeServerSideApply,
			ServerSideApply: &workv1.ServerSideApplyConfig{Force: force, FieldManager: "m", IgnoreFields: fields},
		}
	}
	present := workv1.IgnoreField{Condition: workv1.IgnoreFieldsConditionOnSpokePresent, JSONPaths: []string{".roleRef"}}
	change := workv1.IgnoreField{Condition: workv1.IgnoreFieldsConditionOnSpokeChange, JSONPaths: []string{".roleRef"}}
	update := workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeUpdate}
	for name, c := range map[string]struct {
		strategy workv1.UpdateStrategy
		live     bool
		// verbs are the writes.
		verbs []string
	}{
		"an update of what exists":                {update, true, []string{"update"}},
		"an update of what does not exist":        {update, false, []string{"create"}},
		"a creation":                              {workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly}, false, []string{"create"}},
		"a creation of what exists":               {workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly}, true, nil},
		"an applied configuration":                {applied(false), true, []string{"patch"}},
		"one by force":                            {applied(true), true, []string{"patch"}},
		"one with a field ignored":                {applied(true, present), true, []string{"patch"}},
		"one with a field ignored on changes":     {applied(true, change), true, []string{"patch"}},
		"the first of an object":                  {applied(true), false, []string{"create", "patch"}},
		"the first with a field ignored":          {applied(true, present), false, []string{"create", "patch"}},
		"the first that ignores what a change is": {applied(true, change), false, []string{"create", "patch"}},
	} {
		t.Run(name, func(t *testing.T) {
			var live *unstructured.Unstructured
			if c.live {
				live = object(t, bindingLive)
			}
			agent, posing := newSpeaker(live), newSpeaker(live, metav1.DryRunAll)
			one := bindingTask(t, c.strategy, posing.spoke)
			one.expected = true
			_, err := (&applier{spoke: agent.spoke, evaluator: feedback.New(false, 0)}).settle(t.Context(), one)
			require.NoError(t, err)
			sent, tried := agent.written(t, nil), posing.written(t, []string{metav1.DryRunAll})
			assert.Equal(t, tried, sent)
			var verbs []string
			for _, action := range sent {
				verbs = append(verbs, action.GetVerb())
				if patch, ok := action.(clienttesting.PatchActionImpl); ok {
					body := &unstructured.Unstructured{}
					require.NoError(t, json.Unmarshal(patch.Patch, &body.Object))
					assert.NotEmpty(t, body.GetResourceVersion(), "it is for what was tried only")
				}
			}
			assert.Equal(t, c.verbs, verbs)
		})
	}
}

// Only "forbidden" is a refusal; the agent meets anything else as if it were the answer to its own request.
func TestWhatATrialSaysIsHeeded(t *testing.T) {
	bindings := schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"}
	for name, c := range map[string]struct {
		err    error
		denied bool
		check  func(error) bool
	}{
		"forbidden":      {apierrors.NewForbidden(bindings, "x", nil), true, func(err error) bool { return assert.ErrorAs(t, err, new(*failure)) }},
		"a conflict":     {apierrors.NewConflict(bindings, "x", nil), false, apierrors.IsConflict},
		"out of reach":   {apierrors.NewServiceUnavailable("no"), false, apierrors.IsServiceUnavailable},
		"invalid":        {apierrors.NewInvalid(schema.GroupKind{}, "x", nil), false, apierrors.IsInvalid},
		"exists":         {apierrors.NewAlreadyExists(bindings, "x"), false, apierrors.IsAlreadyExists},
		"does not exist": {apierrors.NewNotFound(bindings, "x"), false, apierrors.IsNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			agent, posing := newSpeaker(nil), newSpeaker(nil, metav1.DryRunAll)
			posing.err = c.err
			one := bindingTask(t, workv1.UpdateStrategy{}, posing.spoke)
			before := one.wish
			_, err := (&applier{spoke: agent.spoke}).create(t.Context(), one, object(t, bindingWanted))
			assert.True(t, c.check(err), "%v", err)
			assert.Empty(t, agent.written(t, nil))
			assert.Equal(t, c.denied, one.denied != nil)
			assert.Equal(t, c.denied, before != one.wish, "so that it is applied once it is allowed")
		})
	}
}

// What was refused stays refused for the pass, and is not recorded as a state of the manifest that is applied.
func TestARefusedWriteIsTheLast(t *testing.T) {
	for name, c := range map[string]struct {
		strategy workv1.UpdateStrategy
		live     bool
	}{
		"of an update":                {strategy: workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeUpdate}, live: true},
		"of a creation":               {strategy: workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeUpdate}},
		"of what is applied":          {strategy: workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeServerSideApply}, live: true},
		"of what is applied at first": {strategy: workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeServerSideApply}},
	} {
		t.Run(name, func(t *testing.T) {
			var live *unstructured.Unstructured
			if c.live {
				live = object(t, bindingLive)
			}
			agent, posing := newSpeaker(live), newSpeaker(live, metav1.DryRunAll)
			posing.err = apierrors.NewForbidden(schema.GroupResource{}, "x", nil)
			one := bindingTask(t, c.strategy, posing.spoke)
			open := one.wish
			a := &applier{spoke: agent.spoke, evaluator: feedback.New(false, 0)}
			res, rec, learned := a.apply(t.Context(), one)
			require.ErrorContains(t, res.err, "error: permission escalation, will try again in 1m0s")
			assert.True(t, learned)
			assert.NotEqual(t, open, rec.wish)
			assert.Equal(t, c.live, rec.exists)
			assert.Len(t, posing.written(t, []string{metav1.DryRunAll}), 1)
			_, err := a.create(t.Context(), one, object(t, bindingWanted))
			require.Error(t, err)
			assert.Len(t, posing.written(t, []string{metav1.DryRunAll}), 1, "nothing more is tried")
			assert.Empty(t, agent.written(t, nil))
		})
	}
}

// What the executor may read is reported also while it is not known what it may hand out.
func TestATrialWithoutAnswerKeepsNobodyFromReading(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		lasting bool
	}{
		"no answer": {apierrors.NewServiceUnavailable("later"), false},
		"invalid":   {apierrors.NewInvalid(schema.GroupKind{}, "x", nil), true},
	} {
		t.Run(name, func(t *testing.T) {
			live := newSpeaker(object(t, bindingLive))
			one := bindingTask(t, workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeUpdate}, live.spoke)
			open := one.wish
			one.follow(executor.Decision{Verdict: executor.Unknown, Err: c.err})
			r := &Reconciler{applier: applier{spoke: live.spoke, evaluator: feedback.New(false, 0)}, ledger: newWoken().ledger}
			res := r.applyOne(t.Context(), holder{name: "w"}, one)
			assert.Equal(t, presencePresent, res.presence)
			assert.Equal(t, c.err, res.err)
			assert.Equal(t, c.lasting, res.lasting)
			assert.Empty(t, live.written(t, nil))
			assert.NotEqual(t, open, one.wish, "so that it is applied once it is allowed")
		})
	}
}
