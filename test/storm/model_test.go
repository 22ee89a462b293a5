package storm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/names"
)

// tell draws edits and tells each in a line.
func tell(m *Model, n int) []string {
	lines := make([]string, 0, n)
	for range n {
		e := m.Draw()
		lines = append(lines, e.String())
	}
	return lines
}

func TestTheSeedAloneDecidesTheEdits(t *testing.T) {
	lines := tell(NewModel(7), 1000)
	assert.Equal(t, lines, tell(NewModel(7), 1000), "the same seed draws the same")
	assert.NotEqual(t, lines, tell(NewModel(8), 1000), "another one does not")

	doubtful := NewModel(7)
	for i, line := range lines {
		e := doubtful.Draw()
		require.Equal(t, line, e.String())
		if i%3 == 0 && len(e.things) > 0 {
			doubtful.Doubt(e.things[0])
		}
	}
}

func TestAStormHasEveryEdit(t *testing.T) {
	m, seen, strategies := NewModel(1), map[action]int{}, map[workv1.UpdateStrategyType]int{}
	for range 3000 {
		e := m.Draw()
		seen[e.Action]++
		if e.Action == putWorks && e.thing != nil {
			strategies[e.thing.strategy]++
		}
	}
	for _, a := range []action{
		putWorks, deleteWork, forgetWork, clearStatus, stripWork, setValue, addValue, dropLabel, deleteObject, putObject,
		stripOwners, hold, release, gadgetsOn, gadgetsOff, wrongRecord, emptyRecord, stripRecord, deleteRecord,
		vanishRecord, breakManifest, loseNamespace, killAgent, cutLink, downHub, downSpoke,
	} {
		assert.Positive(t, seen[a], a)
	}
	assert.Len(t, strategies, 4)
}

// TestTheModelStaysWithinItsRules draws many edits and looks at what the model must never do.
func TestTheModelStaysWithinItsRules(t *testing.T) {
	for seed := range uint64(5) {
		m := NewModel(seed)
		for range 2000 {
			e := m.Draw()
			for _, w := range m.works {
				for i, one := range w.things {
					require.NotContains(t, w.things[:i], one, "twice in %s after %s", w.name, e)
				}
			}
			for _, one := range m.things {
				all := m.holders(one)
				if one.home != nil && len(all) > 0 {
					require.True(t, all[0].has(one.home), "%s without its namespace after %s", one, e)
				}
				if one.fixed && !one.byHand {
					require.Equal(t, workv1.UpdateStrategyTypeUpdate, one.strategy)
				}
				if !one.byHand {
					require.LessOrEqual(t, len(all), 2)
				}
			}
		}
		for _, e := range m.Calm() {
			require.Equal(t, release, e.Action)
		}
		m.End()
		require.Empty(t, m.present())
	}
}

// Shows: invariants/typing-error
func TestATypingErrorIsOneForTheAgent(t *testing.T) {
	for wrong, want := range map[typingError][2]string{
		noNamespace: {"rbac.example.com/v1", ""}, wrongGroup: {"typorbac.example.com/v1", "ns"},
		wrongVersion: {"rbac.example.com/v11", "ns"}, noVersion: {"rbac.example.com", "ns"},
	} {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "rbac.example.com/v1", "metadata": map[string]any{"namespace": "ns"},
		}}
		wrong.spoil(object.Object)
		assert.Equal(t, want, [2]string{object.GetAPIVersion(), object.GetNamespace()}, wrong)
	}
	m := NewModel(1)
	for range 2000 {
		if e := m.Draw(); e.Action == breakManifest {
			assert.NotEqual(t, e.writes[0].spec, e.writes[1].spec)
			assert.Len(t, e.writes[1].spec.Workload.Manifests, len(e.writes[0].spec.Workload.Manifests))
		}
	}
}

