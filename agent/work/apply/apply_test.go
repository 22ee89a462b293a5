package apply

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/agent/work/apply/ssa"
	"github.com/spokelet/spokelet/agent/work/executor"
	"github.com/spokelet/spokelet/agent/work/feedback"
	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/spoke"
	"github.com/spokelet/spokelet/agent/work/watch"
)

// epoch is the instant of the passes of these tests.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// stub is an API server with one object, or none, that remembers the writes.
type stub struct {
	mu   sync.Mutex
	live *unstructured.Unstructured
	// refuse answers writes, those of the executor or all; nil accepts them.
	refuse func(dryRun bool, method string) *apierrors.StatusError
	writes []write
	reads  int
}

// write is one request that changes content.
type write struct {
	dryRun      bool
	method, uri string
	body        string
}

// ServeHTTP answers one request.
func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	query := r.URL.Query()
	dryRun := query.Has("dryRun")
	query.Del("dryRun")
	w.Header().Set("Content-Type", "application/json")
	answer := func(code int, value any) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(value)
	}
	refuse := func(refusal *apierrors.StatusError) {
		refusal.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		answer(int(refusal.ErrStatus.Code), refusal.ErrStatus)
	}
	sent := &unstructured.Unstructured{Object: map[string]any{}}
	_ = json.Unmarshal(body, &sent.Object)
	switch {
	case r.Method == http.MethodGet && s.live == nil:
		s.reads++
		refuse(apierrors.NewNotFound(schema.GroupResource{Resource: "x"}, "x"))
		return
	case r.Method == http.MethodGet:
		s.reads++
		answer(http.StatusOK, s.live.Object)
		return
	case r.Header.Get("Content-Type") != "application/merge-patch+json":
		s.writes = append(s.writes, write{dryRun, r.Method, r.URL.Path + "?" + query.Encode(), string(bytes.TrimSpace(body))})
	}
	if s.refuse != nil {
		if refusal := s.refuse(dryRun, r.Method); refusal != nil {
			refuse(refusal)
			return
		}
	}
	switch {
	case r.Method == http.MethodDelete:
		answer(http.StatusOK, metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess,
		})
		return
	case r.Header.Get("Content-Type") == "application/merge-patch+json" && s.live != nil:
		answer(http.StatusOK, s.live.Object)
		return
	}
	sent.SetAPIVersion("v1") // of a patch of the owners, which has none
	sent.SetKind("X")
	sent.SetUID("made")
	sent.SetResourceVersion("100")
	answer(http.StatusOK, sent.Object)
}

// sent returns the writes of the agent, or of the executor.
func (s *stub) sent(dryRun bool) []write {
	var list []write
	for _, one := range s.writes {
		if one.dryRun == dryRun {
			one.dryRun = false
			list = append(list, one)
		}
	}
	return list
}

// applier returns an applier on a stub.
func applier(t *testing.T, s *stub) (*Applier, spoke.Client) {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	client, err := spoke.NewClient(&rest.Config{Host: server.URL}, server.Client())
	require.NoError(t, err)
	return &Applier{Client: client, Feedback: feedback.New(false, 0)}, client
}

// object decodes YAML.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	o := &unstructured.Unstructured{}
	require.NoError(t, o.UnmarshalJSON(raw))
	return o
}

// owner is the owner of all objects.
var owner = inventory.OwnerReference("applied", "owner")

// stepFor is a step about an object.
func stepFor(t *testing.T, action Action, resource, text string) *Step {
	t.Helper()
	desired := object(t, text)
	raw, err := json.Marshal(desired)
	require.NoError(t, err)
	gvk := desired.GroupVersionKind()
	m := &manifest.Manifest{
		GVK: gvk, Resource: gvk.GroupVersion().WithResource(resource), Namespace: desired.GetNamespace(),
		Name: desired.GetName(), Namespaced: desired.GetNamespace() != "", Desired: manifest.Digest{1},
		Options: manifest.Options{Owned: true},
	}
	m.Options.Strategy.Type = workv1.UpdateStrategyType(action)
	return &Step{Manifest: m, Raw: raw, Action: action}
}

// known makes a step one about an object that was in sync.
func known(s *Step) *Step {
	s.Known.Listed = true
	s.Known.State = watch.State{
		Applied: s.request(owner), Requested: epoch.Add(-time.Minute), Object: watch.Object{Exists: true, UID: "u", Version: "6"},
	}
	return s
}

