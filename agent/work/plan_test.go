package work

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/apply"
	"github.com/spokelet/spokelet/agent/work/executor"
	"github.com/spokelet/spokelet/agent/work/feedback"
	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/watch"
)

// one is the input of a plan for a ConfigMap, after changes.
func one(t *testing.T, changes ...func(*input)) *input {
	t.Helper()
	in := &input{
		now: epoch, owner: "owner", manifests: read(t, configMap("a")), raw: [][]byte{[]byte(configMap("a"))},
		objects: make([]object, 1),
	}
	for _, change := range changes {
		change(in)
	}
	return in
}

// synced is an object that was in sync a minute ago.
func synced(in *input) {
	in.objects[0].known.Listed = true
	in.objects[0].known.State = watch.State{
		Applied:   watch.Applied{Desired: in.manifests[0].Desired, Owner: in.owner},
		Requested: in.now.Add(-time.Minute), Object: watch.Object{Exists: true, UID: "u", Version: "7"},
	}
}

// refused is a manifest that the API server refused at once, a minute ago.
func refused(in *input) {
	synced(in)
	in.objects[0].known.State.Failed = &watch.Failure{
		Cause: manifest.Failed("no"), Since: in.objects[0].known.State.Requested,
	}
}

// drift sets how the last event differs.
func drift(d watch.Drift) func(*input) { return func(in *input) { in.objects[0].known.Drift = d } }

// frozen marks the manifest as complete.
func frozen(in *input) { in.objects[0].frozen = true }

// strategy sets the update strategy.
func strategy(kind workv1.UpdateStrategyType) func(*input) {
	return func(in *input) { in.manifests[0].Options.Strategy.Type = kind }
}

// ruled has a rule that was evaluated at a cost.
func ruled(cost int64) func(*input) {
	return func(in *input) {
		in.manifests[0].Reads = manifest.Digest{1}
		in.objects[0].known.State.Feedback = &watch.Feedback{Rules: manifest.Digest{1}, Cost: cost}
	}
}

// decided sets the decision about the executor.
func decided(d executor.Decision) func(*input) {
	return func(in *input) { in.objects[0].decision = &d }
}

// exhausted leaves no reads of a changed object.
func exhausted(in *input) {
	l := &in.objects[0].known.State.Reads
	for ok := true; ok; {
		*l, _, ok = l.Spend(in.now)
	}
}

