package install

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// decided is a Placement whose only page has these clusters, and whose status agrees.
func decided(name string, clusters ...string) placementFacts {
	p := placementFacts{
		key: types.NamespacedName{Namespace: "ns", Name: name},
		placement: &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(name),
		}},
		decisions: []*clusterv1beta1.PlacementDecision{pageOf(name, 1, clusters...)},
	}
	p.placement.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.PlacementConditionSatisfied}}
	p.placement.Status.NumberOfSelectedClusters = int32(len(clusters))
	p.placement.Status.DecisionGroups = []clusterv1beta1.DecisionGroupStatus{{Decisions: []string{p.decisions[0].Name}}}
	return p
}

func pageOf(placement string, number int, clusters ...string) *clusterv1beta1.PlacementDecision {
	decision := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Name:            placement + "-decision-" + string(rune('0'+number)),
		OwnerReferences: []metav1.OwnerReference{{UID: types.UID(placement), Controller: new(true)}},
	}}
	for _, c := range clusters {
		decision.Status.Decisions = append(decision.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: c})
	}
	return decision
}

// ready are the facts of an add-on that two Placements could install on cluster c1.
func ready(placements ...placementFacts) facts {
	return facts{
		now: noon(), cluster: "c1",
		cma: &addonv1beta1.ClusterManagementAddOn{
			ObjectMeta: metav1.ObjectMeta{Name: "hello", UID: "cma"},
			Spec: addonv1beta1.ClusterManagementAddOnSpec{InstallStrategy: addonv1beta1.InstallStrategy{
				Type: addonv1beta1.AddonInstallStrategyPlacements,
			}},
		},
		managed:    &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}},
		namespace:  &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "c1"}},
		placements: placements,
	}
}

func with(f facts, change ...func(*facts)) facts {
	for _, c := range change {
		c(&f)
	}
	return f
}

// installed adds the add-on as this reconciler creates it.
func installed(f *facts) {
	f.addon = &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Namespace: "c1", Name: "hello", Labels: map[string]string{names.LabelInstalledBy: names.InstalledByPlacement},
	}}
	setOwner(f.addon, f.cma)
}

// mine adds the add-on as a person creates it.
func mine(f *facts) {
	f.addon = &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "hello"}}
}

func manual(f *facts) {
	f.cma.Spec.InstallStrategy.Type = addonv1beta1.AddonInstallStrategyManual
}
func nothing(f *facts)   { f.placements = nil }
func retired(f *facts)   { f.cma.DeletionTimestamp = new(metav1.NewTime(noon())) }
func addonGoes(f *facts) { f.addon.DeletionTimestamp = new(metav1.NewTime(noon())) }

func lifecycle(value string) func(*facts) {
	return func(f *facts) { f.cma.Annotations = map[string]string{names.AnnotationLifecycle: value} }
}

func TestWhatHappensToAnAddOnOnACluster(t *testing.T) {
	tests := map[string]struct {
		f    facts
		want string
	}{
		"installed where a placement selects the cluster":       {ready(decided("p", "c1")), "create"},
		"installed where one of two placements does":            {ready(decided("p", "x"), decided("q", "c1")), "create"},
		"installed where the other placement is missing":        {ready(placementFacts{}, decided("q", "c1")), "create"},
		"not where none does":                                   {ready(decided("p", "x")), ""},
		"left alone where it is":                                {with(ready(decided("p", "c1")), installed), ""},
		"removed when the cluster leaves all placements":        {with(ready(decided("p", "x"), decided("q")), installed), "remove"},
		"kept while another placement selects the cluster":      {with(ready(decided("p", "x"), decided("q", "c1")), installed), ""},
		"removed when no placement is listed any more":          {with(ready(), installed, nothing), "remove"},
		"kept when one placement is missing":                    {with(ready(decided("p"), placementFacts{}), installed), "kept"},
		"kept when a person created it":                         {with(ready(decided("p")), mine), "update"},
		"given its owner when a person created it":              {with(ready(decided("p", "c1")), mine), "update"},
		"left as it is when the strategy becomes manual":        {with(ready(decided("p")), installed, manual), ""},
		"not installed by hand":                                 {with(ready(decided("p", "c1")), manual), ""},
		"given its owner when installed by hand":                {with(ready(), mine, manual), "update"},
		"not touched when the add-on is being deleted as whole": {with(ready(decided("p", "c1")), retired), ""},
		"not removed when the add-on is being deleted as whole": {with(ready(decided("p")), installed, retired), ""},
		"not touched when it runs itself":                       {with(ready(decided("p", "c1")), lifecycle("self")), ""},
		"not even given an owner when it runs itself":           {with(ready(), mine, manual, lifecycle("self")), ""},
		"installed when the life cycle says addon-manager":      {with(ready(decided("p", "c1")), lifecycle("addon-manager")), "create"},
		"installed when the life cycle is empty":                {with(ready(decided("p", "c1")), lifecycle("")), "create"},
		"waited for while it is going though it is selected":    {with(ready(decided("p", "c1")), installed, addonGoes), ""},
		"not deleted again while it is going":                   {with(ready(decided("p")), installed, addonGoes), ""},
		"nothing at all without a ClusterManagementAddOn":       {with(ready(), func(f *facts) { f.cma = nil }), ""},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) { assert.Equal(t, tc.want, verbOf(decide(tc.f))) })
	}
}