const (
	configMap     = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}, data: {k: v}}`
	liveConfigMap = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns, uid: u, resourceVersion: "7"}, data: {k: theirs}}`
)

func TestAnObjectIsCreatedOrReadFirst(t *testing.T) {
	for sentence, c := range map[string]struct {
		known Known
		want  bool
	}{
		"an object that nobody knows is created":  {Known{}, true},
		"one that is listed is read":              {Known{Listed: true}, false},
		"one that existed a moment ago is read":   {Known{State: watch.State{Object: watch.Object{Exists: true}}}, false},
		"one that is known to be gone is created": {Known{Listed: true, Drift: watch.Deleted}, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, c.want, (&run{step: &Step{Known: c.known}}).createFirst())
		})
	}
}

func TestErrorsTellTheCauseFirst(t *testing.T) {
	cause, read := errors.New("cause"), errors.New("read")
	assert.Equal(t, "cause", unreadableError{because: cause, read: read}.Error())
	require.ErrorIs(t, unreadableError{because: cause, read: read}, cause)
	assert.Equal(t, "read", unreadableError{read: read}.Error())
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("no"))
	assert.NotNil(t, manifest.AsFailure(unreadableError{because: forbidden, read: read}), "a refusal, and no read either")
	assert.Nil(t, manifest.AsFailure(unreadableError{because: read, read: forbidden}), "a failure, although only the read was refused")
}

// Shows: work/unknown-strategy
func TestAManifestThatIsBlockedIsReadOnly(t *testing.T) {
	s := &stub{live: object(t, liveConfigMap)}
	a, _ := applier(t, s)
	step := stepFor(t, Blocked, "configmaps", configMap)
	step.Denial = &Denial{Err: manifest.Failed(`the update strategy "Odd" is unknown`), Final: true}
	res := a.Apply(t.Context(), Pass{Owner: owner, Now: epoch}, step)
	require.EqualError(t, res.Err, `the update strategy "Odd" is unknown`)
	assert.True(t, res.Final)
	assert.Equal(t, manifest.Present, res.Presence)
	assert.Empty(t, s.writes)
	assert.Equal(t, workv1.AppliedManifestFailed, res.State.Failed.Cause.Reason)
}

// refusedAt applies a ConfigMap that the API server refuses to update, at an instant, after a state.
func refusedAt(t *testing.T, now time.Time, before watch.State, desired byte) Result {
	t.Helper()
	s := &stub{live: object(t, liveConfigMap), refuse: func(bool, string) *apierrors.StatusError {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("no"))
	}}
	a, _ := applier(t, s)
	step := stepFor(t, Update, "configmaps", configMap)
	step.Manifest.Desired[1] = desired
	step.Known = Known{State: before, Drift: watch.Modified, Listed: true}
	return a.Apply(t.Context(), Pass{Owner: owner, Now: now}, step)
}

func TestARefusalIsRememberedWithItsBeginning(t *testing.T) {
	first := refusedAt(t, epoch, watch.State{}, 0)
	require.ErrorContains(t, first.Err, "forbidden")
	assert.True(t, first.Final)
	assert.Equal(t, manifest.Present, first.Presence)
	assert.Equal(t, epoch, first.State.Failed.Since)
	assert.Equal(t, epoch.Add(100*time.Millisecond), first.Wake)

	later := epoch.Add(time.Minute)
	second := refusedAt(t, later, *first.State, 0)
	assert.Equal(t, epoch, second.State.Failed.Since, "it is refused since then")
	assert.Equal(t, later.Add(time.Minute), second.Wake)

	other := refusedAt(t, later, *first.State, 1)
	assert.Equal(t, later, other.State.Failed.Since, "another manifest begins again")

	step := stepFor(t, Update, "configmaps", configMap)
	step.Known.State = *first.State
	request := step.request(owner)
	assert.True(t, step.Known.Answered(request), "nothing is sent again before its time")
	assert.False(t, step.Known.InSync(request), "but it is not applied, so that applying it later is no repair")
	live := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"k": "theirs"}}}
	assert.False(t, (&run{step: step}).completed(live), "nor is the content known to come from the API server")
}

