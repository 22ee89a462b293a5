package install

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/policies"
)

func brought(f *facts) { f.brought = true }
func byDependency(f *facts) {
	installed(f)
	f.addon.SetLabels(map[string]string{names.LabelInstalledBy: names.InstalledByDependency})
}

// Shows: policies/depends-brings-decision
func TestWhatAnAddOnBringsAlong(t *testing.T) {
	for sentence, tc := range map[string]struct {
		f           facts
		want, label string
	}{
		"it is installed where another one brings it":   {with(ready(false), brought), "create", names.InstalledByDependency},
		"also one that people install otherwise":        {with(ready(false), brought, manual), "create", names.InstalledByDependency},
		"a placement that selects the cluster counts":   {with(ready(true), brought), "create", names.InstalledByPlacement},
		"one that is there stays as it is":              {with(ready(false), byDependency, brought), "unselected", ""},
		"it belongs to the placement that selects it":   {with(ready(true), byDependency), "update", names.InstalledByPlacement},
		"what nobody brings any more is looked at":      {with(ready(false), byDependency), "unselected", ""},
		"also where people install it otherwise":        {with(ready(false), byDependency, manual), "unselected", ""},
		"that of a person gets its owner, and no label": {with(ready(false), mine, brought, manual), "update", ""},
		"what its author manages is not installed":      {with(ready(false), brought, lifecycle("self")), "", ""},
		"it waits for a cluster that is not accepted":   {with(ready(false), brought, refused), "waits", ""},
	} {
		p := decide(tc.f)
		assert.Equal(t, tc.want, verbOf(p), sentence)
		switch {
		case tc.label == "":
		case p.create != nil:
			assert.Equal(t, tc.label, p.create.GetLabels()[names.LabelInstalledBy], sentence)
		default:
			assert.Equal(t, tc.label, p.update.GetLabels()[names.LabelInstalledBy], sentence)
		}
	}
}

// Shows: policies/depends-removal-decision
func TestWhenAnAddOnGoesThatOthersDependOn(t *testing.T) {
	hold, bring := gate.Others{Hold: []string{"gateway"}}, gate.Others{Hold: []string{"gateway"}, Bring: []string{"gateway"}}
	known := dependencyFacts{knows: true, brings: true}
	closed := known
	closed.gate = gate.New("hello", &policies.AddOnPolicy{Spec: policies.AddOnPolicySpec{Removals: policies.RemovalsInWindows}},
		[]policies.MaintenanceWindow{{ObjectMeta: metav1.ObjectMeta{Name: "freeze"}, Spec: policies.MaintenanceWindowSpec{
			Kind: "Deny", Schedule: "0 12 * * *", Duration: metav1.Duration{Duration: time.Hour},
		}}})
	goes := func(f *facts) { f.managed.DeletionTimestamp = new(metav1.NewTime(noon())) }
	unread := known
	unread.unknown = errors.New("AddOnPolicy gateway cannot be decoded")
	cyclic := known
	cyclic.cycle = "gateway > hello > gateway"
	for sentence, tc := range map[string]struct {
		f      facts
		others gate.Others
		says   dependencyFacts
		want   string
		kept   string
	}{
		"when none of them is there": {f: with(ready(false), installed), says: known, want: "remove"},
		"after one that is there": {
			f: with(ready(false), installed), others: hold, says: known, want: "kept",
			kept: "add-ons that depend on it are on the same clusters and go first: gateway",
		},
		"with its cluster, whatever is there":            {f: with(ready(false), installed, goes), others: hold, says: known, want: "remove"},
		"it stays, and belongs to who brings it":         {f: with(ready(false), installed), others: bring, says: known, want: "relabel"},
		"what others bring stays while they do":          {f: with(ready(false), byDependency), others: bring, says: known, want: "done"},
		"what others brought goes with them":             {f: with(ready(false), byDependency), says: known, want: "remove"},
		"not while nobody knows what the policies say":   {f: with(ready(false), byDependency), says: dependencyFacts{brings: true}, want: "kept", kept: "not in force"},
		"not while one of them cannot be read":           {f: with(ready(false), byDependency), says: unread, want: "kept", kept: "cannot be decoded"},
		"nor what a placement installed":                 {f: with(ready(false), installed), says: unread, want: "kept", kept: "cannot be decoded"},
		"not what others brought, while that is a cycle": {f: with(ready(false), byDependency), says: cyclic, want: "kept", kept: "gateway > hello > gateway"},
		"a cycle orders nothing":                         {f: with(ready(false), installed), says: cyclic, want: "remove"},
		"not while the windows are closed": {
			f: with(ready(false), installed), says: closed, want: "kept",
			kept: "their windows do not let them go, such as that of cluster c1: MaintenanceWindow freeze denies it; it may begin " +
				"at 2026-03-01T13:00:00Z",
		},
		"with its cluster, whatever the windows say":                               {f: with(ready(false), installed, goes), says: closed, want: "remove"},
		"what placements installed stays when the strategy is Manual":              {f: with(ready(false), installed, manual), says: known, want: "done"},
		"it belongs to nobody else then, also where another one brings it":         {f: with(ready(false), installed, manual), others: bring, says: known, want: "done"},
		"what others brought goes with them, also where people install the add-on": {f: with(ready(false), byDependency, manual), says: known, want: "remove"},
	} {
		var placements []*fleet.Decisions
		if addonapi.StrategyOf(tc.f.cma).ByPlacements {
			placements = append(placements, decided("p", "x").known())
		}
		f := removalOf(tc.f, placements...)
		f.others, f.candidates[0].others = tc.says, tc.others
		r := decideRemovals(f)
		assert.Equal(t, tc.want == "remove", len(r.remove) == 1, sentence)
		assert.Equal(t, tc.want == "done", len(r.done) == 1, sentence)
		assert.Equal(t, tc.want == "relabel", len(r.relabel) == 1, sentence)
		if assert.Equal(t, tc.want == "kept", len(r.kept) == 1, sentence) && tc.kept != "" {
			assert.Contains(t, r.kept[0], tc.kept, sentence)
		}
		assert.Equal(t, r.closed != nil, !r.wake.IsZero(), "%s: it wakes at the edge", sentence)
	}
}