func verbOf(p plan) string {
	switch {
	case p.create != nil:
		return "create"
	case p.remove:
		return "remove"
	case p.blocked != nil:
		return "kept"
	case p.update != nil:
		return "update"
	case p.notReady != nil:
		return "waits"
	}
	return ""
}

func TestWhatIsNotCreatedYet(t *testing.T) {
	tests := map[string]struct {
		change func(*facts)
		want   string
	}{
		"without a cluster":                    {func(f *facts) { f.managed = nil }, "there is no cluster c1"},
		"on a cluster that is leaving":         {func(f *facts) { f.managed.DeletionTimestamp = new(metav1.NewTime(noon())) }, "cluster c1 is being deleted"},
		"without a namespace":                  {func(f *facts) { f.namespace = nil }, "not accepted yet"},
		"in a namespace that is being deleted": {func(f *facts) { f.namespace.DeletionTimestamp = new(metav1.NewTime(noon())) }, "namespace c1 is being deleted"},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			p := decide(with(ready(decided("p", "c1")), tc.change))
			assert.Nil(t, p.create)
			require.ErrorContains(t, p.notReady, tc.want)
		})
	}
}

func TestWhatIsCreated(t *testing.T) {
	f := ready(decided("p", "c1"))
	f.managed.Annotations = map[string]string{
		"addon.open-cluster-management.io/hosting-cluster-name": "host",
		"addon.open-cluster-management.iox/near":                "no",
		"other":                                                 "no",
	}
	got := decide(f).create
	require.NotNil(t, got)
	assert.Equal(t, "c1", got.Namespace)
	assert.Equal(t, "hello", got.Name)
	assert.Equal(t, map[string]string{"addon.open-cluster-management.io/hosting-cluster-name": "host"}, got.Annotations)
	assert.Equal(t, []metav1.OwnerReference{{
		APIVersion: "addon.open-cluster-management.io/v1beta1", Kind: "ClusterManagementAddOn", Name: "hello", UID: "cma",
		Controller: new(true), BlockOwnerDeletion: new(true),
	}}, got.OwnerReferences)
	assert.Equal(t, addonv1beta1.ManagedClusterAddOnSpec{}, got.Spec)
}

func TestWhenAPlacementSaysSurelyThatAClusterIsOut(t *testing.T) {
	paged := func(change func(*placementFacts)) placementFacts {
		p := decided("p", "a", "b")
		p.decisions = []*clusterv1beta1.PlacementDecision{pageOf("p", 1, "a"), pageOf("p", 2, "b")}
		p.placement.Status.DecisionGroups[0].Decisions = []string{"p-decision-2", "p-decision-1"}
		change(&p)
		return p
	}
	just := func(p *placementFacts) {
		p.decisions[1].ManagedFields = []metav1.ManagedFieldsEntry{{Time: new(metav1.NewTime(noon().Add(-time.Second)))}}
	}
	tests := map[string]struct {
		p    placementFacts
		want string
		wake time.Time
	}{
		"one page that agrees with the status": {p: decided("p", "a")},
		"no clusters at all":                   {p: decided("p")},
		"several pages that have been quiet":   {p: paged(func(*placementFacts) {})},
		"pages of a writer that moves no cluster": {p: paged(func(p *placementFacts) {
			just(p)
			for _, decision := range p.decisions {
				decision.Annotations = map[string]string{names.AnnotationStickyPages: "true"}
			}
		})},
		"not several pages of which one was just written": {
			p: paged(just), want: "being rewritten", wake: noon().Add(2 * time.Second),
		},
		"not without the Placement": {p: placementFacts{key: types.NamespacedName{Namespace: "ns", Name: "p"}}, want: "placement ns/p does not exist"},
		"not while the Placement is going": {p: func() placementFacts {
			p := decided("p")
			p.placement.DeletionTimestamp = new(metav1.NewTime(noon()))
			return p
		}(), want: "is being deleted"},
		"not without any page": {p: func() placementFacts { p := decided("p"); p.decisions = nil; return p }(), want: "has no PlacementDecision"},
		"not with a page of an earlier Placement": {p: func() placementFacts {
			p := decided("p")
			p.placement.UID = "new"
			return p
		}(), want: "earlier"},
		"not when the status counts otherwise": {p: func() placementFacts {
			p := decided("p", "a")
			p.placement.Status.NumberOfSelectedClusters = 2
			return p
		}(), want: "name 1 clusters, its status says 2"},
		"not when the status names other pages": {p: paged(func(p *placementFacts) {
			p.placement.Status.DecisionGroups[0].Decisions = []string{"p-decision-1"}
		}), want: "its status names"},
		"not when the Placement is misconfigured": {p: func() placementFacts {
			p := decided("p", "a")
			p.placement.Status.Conditions = []metav1.Condition{{
				Type: clusterv1beta1.PlacementConditionMisconfigured, Status: metav1.ConditionTrue, Message: "bad field",
			}}
			return p
		}(), want: "bad field"},
		"when nobody reports on the Placement": {p: func() placementFacts {
			p := decided("p", "a")
			p.placement.Status = clusterv1beta1.PlacementStatus{}
			return p
		}()},
		"when somebody else schedules the Placement": {p: func() placementFacts {
			p := decided("p", "a")
			p.placement.Annotations = map[string]string{clusterv1beta1.PlacementDisableAnnotation: "true"}
			p.placement.Status.NumberOfSelectedClusters = 7
			return p
		}()},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			wake, err := tc.p.uncertain(noon())
			assert.Equal(t, tc.wake, wake)
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
			p := decide(with(ready(decided("q"), tc.p), installed))
			assert.False(t, p.remove)
			assert.Equal(t, tc.wake, p.wake)
		})
	}
}