func TestAnObjectThatCouldNotBeReadIsUnknown(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("no"))
	step := stepFor(t, Update, "configmaps", configMap)
	r := &run{Applier: &Applier{}, Pass: Pass{Owner: owner, Now: epoch}, step: step}
	state := r.state(t.Context(), nil, unreadableError{read: forbidden})
	res := of(&state, watch.Unchanged, false, r.id())
	assert.Equal(t, manifest.Unknown, res.Presence)
	assert.Equal(t, forbidden, res.ReadErr)
	require.EqualError(t, res.Err, forbidden.Error())
	assert.True(t, res.Final)
}

func TestWithoutAnAnswerWhatWasKnownStaysKnown(t *testing.T) {
	a := &Applier{}
	denial := &Denial{Err: assert.AnError, ReadErr: assert.AnError}
	step := stepFor(t, Forbidden, "configmaps", configMap)
	step.Denial = denial
	res := a.Apply(t.Context(), Pass{Owner: owner, Now: epoch}, step)
	require.ErrorIs(t, res.Err, assert.AnError)
	assert.False(t, res.Final)
	assert.Equal(t, manifest.Unknown, res.Presence)
	step = known(stepFor(t, Forbidden, "configmaps", configMap))
	step.Denial = denial
	res = a.Apply(t.Context(), Pass{Owner: owner, Now: epoch}, step)
	require.ErrorIs(t, res.Err, assert.AnError)
	assert.Equal(t, manifest.Present, res.Presence)
}

func TestAnObjectIsRecreatedOnlyWhenThatIsAccepted(t *testing.T) {
	const secret = `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}, type: example.com/x}`
	exists := apierrors.NewAlreadyExists(schema.GroupResource{Resource: "secrets"}, "s")
	for sentence, c := range map[string]struct {
		refuse  *apierrors.StatusError
		offline bool
		fails   string
		asked   []string
	}{
		"accepted": {refuse: exists, asked: []string{"POST dry", "DELETE", "POST"}},
		"refused": {
			refuse: apierrors.NewForbidden(schema.GroupResource{}, "s", errors.New("no")),
			fails:  "it stays as it is", asked: []string{"POST dry"},
		},
		"the hub is away": {offline: true, fails: "when the hub is back"},
	} {
		t.Run(sentence, func(t *testing.T) {
			live := object(t, `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns, uid: live}, type: Opaque}`)
			s := &stub{live: live, refuse: func(dryRun bool, _ string) *apierrors.StatusError {
				if dryRun {
					return c.refuse
				}
				return nil
			}}
			a, _ := applier(t, s)
			step := stepFor(t, Update, "secrets", secret)
			step.Known.Offline, step.Known.Listed = c.offline, true
			res := a.Apply(t.Context(), Pass{Owner: owner, Now: epoch}, step)
			var asked []string
			for _, one := range s.writes {
				asked = append(asked, strings.TrimSpace(one.method+map[bool]string{true: " dry"}[one.dryRun]))
			}
			assert.Equal(t, c.asked, asked)
			if c.fails != "" {
				require.ErrorContains(t, res.Err, c.fails)
				assert.Equal(t, "live", res.UID, "what is there is still known")
				return
			}
			require.NoError(t, res.Err)
			assert.Equal(t, "made", res.UID)
		})
	}
}

func TestWhetherAConfigurationIsReadFirst(t *testing.T) {
	for sentence, c := range map[string]struct {
		change func(*run)
		want   bool
	}{
		"a new object is applied at once":       {func(*run) {}, false},
		"a new manifest is, too":                {func(r *run) { known(r.step); r.step.Manifest.Desired[1]++ }, false},
		"an object that was changed is read":    {func(r *run) { known(r.step).Known.Drift = watch.Modified }, true},
		"one that is gone is applied at once":   {func(r *run) { known(r.step).Known.Drift = watch.Deleted }, false},
		"so is one that was refused":            {func(r *run) { known(r.step).Known.State.Failed = &watch.Failure{} }, false},
		"after a restart it is read":            {func(r *run) { r.step.Known.Listed, r.step.Known.Current = true, true }, true},
		"unless the hub does not say applied":   {func(r *run) { r.step.Known.Listed = true }, false},
		"when fields are ignored, it is always": {func(r *run) { r.config.Ignores = true }, true},
		"and when an executor tries the write":  {func(r *run) { r.trial = &spoke.Client{} }, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := &run{step: stepFor(t, ServerSideApply, "configmaps", configMap), Pass: Pass{Owner: owner}, config: &ssa.Configuration{}}
			c.change(r)
			assert.Equal(t, c.want, r.readsFirst())
		})
	}
}