// What another add-on brought goes with it, and does not wait for a person: the removal of the other one was one that
// counts. Where none is seen to go, a policy may bring it no more by mistake, whatever other policies say.
func TestWhatCountsForTheLimitOfWhatOthersBrought(t *testing.T) {
	for sentence, tc := range map[string]struct {
		follows bool
		places  []*fleet.Decisions
		held    int
		says    string
	}{
		"it follows the other add-on": {follows: true},
		"no policy names it any more": {held: 30, says: "no AddOnPolicy brings it to 30 clusters any more"},
		"no policy names it any more, and placements select it elsewhere": {
			places: []*fleet.Decisions{decided("p", "x").known()}, held: 30,
			says: "no placement selects, and no AddOnPolicy brings it to, 30 clusters any more, and no edit explains it: c000",
		},
	} {
		f := crowd(30, func(f *fleetFacts) {
			f.others = dependencyFacts{knows: true, brings: true}
			f.placements = tc.places
			for i := range f.candidates {
				f.candidates[i].absence.follows = tc.follows
				f.candidates[i].addon.SetLabels(map[string]string{names.LabelInstalledBy: names.InstalledByDependency})
			}
		})
		r := decideRemovals(f)
		assert.Len(t, r.held, tc.held, sentence)
		assert.Len(t, r.remove, 30-tc.held, sentence)
		assert.Contains(t, r.annotations[names.AnnotationRemovalHeld], tc.says, sentence)
	}
}

func TestWhatTheOthersOnAClusterMean(t *testing.T) {
	at := func(deleting bool) client.Object {
		o := &addonv1beta1.ManagedClusterAddOn{}
		if deleting {
			o.DeletionTimestamp = new(metav1.NewTime(noon()))
		}
		return o
	}
	order := gate.NewOrder([]policies.AddOnPolicy{
		{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: policies.AddOnPolicySpec{DependsOn: []policies.Dependency{{Name: "x", Install: true}}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: policies.AddOnPolicySpec{DependsOn: []policies.Dependency{
			{Name: "x", Type: policies.DependencyOptional},
		}}},
	})
	for sentence, tc := range map[string]struct {
		a, b client.Object
		err  error
		want gate.Others
	}{
		"none is there":                {},
		"one that brings it":           {a: at(false), want: gate.Others{Bring: []string{"a"}, Hold: []string{"a"}}},
		"one that goes":                {a: at(true), want: gate.Others{Hold: []string{"a"}}},
		"one that does without":        {b: at(false)},
		"one that does without, going": {b: at(true), want: gate.Others{Hold: []string{"b"}}},
		"one that cannot be decoded":   {err: &decode.Error{}, want: gate.Others{Bring: []string{"a"}, Hold: []string{"a"}}},
	} {
		got, err := order.Others(types.NamespacedName{Namespace: "c", Name: "x"}, func(key types.NamespacedName) (client.Object, error) {
			if key.Name == "a" {
				return tc.a, tc.err
			}
			return tc.b, tc.err
		})
		require.NoError(t, err, sentence)
		assert.Equal(t, tc.want, got, sentence)
	}
}