func TestOwners(t *testing.T) {
	cma := ready().cma
	ours := metav1.OwnerReference{
		APIVersion: "addon.open-cluster-management.io/v1beta1", Kind: "ClusterManagementAddOn", Name: "hello", UID: "cma",
		Controller: new(true), BlockOwnerDeletion: new(true),
	}
	earlier, alpha, notController := ours, ours, ours
	earlier.UID, alpha.APIVersion, notController.Controller = "old", "addon.open-cluster-management.io/v1alpha1", nil
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}
	controller := other
	controller.Controller = new(true)
	tests := map[string]struct {
		have, want []metav1.OwnerReference
	}{
		"is added":                                 {nil, []metav1.OwnerReference{ours}},
		"is left when it is right":                 {[]metav1.OwnerReference{ours}, nil},
		"replaces that of an earlier life":         {[]metav1.OwnerReference{earlier}, []metav1.OwnerReference{ours}},
		"replaces that in another version":         {[]metav1.OwnerReference{alpha}, []metav1.OwnerReference{ours}},
		"replaces that which is no controller":     {[]metav1.OwnerReference{notController}, []metav1.OwnerReference{ours}},
		"is kept once":                             {[]metav1.OwnerReference{ours, earlier}, []metav1.OwnerReference{ours}},
		"joins others":                             {[]metav1.OwnerReference{other}, []metav1.OwnerReference{other, ours}},
		"does not contend with another controller": {[]metav1.OwnerReference{controller}, []metav1.OwnerReference{controller, notController}},
		"is settled beside another controller":     {[]metav1.OwnerReference{controller, notController}, nil},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			addon := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{OwnerReferences: tc.have}}
			changed := setOwner(addon, cma)
			assert.Equal(t, tc.want != nil, changed)
			if tc.want != nil {
				assert.Equal(t, tc.want, addon.OwnerReferences)
			}
		})
	}
}

func TestTheCacheKeepsTheTimeOfTheLastWriteOfAPage(t *testing.T) {
	decision := pageOf("p", 1, "a")
	decision.CreationTimestamp = metav1.NewTime(noon().Add(-time.Hour))
	decision.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "a", Time: new(metav1.NewTime(noon()))}, {Manager: "b", Time: new(metav1.NewTime(noon().Add(-time.Minute)))},
	}
	_, err := TrimDecision(decision)
	require.NoError(t, err)
	require.Len(t, decision.ManagedFields, 1)
	assert.Empty(t, decision.ManagedFields[0].Manager)
	assert.Equal(t, noon(), lastWritten(decision).UTC())
	_, err = TrimDecision("no object")
	require.NoError(t, err)
}

func TestWhatAChangeOfAPageConcerns(t *testing.T) {
	assert.ElementsMatch(t, []string{"a", "d"}, difference([]string{"a", "b", "c"}, []string{"b", "c", "d"}))
	assert.Empty(t, difference([]string{"a"}, []string{"a"}))
	assert.Len(t, keys([]string{"x", "y"}, []string{"a", "b", "c"}), 6)
}