// Shows: work/complete-rechecked, work/executor-same-request
func TestThePlanOfOneManifest(t *testing.T) {
	denied := executor.Decision{Verdict: executor.Denied, Err: errors.New("lacks create")}
	unreadable := executor.Decision{Verdict: executor.Denied, Err: errors.New("lacks get"), ReadErr: errors.New("lacks get")}
	unknown := executor.Decision{Verdict: executor.Unknown, Err: errors.New("no answer"), ReadErr: errors.New("no answer")}
	for sentence, c := range map[string]struct {
		changes []func(*input)
		action  apply.Action
		reason  string
		mode    watch.Mode
	}{
		"a new object is created": {nil, apply.Update, "the object is new", watch.Write},
		"an object of an earlier process is read": {
			[]func(*input){func(in *input) { in.objects[0].known.Listed = true }},
			apply.Update, "the agent has not read the object yet", watch.Write,
		},
		"an object in sync costs nothing": {[]func(*input){synced}, apply.Skip, "in sync", watch.Write},
		"a new desired state is applied": {
			[]func(*input){synced, func(in *input) { in.manifests[0].Desired[0]++ }},
			apply.Update, "the desired state changed, or was not applied yet", watch.Write,
		},
		"another AppliedManifestWork is another owner": {
			[]func(*input){synced, func(in *input) { in.owner = "other" }},
			apply.Update, "the desired state changed, or was not applied yet", watch.Write,
		},
		"a change on the spoke is repaired":   {[]func(*input){synced, drift(watch.Modified)}, apply.Update, "modified on the spoke", watch.Write},
		"a deletion on the spoke is repaired": {[]func(*input){synced, drift(watch.Deleted)}, apply.Update, "deleted on the spoke", watch.Write},
		"an object that changes all the time is read later": {
			[]func(*input){synced, drift(watch.Modified), exhausted}, apply.Skip, "changes too often: read later", watch.Write,
		},
		"CreateOnly creates":             {[]func(*input){strategy("CreateOnly")}, apply.Create, "the object is new", watch.Write},
		"ServerSideApply applies":        {[]func(*input){strategy("ServerSideApply")}, apply.ServerSideApply, "the object is new", watch.Write},
		"ReadOnly reads":                 {[]func(*input){strategy("ReadOnly")}, apply.Read, "the object is new", watch.Write},
		"an unknown strategy is refused": {[]func(*input){strategy("Odd")}, apply.Blocked, `the update strategy "Odd" is unknown`, watch.Write},
		"a failure lasts while nothing changes": {
			[]func(*input){refused, func(in *input) { in.objects[0].known.State.Failed.Since = time.Time{} }},
			apply.Skip, "failed for good: nothing changed since", watch.Write,
		},
		"a failure is tried again after a while": {
			[]func(*input){refused}, apply.Update, "failed before: retried", watch.Write,
		},
		"a change of the object ends a failure": {
			[]func(*input){refused, drift(watch.Modified)}, apply.Update, "failed before: retried", watch.Write,
		},
		"rules are evaluated when the status changes": {
			[]func(*input){synced, ruled(0), drift(watch.StatusOnly)},
			apply.Update, "the status changed: rules are evaluated", watch.Write,
		},
		"expensive rules are evaluated more rarely": {
			[]func(*input){synced, ruled(feedback.MaxManifestCost), drift(watch.StatusOnly)},
			apply.Skip, "only the status changed: rules are evaluated later", watch.Write,
		},
		"new rules are evaluated": {
			[]func(*input){synced, func(in *input) { in.manifests[0].Reads = manifest.Digest{1} }},
			apply.Update, "the rules changed", watch.Write,
		},
		"a complete manifest is read only":         {[]func(*input){frozen}, apply.Frozen, "complete: read only", watch.ReadFrozen},
		"a complete manifest in sync stays so":     {[]func(*input){synced, frozen}, apply.Skip, "in sync", watch.Write},
		"a complete manifest that changed is read": {[]func(*input){synced, frozen, drift(watch.Modified)}, apply.Frozen, "complete: read only", watch.ReadFrozen},
		"a refusal of before does not hold up a complete manifest": {
			[]func(*input){refused, frozen}, apply.Frozen, "complete: read only", watch.ReadFrozen,
		},
		"a manifest that is not complete any more is applied": {
			[]func(*input){synced, func(in *input) { in.objects[0].known.State.Applied.Mode = watch.ReadFrozen }},
			apply.Update, "the desired state changed, or was not applied yet", watch.Write,
		},
		"an executor without permissions reads": {[]func(*input){decided(denied)}, apply.Blocked, "lacks create", watch.ReadDenied},
		"without an executor's read nothing is sent": {
			[]func(*input){decided(unreadable)}, apply.Forbidden, "lacks get", watch.ReadDenied,
		},
		"without an answer about the executor nothing is sent": {
			[]func(*input){decided(unknown)}, apply.Forbidden, "no answer", watch.ReadDenied,
		},
		"a complete manifest needs to be read only": {
			[]func(*input){frozen, decided(denied)}, apply.Frozen, "complete: read only", watch.ReadFrozen,
		},
		"an allowed executor applies": {
			[]func(*input){decided(executor.Decision{Verdict: executor.Allowed})}, apply.Update, "the object is new", watch.Write,
		},
		"a manifest that was denied is applied once it is allowed": {
			[]func(*input){synced, func(in *input) { in.objects[0].known.State.Applied.Mode = watch.ReadDenied }},
			apply.Update, "the desired state changed, or was not applied yet", watch.Write,
		},
		"an object without a watch is trusted for minutes": {
			[]func(*input){synced, func(in *input) { in.objects[0].unwatched = true }}, apply.Skip, "in sync", watch.Write,
		},
		"after that it is read": {
			[]func(*input){synced, func(in *input) {
				in.objects[0].unwatched = true
				in.now = in.now.Add(2 * watch.RecheckPause)
			}}, apply.Update, "modified on the spoke", watch.Write,
		},
		"a kind that is not served waits": {
			[]func(*input){func(in *input) { in.manifests[0] = in.manifests[0].Unserve() }},
			apply.Unserved, `the server doesn't have a resource type "ConfigMap"`, watch.Write,
		},
		"a manifest with an error is not applied": {
			[]func(*input){func(in *input) { in.manifests[0].Err = errors.New("bad") }}, apply.Invalid, "bad", watch.Write,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			in := one(t, c.changes...)
			before := in.objects[0]
			step := planStep(in, 0)
			assert.Equal(t, c.action, step.Action)
			assert.Contains(t, step.Reason, c.reason)
			assert.Equal(t, c.mode, step.Mode)
			assert.Equal(t, step, planStep(in, 0), "the same facts give the same plan")
			assert.Equal(t, before, in.objects[0], "planning changes nothing")
		})
	}
}