func TestManifestsOfARevision(t *testing.T) {
	for _, one := range newThings() {
		for revision := 1; revision < 30; revision++ {
			live := &unstructured.Unstructured{Object: one.manifest(revision)}
			assert.Equal(t, one.wanted(revision), fieldsOf(one, live), "%s at %d", one, revision)
		}
	}
}

// agreeing returns a world as the model wants it.
func agreeing(m *Model) *world {
	w := &world{
		hubHash: "hash", agentID: "hash", objects: map[int]*unstructured.Unstructured{},
		works: map[string]*workv1.ManifestWork{}, applied: map[string]*workv1.AppliedManifestWork{},
	}
	for _, o := range m.works {
		if o.exists {
			w.applied[w.recordName(o.name)] = &workv1.AppliedManifestWork{
				ObjectMeta: metav1.ObjectMeta{
					Name: w.recordName(o.name), UID: types.UID("uid-" + o.name),
					Finalizers: []string{names.FinalizerAppliedManifestWork}, Labels: map[string]string{"storm": o.label},
				},
				Spec: workv1.AppliedManifestWorkSpec{HubHash: "hash", AgentID: "hash", ManifestWorkName: o.name},
			}
		}
	}
	for _, t := range m.things {
		if must, _ := m.existence(w, t); !must {
			continue
		}
		live := &unstructured.Unstructured{Object: t.manifest(t.revision)}
		live.SetUID(types.UID(fmt.Sprintf("uid-%d", t.id)))
		if t.kind == widget || t.kind == gadget {
			live.Object["size"] = int64(defaultSize)
		}
		var refs []metav1.OwnerReference
		for _, o := range m.holders(t) {
			if t.writes() && o.owns(t) {
				refs = append(refs, metav1.OwnerReference{
					Kind: "AppliedManifestWork", Name: w.recordName(o.name), UID: types.UID("uid-" + o.name),
				})
			}
		}
		live.SetOwnerReferences(refs)
		w.objects[t.id] = live
	}
	for _, o := range m.works {
		if o.exists {
			agreeWork(w, o)
		}
	}
	return w
}

// agreeWork adds a work to the world, with its list.
func agreeWork(w *world, o *work) {
	live := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Name: o.name, Generation: 3, Finalizers: []string{names.FinalizerManifestWork},
	}}
	is := func(kind string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, ObservedGeneration: 3}
	}
	live.Status.Conditions = []metav1.Condition{is(workv1.WorkApplied), is(workv1.WorkAvailable)}
	record := w.applied[w.recordName(o.name)]
	for i, t := range o.things {
		_, name, resource := t.kind.names()
		gvk := t.kind.gvk()
		live.Status.ResourceStatus.Manifests = append(live.Status.ResourceStatus.Manifests, workv1.ManifestCondition{
			ResourceMeta: workv1.ManifestResourceMeta{
				Ordinal: int32(i), Group: gvk.Group, Version: gvk.Version, Kind: name, Resource: resource,
				Namespace: t.namespace, Name: t.name,
			},
			Conditions: []metav1.Condition{is(workv1.ManifestApplied), is(workv1.ManifestAvailable)},
		})
		record.Status.AppliedResources = append(record.Status.AppliedResources, workv1.AppliedManifestResourceMeta{
			ResourceIdentifier: identifier(t), Version: gvk.Version, UID: fmt.Sprintf("uid-%d", t.id),
		})
	}
	w.works[o.name] = live
}

// small is a model with one work that has a ConfigMap and a ClusterRole, and an orphan that was left.
func small() (m *Model, config, clusterRoleThing, orphan *thing) {
	m = NewModel(1)
	for _, t := range m.things {
		switch {
		case t.kind == configMap && config == nil && !t.ignores && t.bits(2)>>4&1 == 0:
			config = t
		case t.kind == clusterRole && clusterRoleThing == nil:
			clusterRoleThing = t
		case t.kind == secret && orphan == nil:
			orphan = t
		}
	}
	config.revision = 2
	w := m.works[0]
	w.reset()
	w.exists, w.things = true, []*thing{config, clusterRoleThing}
	orphan.presence = left
	return m, config, clusterRoleThing, orphan
}

