package install

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/hubprocess"
	"github.com/spokelet/spokelet/internal/names"
)

func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// scene is a Placement with its PlacementDecisions, which have been as they are for an hour.
type scene struct {
	placement *clusterv1beta1.Placement
	pages     []*clusterv1beta1.PlacementDecision
	own       bool
	since     time.Time
}

// decided is a Placement whose only page has these clusters, and whose status agrees.
func decided(name string, clusters ...string) *scene {
	s := &scene{
		placement: &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(name), Generation: 1,
		}},
		pages: []*clusterv1beta1.PlacementDecision{pageOf(name, 1, clusters...)},
		since: noon().Add(-time.Hour),
	}
	s.placement.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.PlacementConditionSatisfied}}
	s.placement.Status.NumberOfSelectedClusters = int32(len(clusters))
	s.placement.Status.DecisionGroups = []clusterv1beta1.DecisionGroupStatus{{Decisions: []string{s.pages[0].Name}}}
	return s
}

// missing is a Placement that does not exist.
func missing() *scene { return &scene{since: noon().Add(-time.Hour)} }

// but changes a scene.
func (s *scene) but(changes ...func(*scene)) *scene {
	for _, change := range changes {
		change(s)
	}
	return s
}

// known returns what is known about the decisions.
func (s *scene) known() *fleet.Decisions {
	key := types.NamespacedName{Namespace: "ns", Name: "p"}
	if s.placement != nil {
		key = client.ObjectKeyFromObject(s.placement)
	}
	return fleet.NewDecisions(fleet.Seen{Key: key, Placement: s.placement, Pages: s.pages, Own: s.own}, s.since)
}

func pageOf(placement string, number int, clusters ...string) *clusterv1beta1.PlacementDecision {
	decision := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Name:            fmt.Sprintf("%s-decision-%d", placement, number),
		OwnerReferences: []metav1.OwnerReference{{UID: types.UID(placement), Controller: new(true)}},
	}}
	for _, c := range clusters {
		decision.Status.Decisions = append(decision.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: c})
	}
	return decision
}

// ready are the facts of an add-on that placements install, on cluster c1.
func ready(selected bool) facts {
	return facts{
		now: noon(), cluster: "c1",
		cma: &addonv1beta1.ClusterManagementAddOn{
			ObjectMeta: metav1.ObjectMeta{Name: "hello", UID: "cma"},
			Spec: addonv1beta1.ClusterManagementAddOnSpec{InstallStrategy: addonv1beta1.InstallStrategy{
				Type: addonv1beta1.AddonInstallStrategyPlacements,
			}},
		},
		managed: &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "c1"}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		},
		namespace: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: "c1", Labels: map[string]string{names.LabelClusterName: "c1"},
		}},
		selected: selected,
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
	mine(f)
	f.addon.SetLabels(map[string]string{names.LabelInstalledBy: names.InstalledByPlacement})
	setOwner(f.addon, f.cma, "")
}

// mine adds the add-on as a person creates it.
func mine(f *facts) {
	f.addon = &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "hello"}}
}

func manual(f *facts) {
	if cma, isBeta := f.cma.(*addonv1beta1.ClusterManagementAddOn); isBeta {
		cma.Spec.InstallStrategy.Type = addonv1beta1.AddonInstallStrategyManual
	}
}
func retired(f *facts)   { f.cma.SetDeletionTimestamp(new(metav1.NewTime(noon()))) }
func addonGoes(f *facts) { f.addon.SetDeletionTimestamp(new(metav1.NewTime(noon()))) }

func lifecycle(value string) func(*facts) {
	return func(f *facts) { f.cma.SetAnnotations(map[string]string{names.AnnotationLifecycle: value}) }
}

func TestWhatHappensToAnAddOnOnACluster(t *testing.T) {
	tests := map[string]struct {
		f    facts
		want string
	}{
		"installed where a placement selects the cluster":       {ready(true), "create"},
		"not where none does":                                   {ready(false), ""},
		"left alone where it is":                                {with(ready(true), installed), ""},
		"looked at when no placement selects its cluster":       {with(ready(false), installed), "unselected"},
		"given its owner when a person created it elsewhere":    {with(ready(false), mine), "update unselected"},
		"given its owner when a person created it":              {with(ready(true), mine), "update"},
		"left as it is when the strategy becomes manual":        {with(ready(false), installed, manual), ""},
		"not installed by hand":                                 {with(ready(true), manual), ""},
		"given its owner when installed by hand":                {with(ready(false), mine, manual), "update"},
		"not touched when the add-on is being deleted as whole": {with(ready(true), retired), ""},
		"not removed when the add-on is being deleted as whole": {with(ready(false), installed, retired), ""},
		"not touched when it runs itself":                       {with(ready(true), lifecycle("self")), ""},
		"not even given an owner when it runs itself":           {with(ready(false), mine, manual, lifecycle("self")), ""},
		"installed when the life cycle says addon-manager":      {with(ready(true), lifecycle("addon-manager")), "create"},
		"installed when the life cycle is empty":                {with(ready(true), lifecycle("")), "create"},
		"waited for while it is going though it is selected":    {with(ready(true), installed, addonGoes), ""},
		"not looked at while it is going":                       {with(ready(false), installed, addonGoes), ""},
		"nothing at all without a ClusterManagementAddOn":       {with(ready(false), func(f *facts) { f.cma = nil }), ""},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) { assert.Equal(t, tc.want, verbOf(decide(tc.f))) })
	}
}