func TestWhenAStepIsDecidedAgain(t *testing.T) {
	unwatched := func(in *input) { in.objects[0].unwatched = true }
	step := planStep(one(t, synced), 0)
	assert.Zero(t, step.Wake, "an object with a watch is not read")
	due := planStep(one(t, synced, unwatched), 0).Wake.Sub(epoch.Add(-time.Minute))
	assert.GreaterOrEqual(t, due, watch.RecheckPause)
	assert.Less(t, due, 2*watch.RecheckPause)
	later := func(in *input) { in.now = in.now.Add(2 * watch.RecheckPause) }
	for sentence, step := range map[string]apply.Step{
		"it is read now":           planStep(one(t, synced, unwatched, later), 0),
		"it is new":                planStep(one(t, unwatched, later), 0),
		"its executor is not well": planStep(one(t, synced, unwatched, later, decided(executor.Decision{Verdict: executor.Denied, Err: errors.New("lacks create")})), 0),
	} {
		next := step.Wake.Sub(epoch.Add(2 * watch.RecheckPause))
		assert.GreaterOrEqual(t, next, watch.RecheckPause, "%s, and again some minutes later", sentence)
		assert.Less(t, next, 2*watch.RecheckPause, sentence)
	}
	again := epoch.Add(time.Minute)
	step = planStep(one(t, synced, unwatched, decided(executor.Decision{Verdict: executor.Allowed, Recheck: again})), 0)
	assert.Equal(t, again, step.Wake, "a decision about the executor may be due earlier")
	step = planStep(one(t, synced, ruled(feedback.MaxManifestCost), drift(watch.StatusOnly)), 0)
	assert.Equal(t, epoch.Add(-time.Minute+feedbackPause+100*time.Second), step.Wake)
	assert.Equal(t, feedbackPause, pauseAfter(&watch.State{}))
	assert.Equal(t, feedbackPause+10*time.Millisecond, pauseAfter(&watch.State{Feedback: &watch.Feedback{Cost: 1000}}))
}

func TestAStatusAloneIsReadFirst(t *testing.T) {
	assert.True(t, planStep(one(t, synced, ruled(0), drift(watch.StatusOnly)), 0).StatusFirst)
	assert.False(t, planStep(one(t, synced, drift(watch.Modified)), 0).StatusFirst)
	assert.False(t, planStep(one(t), 0).StatusFirst)
	step := planStep(one(t, synced, drift(watch.Modified)), 0)
	assert.NotEqual(t, watch.Limiter{}, step.Known.State.Reads, "a read is taken from the limit")
}

func TestWhatADenialMeans(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{}, "x", nil)
	for sentence, c := range map[string]struct {
		decision executor.Decision
		frozen   bool
		want     *apply.Denial
	}{
		"allowed is no denial": {executor.Decision{Verdict: executor.Allowed}, false, nil},
		"a denial is final": {
			executor.Decision{Verdict: executor.Denied, Err: assert.AnError}, false,
			&apply.Denial{Err: manifest.Failed(assert.AnError.Error()), Final: true},
		},
		"a complete manifest stays applied though its object must not be read": {
			executor.Decision{Verdict: executor.Denied, Err: assert.AnError, ReadErr: assert.AnError}, true,
			&apply.Denial{ReadErr: manifest.Failed(assert.AnError.Error()), Final: true},
		},
		"no answer may be another one soon": {
			executor.Decision{Verdict: executor.Unknown, Err: assert.AnError, ReadErr: assert.AnError}, false,
			&apply.Denial{Err: assert.AnError, ReadErr: assert.AnError},
		},
		"a check without an answer leaves reading": {
			executor.Decision{Verdict: executor.Unknown, Err: assert.AnError}, false, &apply.Denial{Err: assert.AnError},
		},
		"a check of an invalid object is final": {
			executor.Decision{Verdict: executor.Unknown, Err: invalid}, false, &apply.Denial{Err: invalid, Final: true},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, c.want, apply.DenialOf(c.decision, c.frozen))
		})
	}
}

// Shows: work/executor-same-request
func TestWhatAnExecutorNeeds(t *testing.T) {
	m := read(t, configMap("a"))[0]
	assert.Equal(t, executor.VerbsOwn, verbsFor(&m, false), "an object that is deleted with its work")
	assert.Equal(t, executor.VerbsRead, verbsFor(&m, true), "a manifest that is complete")
	m.Options.Owned = false
	assert.Equal(t, executor.VerbsApply, verbsFor(&m, false), "an object that stays")
	m.Options.Strategy.Type = workv1.UpdateStrategyTypeReadOnly
	assert.Equal(t, executor.VerbsRead, verbsFor(&m, false), "an object that is only read")
}