// Shows: work/complete-rechecked
func TestWhatIsKnownOfAFrozenObject(t *testing.T) {
	live := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v, more: x}}`)
	const other = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}, data: {k: w}}`
	behind := func(text string, current bool, live *unstructured.Unstructured) bool {
		step := stepFor(t, Frozen, "configmaps", text)
		step.Known.Current, step.Frozen, step.Mode = current, true, watch.ReadFrozen
		return (&run{step: step, mode: step.Mode}).fallenBehind(live)
	}
	assert.False(t, behind(configMap, false, live), "it has the desired state")
	assert.True(t, behind(other, false, live))
	assert.True(t, behind(configMap, false, nil), "nobody knows")
	assert.False(t, behind(other, true, live), "this generation was applied before it froze")
}

func TestRulesAreEvaluatedWhenTheObjectChanges(t *testing.T) {
	step := stepFor(t, Update, "configmaps", configMap)
	step.Manifest.Reads = manifest.Digest{1}
	step.Manifest.Options.Rules = []workv1.ConditionRule{{
		Type: workv1.CelConditionExpressionsType, Condition: "X", CelExpressions: []string{"object.data.k == 'v'"},
	}}
	live := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: u, resourceVersion: "7"}, data: {k: v}}`)
	evaluate := func() metav1.ConditionStatus {
		r := &run{Applier: &Applier{Feedback: feedback.New(false, 0)}, Pass: Pass{Owner: owner, Now: epoch}, step: step}
		step.Known.State = r.state(t.Context(), live, nil)
		require.Len(t, step.Known.State.Feedback.Conditions, 1)
		return step.Known.State.Feedback.Conditions[0].Status
	}
	assert.Equal(t, metav1.ConditionTrue, evaluate())
	// Without a new version the change is not seen, which shows whether the rule was evaluated again.
	require.NoError(t, unstructured.SetNestedField(live.Object, "w", "data", "k"))
	assert.Equal(t, metav1.ConditionTrue, evaluate(), "the same object has the same results")
	live.SetResourceVersion("8")
	assert.Equal(t, metav1.ConditionFalse, evaluate())
	require.NoError(t, unstructured.SetNestedField(live.Object, "v", "data", "k"))
	step.Manifest.Reads[0]++
	assert.Equal(t, metav1.ConditionTrue, evaluate(), "other rules have others")
}

const (
	binding = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: x},
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view},
		subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: somebody}]}`
	liveBinding = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding,
		metadata: {name: x, uid: u, resourceVersion: "7"},
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}}`
)

// executed is a step about a binding for an executor that acts on the stub.
func executed(t *testing.T, s *stub, strategy workv1.UpdateStrategy) (*Applier, *Step, *executor.Session) {
	t.Helper()
	a, client := applier(t, s)
	step := stepFor(t, Action(strategy.Type), "clusterrolebindings", binding)
	if strategy.Type == workv1.UpdateStrategyTypeCreateOnly {
		step.Action = Create
	}
	step.Manifest.Options.Strategy = strategy
	step.Known.Listed = true
	step.Question = &executor.Question{
		Object: step.Manifest.ID(), Version: "v1", Desired: step.Manifest.Desired, Verbs: executor.VerbsOwn,
	}
	authorizer := executor.New(executor.Options{
		Clock: clock.RealClock{}, Wake: func(string) {},
		Impersonate: func(string) (spoke.Client, error) { return client.DryRun(), nil },
	})
	session := authorizer.Begin("w", executor.ServiceAccount{Namespace: "ns", Name: "deployer"}, epoch)
	return a, step, session
}

// The dry run of the executor and the request of the agent are the same: verb, body, field manager, force.
// Shows: work/executor-same-request
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
	create := workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly}
	for sentence, c := range map[string]struct {
		strategy workv1.UpdateStrategy
		live     bool
		verbs    []string
	}{
		"an update of what exists":                {update, true, []string{"PUT"}},
		"an update of what does not exist":        {update, false, []string{"POST"}},
		"a creation":                              {create, false, []string{"POST"}},
		"a creation of what exists":               {create, true, nil},
		"an applied configuration":                {applied(false), true, []string{"PATCH"}},
		"one by force":                            {applied(true), true, []string{"PATCH"}},
		"one with a field ignored":                {applied(true, present), true, []string{"PATCH"}},
		"one with a field ignored on changes":     {applied(true, change), true, []string{"PATCH"}},
		"the first of an object":                  {applied(true), false, []string{"POST", "PATCH"}},
		"the first with a field ignored":          {applied(true, present), false, []string{"POST", "PATCH"}},
		"the first that ignores what a change is": {applied(true, change), false, []string{"POST", "PATCH"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := &stub{}
			if c.live {
				s.live = object(t, liveBinding)
			}
			a, step, session := executed(t, s, c.strategy)
			res := a.Apply(t.Context(), Pass{Owner: owner, Session: session, Now: epoch}, step)
			require.NoError(t, res.Err)
			assert.Equal(t, s.sent(true), s.sent(false))
			var verbs []string
			for _, one := range s.sent(false) {
				verbs = append(verbs, one.method)
				if one.method == http.MethodPatch {
					assert.Contains(t, one.body, `"resourceVersion"`, "it is for what was tried only")
				}
			}
			assert.Equal(t, c.verbs, verbs)
			for i, one := range s.writes {
				assert.Equal(t, i%2 == 0, one.dryRun, "each is tried before it is sent")
			}
		})
	}
}

// Only "forbidden" is a refusal; any other answer counts as the answer to the agent's own request.
func TestTheAnswerToATrialCounts(t *testing.T) {
	bindings := schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"}
	for sentence, c := range map[string]struct {
		err    *apierrors.StatusError
		denied bool
	}{
		"forbidden":    {apierrors.NewForbidden(bindings, "x", errors.New("no")), true},
		"a conflict":   {apierrors.NewConflict(bindings, "x", errors.New("newer")), false},
		"out of reach": {apierrors.NewInternalError(errors.New("no")), false},
		"invalid":      {apierrors.NewInvalid(schema.GroupKind{}, "x", nil), false},
	} {
		for _, kind := range []workv1.UpdateStrategyType{
			workv1.UpdateStrategyTypeUpdate, workv1.UpdateStrategyTypeServerSideApply,
		} {
			for _, exists := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, %s, %v", sentence, kind, exists), func(t *testing.T) {
					s := &stub{refuse: func(dryRun bool, _ string) *apierrors.StatusError {
						if dryRun {
							return c.err
						}
						return nil
					}}
					if exists {
						s.live = object(t, liveBinding)
					}
					a, step, session := executed(t, s, workv1.UpdateStrategy{Type: kind})
					res := a.Apply(t.Context(), Pass{Owner: owner, Session: session, Now: epoch}, step)
					require.Error(t, res.Err)
					assert.Empty(t, s.sent(false))
					assert.Equal(t, exists, res.Presence == manifest.Present)
					assert.Equal(t, c.denied, strings.Contains(res.Err.Error(), "error: permission escalation, will try again in 1m0s"))
					if !c.denied {
						return
					}
					assert.Len(t, s.sent(true), 1, "nothing more is tried")
					assert.Equal(t, watch.ReadDenied, res.State.Applied.Mode, "so that it is applied once it is allowed")
				})
			}
		}
	}
}

func TestAnExecutorMayHaveToAskBeforeARecreation(t *testing.T) {
	step := stepFor(t, Update, "configmaps", configMap)
	r := &run{step: step}
	require.NoError(t, r.mayDelete(t.Context()), "without an executor")
	step.Question = &executor.Question{Verbs: executor.VerbsOwn}
	r.Session = &executor.Session{}
	require.NoError(t, r.mayDelete(t.Context()), "it was asked about before")
}

func TestAnObjectThatFightsBackIsRepairedLater(t *testing.T) {
	s := &stub{live: object(t, liveConfigMap)}
	a, _ := applier(t, s)
	step := known(stepFor(t, Update, "configmaps", configMap))
	step.Known.Drift = watch.Modified
	var last Result
	for range 11 {
		last = a.Apply(t.Context(), Pass{Owner: owner, Now: epoch}, step)
		if last.State == nil {
			break
		}
		assert.Equal(t, "updated", last.Repaired)
		step.Known.State.Repairs = last.State.Repairs
	}
	assert.Nil(t, last.State, "the limit is used up")
	assert.True(t, last.Wake.After(epoch))
	require.NoError(t, last.Err)
	assert.Len(t, s.writes, 10)
	assert.False(t, slices.ContainsFunc(s.writes, func(w write) bool { return w.method != http.MethodPut }))
}