func verbOf(p plan) string {
	var verbs []string
	if p.create != nil {
		verbs = append(verbs, "create")
	}
	if p.update != nil {
		verbs = append(verbs, "update")
	}
	if p.notReady != nil {
		verbs = append(verbs, "waits")
	}
	if p.unselected {
		verbs = append(verbs, "unselected")
	}
	return strings.Join(verbs, " ")
}

func TestWhatIsNotCreatedYet(t *testing.T) {
	tests := map[string]struct {
		change func(*facts)
		want   string
	}{
		"without a cluster":                    {func(f *facts) { f.managed = nil }, "there is no cluster c1"},
		"on a cluster that is leaving":         {func(f *facts) { f.managed.DeletionTimestamp = new(metav1.NewTime(noon())) }, "cluster c1 is being deleted"},
		"on a cluster that is not accepted":    {func(f *facts) { f.managed.Spec.HubAcceptsClient = false }, "cluster c1 is not accepted"},
		"without a namespace":                  {func(f *facts) { f.namespace = nil }, "not accepted yet"},
		"in a namespace of others":             {func(f *facts) { f.namespace.Labels = nil }, "kubectl label namespace c1"},
		"in a namespace that is being deleted": {func(f *facts) { f.namespace.DeletionTimestamp = new(metav1.NewTime(noon())) }, "namespace c1 is being deleted"},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			p := decide(with(ready(true), tc.change))
			assert.Nil(t, p.create)
			require.ErrorContains(t, p.notReady, tc.want)
		})
	}
}

// An add-on that waits for a person says so where its author looks.
//
// Shows: security/namespace-of-others
func TestTheAuthorOfAnAddOnIsToldThatANamespaceBelongsToOthers(t *testing.T) {
	recorder := events.NewFakeRecorder(1)
	r := &Reconciler{Recorder: recorder}
	for sentence, tc := range map[string]struct {
		change func(*facts)
		told   bool
	}{
		"in a namespace of others": {func(f *facts) { f.namespace.Labels = nil }, true},
		"in that of another cluster": {func(f *facts) {
			f.namespace.Labels = map[string]string{names.LabelClusterName: "c2"}
		}, true},
		"the cluster is not accepted": {func(f *facts) { f.managed.Spec.HubAcceptsClient, f.namespace.Labels = false, nil }, false},
	} {
		f := with(ready(true), tc.change)
		r.act(t.Context(), f, decide(f))
		select {
		case event := <-recorder.Events:
			assert.True(t, tc.told, sentence)
			assert.Contains(t, event, "Warning NamespaceOfOthers The add-on is not installed on cluster c1: ", sentence)
			assert.Contains(t, event, "kubectl label namespace c1", sentence)
		default:
			assert.False(t, tc.told, sentence)
		}
	}
}

func TestWhatIsCreated(t *testing.T) {
	f := ready(true)
	f.managed.Annotations = map[string]string{
		"addon.open-cluster-management.io/hosting-cluster-name": "host",
		"addon.open-cluster-management.io/values":               "{}",
		"addon.open-cluster-management.iox/near":                "no",
		"other":                                                 "no",
	}
	got := decide(f).create
	require.NotNil(t, got)
	assert.Equal(t, "c1", got.Namespace)
	assert.Equal(t, "hello", got.Name)
	assert.Equal(t, map[string]string{
		"addon.open-cluster-management.io/values": "{}",
		names.AnnotationCopied:                    "values",
	}, got.Annotations)
	assert.Equal(t, []metav1.OwnerReference{{
		APIVersion: "addon.open-cluster-management.io/v1beta1", Kind: "ClusterManagementAddOn", Name: "hello", UID: "cma",
		Controller: new(true), BlockOwnerDeletion: new(true),
	}}, got.OwnerReferences)
	assert.Equal(t, addonv1beta1.ManagedClusterAddOnSpec{}, got.Spec)
}

func TestOwners(t *testing.T) {
	cma := ready(true).cma
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
			changed := setOwner(addon, cma, "")
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
	_, err := fleet.TrimDecision(decision)
	require.NoError(t, err)
	require.Len(t, decision.ManagedFields, 1)
	assert.Empty(t, decision.ManagedFields[0].Manager)
	assert.Equal(t, noon(), fleet.LastWritten(decision).UTC())
	_, err = fleet.TrimDecision("no object")
	require.NoError(t, err)

	cluster := clusterThat(metav1.ConditionTrue, noon())
	cluster.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "a", Time: new(metav1.NewTime(noon()))}}
	trims := &hubprocess.Trims{}
	_, err = fleet.KeepWritten(trims.Cluster)(cluster)
	require.NoError(t, err)
	assert.Equal(t, []metav1.ManagedFieldsEntry{{Time: new(metav1.NewTime(noon()))}}, cluster.ManagedFields)
}

func TestWhatAChangeOfAPageConcerns(t *testing.T) {
	older, newer := []string{"a", "b", "c"}, []string{"b", "c", "d"}
	assert.Equal(t, []string{"d"}, difference(newer, older))
	assert.Equal(t, []string{"a"}, difference(older, newer))
	assert.Empty(t, difference([]string{"a"}, []string{"a"}))
}