// Shows: invariants/works-agree, invariants/nothing-taken
func TestCheckFindsWhatDiffers(t *testing.T) {
	m, config, _, orphan := small()
	require.Empty(t, m.Check(agreeing(m)))
	for name, tc := range map[string]struct {
		spoil func(*world)
		says  string
	}{
		"an object is missing":     {func(w *world) { delete(w.objects, config.id) }, "it does not exist"},
		"an orphan is missing":     {func(w *world) { delete(w.objects, orphan.id) }, "it was left there"},
		"a value differs":          {func(w *world) { set(w.objects[config.id], "x", "data", "s0") }, `s0 is "x"`},
		"a value too many":         {func(w *world) { set(w.objects[config.id], "x", "data", "more") }, `more is "x"`},
		"the owner is missing":     {func(w *world) { w.objects[config.id].SetOwnerReferences(nil) }, "its owners are map[]"},
		"a foreign finalizer":      {func(w *world) { w.objects[config.id].SetFinalizers([]string{finalizer}) }, "foreign finalizer"},
		"an orphan has an owner":   {func(w *world) { own(w.objects[orphan.id], "hash-work-0", "uid-work-0") }, "its owners are map[work-0"},
		"the record is missing":    {func(w *world) { delete(w.applied, "hash-work-0") }, "it has no applied record"},
		"the work is missing":      {func(w *world) { delete(w.works, "work-0") }, "the work is not on the hub"},
		"a work too many":          {func(w *world) { w.works["work-9"] = &workv1.ManifestWork{} }, "still on the hub"},
		"a record too many":        {func(w *world) { w.applied["hash-work-9"] = &workv1.AppliedManifestWork{} }, "has no work"},
		"the status is old":        {func(w *world) { w.works["work-0"].Generation = 4 }, "should be True at 4"},
		"the status is empty":      {func(w *world) { w.works["work-0"].Status = workv1.ManifestWorkStatus{} }, "0 manifests of 2"},
		"the list is empty":        {func(w *world) { w.applied["hash-work-0"].Status.AppliedResources = nil }, "does not list"},
		"the list has another UID": {func(w *world) { w.objects[config.id].SetUID("new") }, "with another UID"},
		"the intent has more": {func(w *world) {
			w.applied["hash-work-0"].Annotations = map[string]string{annotationIntent: `["/v1/secrets/a/b"]`}
		}, "its intent has"},
		"the record's spec differs": {func(w *world) { w.applied["hash-work-0"].Spec.AgentID = "x" }, "the spec of its record"},
	} {
		t.Run(name, func(t *testing.T) {
			w := agreeing(m)
			tc.spoil(w)
			wrong := m.Check(w)
			require.NotEmpty(t, wrong)
			assert.Contains(t, fmt.Sprint(wrong), tc.says)
		})
	}
}

// set sets a field of an object.
func set(live *unstructured.Unstructured, value string, path ...string) {
	_ = unstructured.SetNestedField(live.Object, value, path...)
}

// own makes a record the owner of an object.
func own(live *unstructured.Unstructured, name string, uid types.UID) {
	live.SetOwnerReferences([]metav1.OwnerReference{{Kind: "AppliedManifestWork", Name: name, UID: uid}})
}