// many is the input of a plan for several kinds and states.
func many(t *testing.T) *input {
	t.Helper()
	raws := []string{
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"ns"}}`, configMap("a"),
		`{"apiVersion":"x.example/v1","kind":"X","metadata":{"name":"x"}}`, configMap("b"), `{`,
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"ns"}}`,
	}
	in := &input{now: epoch, owner: "owner", manifests: read(t, raws...), objects: make([]object, len(raws))}
	for i := range raws {
		in.raw = append(in.raw, []byte(raws[i]))
	}
	in.objects[3].known.State = watch.State{
		Applied:   watch.Applied{Desired: in.manifests[3].Desired, Owner: "owner"},
		Requested: epoch, Object: watch.Object{Exists: true},
	}
	for i := range in.objects {
		in.objects[i].known.Listed = true
	}
	return in
}

// table prints a plan.
func table(p plan) []string {
	var lines []string
	for _, rank := range p.ranks {
		for _, i := range rank {
			s := &p.steps[i]
			lines = append(lines, fmt.Sprintf("%d %s: %s", i, s.Action, s.Reason))
		}
	}
	return lines
}

func TestAPlanIsATable(t *testing.T) {
	p := planAll(many(t))
	const unread = "the agent has not read the object yet"
	lines := table(p)
	assert.Equal(t, []string{
		"5 Update: " + unread, "1 Update: " + unread, "3 Skip: in sync", "0 Update: " + unread,
		`2 Unserved: the server doesn't have a resource type "X"`,
	}, lines[:5])
	assert.Contains(t, lines[5], "4 Invalid: the manifest cannot be decoded")
	assert.Equal(t, [][]int{{5}, {1, 3}, {0}, {2}, {4}}, p.ranks)
	var recorded []string
	for _, entry := range p.record {
		recorded = append(recorded, entry.Name)
	}
	assert.Equal(t, []string{"d", "a", "ns"}, recorded, "what may be created is recorded, in the order of the spec")
	for range 20 {
		assert.Equal(t, p, planAll(many(t)), "the plan has the order of no map")
	}
}

func TestOnlyCreatedObjectsAreRecorded(t *testing.T) {
	for sentence, c := range map[string]struct {
		change func(*input)
		want   bool
	}{
		"an update creates":                        {func(*input) {}, true},
		"CreateOnly does":                          {strategy("CreateOnly"), true},
		"ServerSideApply does":                     {strategy("ServerSideApply"), true},
		"ReadOnly does not":                        {strategy("ReadOnly"), false},
		"an unknown strategy does not":             {strategy("Odd"), false},
		"a complete manifest does not":             {frozen, false},
		"a denied manifest does not":               {decided(executor.Decision{Verdict: executor.Denied, Err: assert.AnError}), false},
		"an object in sync does not":               {synced, false},
		"nor a manifest with an error":             {func(in *input) { in.manifests[0].Err = errors.New("bad") }, false},
		"nor one of an executor without an answer": {decided(executor.Decision{Verdict: executor.Unknown, Err: assert.AnError}), false},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, c.want, len(planAll(one(t, c.change)).record) > 0)
		})
	}
}

// A restart empties the store: the plan is the same, except that objects which were in sync are read.
func TestARestartOnlyReadsMore(t *testing.T) {
	before, restarted := many(t), many(t)
	for i := range restarted.objects {
		restarted.objects[i].known.State = watch.State{}
	}
	was, is := planAll(before), planAll(restarted)
	require.Equal(t, was.ranks, is.ranks)
	var read []int
	for i := range was.steps {
		if was.steps[i].Action != is.steps[i].Action {
			assert.Equal(t, apply.Skip, was.steps[i].Action)
			read = append(read, i)
		}
	}
	assert.Equal(t, []int{3}, read)
	assert.True(t, slices.IsSorted(read))
}

// Shows: work/rank
func TestBindingsComeAfterTheRolesThatTheyBind(t *testing.T) {
	asJSON := func(kind string) string {
		return fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":%q,"metadata":{"name":"a","namespace":"ns"}}`, kind)
	}
	kinds := []string{"RoleBinding", "ServiceAccount", "ClusterRoleBinding", "Role", "ClusterRole", "Namespace"}
	in := &input{now: epoch, objects: make([]object, len(kinds))}
	for _, kind := range kinds {
		in.manifests = append(in.manifests, manifest.Manifest{GVK: schema.GroupVersionKind{Kind: kind}})
		in.raw = append(in.raw, []byte(asJSON(kind)))
	}
	var order [][]string
	for _, rank := range planAll(in).ranks {
		var names []string
		for _, i := range rank {
			names = append(names, kinds[i])
		}
		order = append(order, names)
	}
	assert.Equal(t, [][]string{
		{"Namespace"}, {"Role", "ClusterRole"}, {"RoleBinding", "ClusterRoleBinding"}, {"ServiceAccount"},
	}, order, "an executor may bind only a role that exists")
}