// Shows: invariants/by-hand
func TestWhatHandsSetStaysByStrategy(t *testing.T) {
	m, config, _, _ := small()
	config.manager, config.force = "work-agent", true
	for name, tc := range map[string]struct {
		strategy workv1.UpdateStrategyType
		key      string
		wrong    bool
	}{
		"Update removes what a hand added":            {workv1.UpdateStrategyTypeUpdate, handKey(config), true},
		"Update puts back what a hand set":            {workv1.UpdateStrategyTypeUpdate, "s0", true},
		"ServerSideApply leaves what a hand added":    {workv1.UpdateStrategyTypeServerSideApply, handKey(config), false},
		"ServerSideApply puts back what a hand set":   {workv1.UpdateStrategyTypeServerSideApply, "s0", true},
		"CreateOnly leaves what a hand set":           {workv1.UpdateStrategyTypeCreateOnly, "s0", false},
		"CreateOnly leaves what a hand added":         {workv1.UpdateStrategyTypeCreateOnly, handKey(config), false},
		"nothing leaves what is of no hand, nor ours": {workv1.UpdateStrategyTypeCreateOnly, "other", true},
	} {
		t.Run(name, func(t *testing.T) {
			config.strategy = tc.strategy
			w := agreeing(m)
			value := "hand1"
			if tc.key == "other" {
				value = "x"
			}
			set(w.objects[config.id], value, "data", tc.key)
			assert.Equal(t, tc.wrong, len(m.Check(w)) > 0, m.Check(w))
			if config.keepable(tc.key) && !tc.wrong {
				config.keeps[tc.key] = keep{uid: fmt.Sprintf("uid-%d", config.id), value: "hand2"}
				assert.NotEmpty(t, m.Check(w), "what must stay was overwritten")
				delete(config.keeps, tc.key)
			}
		})
	}
}

func TestWhatLeavesItsLastWork(t *testing.T) {
	m, config, cluster, _ := small()
	w := m.works[0]
	w.policy, w.orphans = workv1.DeletePropagationPolicyTypeSelectivelyOrphan, map[int]bool{config.id: true}
	leaves := append(m.leave(w, config), m.leave(w, cluster)...)
	require.Len(t, leaves, 2)
	assert.Equal(t, left, config.presence)
	assert.False(t, leaves[0].goes)
	assert.Equal(t, gone, cluster.presence)
	assert.True(t, leaves[1].goes)
	m.Doubt(cluster)
	assert.Equal(t, open, cluster.presence)
}

// A work whose namespace goes with it is deleted, and another one gets the namespace, which may be in time: then what no
// work has stays in it.
func TestWhatIsInANamespaceThatAnotherWorkTakesOverMayStay(t *testing.T) {
	m := NewModel(1)
	at := slices.IndexFunc(m.things, func(t *thing) bool { return t.kind == namespace })
	home := m.things[at]
	child := m.children(home)[0]
	child.presence = left
	from, to := m.works[0], m.works[1]
	from.exists, to.exists = true, true
	for _, w := range []*work{from, to} {
		w.policy, w.orphans, w.ever = workv1.DeletePropagationPolicyTypeForeground, map[int]bool{}, map[int]*thing{}
	}
	m.put(from, home)
	from.orphans = map[int]bool{}
	m.leave(from, home)
	require.Equal(t, gone, child.presence)
	m.put(to, home)
	assert.Equal(t, open, child.presence)

	m.leave(to, home)
	m.Calm()
	require.Equal(t, gone, child.presence)
	m.put(to, home)
	assert.Equal(t, gone, child.presence, "the namespace went, and it with it")
}

// Shows: invariants/listed-until-gone
func TestWhatIsHeldUpStaysListed(t *testing.T) {
	m, config, _, _ := small()
	now := metav1.Now()
	for name, tc := range map[string]struct {
		spoil   func(*world)
		excused map[string]bool
		says    string
	}{
		"a record that lists it":     {func(*world) {}, nil, "[]"},
		"a record that was let go":   {func(w *world) { delete(w.applied, "hash-work-0") }, nil, "was let go"},
		"another record by the name": {func(w *world) { w.applied["hash-work-0"].UID = "new" }, nil, "was let go"},
		"a record that forgot it": {
			func(w *world) { w.applied["hash-work-0"].Status.AppliedResources = nil }, nil, "does not list it",
		},
		"a record that a hand took away": {
			func(w *world) { delete(w.applied, "hash-work-0") }, map[string]bool{"work-0": true}, "[]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := agreeing(m)
			w.objects[config.id].SetDeletionTimestamp(&now)
			w.objects[config.id].SetFinalizers([]string{finalizer})
			tc.spoil(w)
			assert.Contains(t, fmt.Sprint(m.CheckHeld(w, tc.excused)), tc.says)
		})
	}
}

func TestAnObjectThatWorksReleasedAMomentAgoMayComeBackWhenAHandDeletesIt(t *testing.T) {
	m, _, _, orphan := small()
	m.things = []*thing{orphan}
	draw := func() {
		t.Helper()
		for range 1000 {
			if m.handDelete() != nil {
				return
			}
		}
		require.Fail(t, "no object was deleted by hand")
	}
	orphan.presence, orphan.released = left, true
	draw()
	_, may := m.existence(agreeing(m), orphan)
	assert.True(t, may, "the agent may not have observed that no work writes it")

	m.Calm()
	orphan.presence = left
	draw()
	_, may = m.existence(agreeing(m), orphan)
	assert.False(t, may, "after a calm the agent knows")
}

func TestAWorkWithADefinitionIsNotMadeAgainWhileOneOfItsObjectsIsHeld(t *testing.T) {
	crd, one := &thing{id: 1, kind: definition}, &thing{id: 2, kind: widget}
	m := &Model{things: []*thing{crd, one}}
	assert.False(t, m.blocked(crd))
	one.held = true
	assert.True(t, m.blocked(crd), "the definition waits until its objects are gone")
	assert.True(t, m.blocked(one))
	assert.False(t, m.blocked(&thing{id: 3, kind: configMap}))
}

// TestAWorkThatOrphansIsMadeInThePlaceOfAnotherOneOnlyWhenItsObjectsGo is about a work that was stripped of its
// finalizer while the agent was away: the agent finds the new one, whose delete option counts.
func TestAWorkThatOrphansIsMadeInThePlaceOfAnotherOneOnlyWhenItsObjectsGo(t *testing.T) {
	waits := map[workv1.DeletePropagationPolicyType]bool{}
	for seed := range uint64(200) {
		m, config, _, _ := small()
		m.random = rand.New(rand.NewPCG(seed, 4))
		for _, o := range m.works[1:] {
			o.exists, o.things = true, nil // only the first one can be made
		}
		m.works[0].ever = map[int]*thing{config.id: config}
		m.remove(m.works[0], forgetWork)
		if e := m.create(); e != nil && !m.written(config) {
			waits[m.works[0].policy] = slices.ContainsFunc(e.leaves, func(l leaving) bool {
				return l.thing == config && l.left
			})
		}
	}
	assert.Equal(t, map[workv1.DeletePropagationPolicyType]bool{
		workv1.DeletePropagationPolicyTypeForeground: false, workv1.DeletePropagationPolicyTypeSelectivelyOrphan: false,
		workv1.DeletePropagationPolicyTypeOrphan: true,
	}, waits)
}

// An object leaves the only work that has it, which owns it: it is to be deleted for that alone. Then its namespace
// leaves the work, too, and another work takes that over.
func TestWhatLeftItsOwnWorkGoesWhateverBecomesOfItsNamespace(t *testing.T) {
	m := NewModel(1)
	home := m.things[slices.IndexFunc(m.things, func(t *thing) bool { return t.kind == namespace })]
	child := m.children(home)[0]
	from, to := m.works[0], m.works[1]
	from.exists, to.exists = true, true
	for _, w := range []*work{from, to} {
		w.policy, w.orphans, w.ever = workv1.DeletePropagationPolicyTypeForeground, map[int]bool{}, map[int]*thing{}
	}
	m.put(from, home)
	m.put(from, child)
	from.orphans = map[int]bool{}
	m.leave(from, child)
	require.Equal(t, gone, child.presence, "the work owned it")
	m.leave(from, home)
	m.put(to, home)
	assert.Equal(t, gone, child.presence, "an agent that forgets to delete %v is not noticed any more", child.name)
}
