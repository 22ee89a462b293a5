package cluster

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

func TestWhatADecisionReads(t *testing.T) {
	all := renderGrants("c1", true)
	noWork := all
	noWork.work = nil
	there := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	empty := there.DeepCopy()
	empty.Status.Conditions = []metav1.Condition{{
		Type: clusterv1.ManagedClusterConditionDeleting, Status: metav1.ConditionTrue,
	}}
	works := []*workv1.ManifestWork{{}}
	going := []*workv1.ManifestWork{{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: deletedAt()}}}
	addons := []*addonv1beta1.ManagedClusterAddOn{{}}
	for sentence, tc := range map[string]struct {
		phase       phase
		facts       facts
		works, live bool
	}{
		"an accepted cluster reads no works":             {phase: phaseAccepted, facts: facts{cluster: there, have: all}, live: true},
		"a new cluster without access reads no works":    {phase: phaseNew, facts: facts{cluster: there}},
		"a new cluster with old access needs both":       {phase: phaseNew, facts: facts{cluster: there, have: all}, works: true, live: true},
		"a denied cluster without access to works":       {phase: phaseDenied, facts: facts{cluster: there, have: noWork}},
		"a denied cluster with access to works":          {phase: phaseDenied, facts: facts{cluster: there, have: all}, works: true, live: true},
		"a denied cluster that still has works":          {phase: phaseDenied, facts: facts{cluster: there, have: all, works: works}, works: true},
		"add-ons of a denied cluster do not matter":      {phase: phaseDenied, facts: facts{cluster: there, have: all, addons: addons}, works: true, live: true},
		"a deleted cluster":                              {phase: phaseDeleting, facts: facts{cluster: there}, works: true, live: true},
		"a deleted cluster that still has works":         {phase: phaseDeleting, facts: facts{cluster: there, works: works}, works: true, live: true},
		"a deleted cluster whose works are going":        {phase: phaseDeleting, facts: facts{cluster: there, works: going}, works: true},
		"a deleted cluster that still has add-ons":       {phase: phaseDeleting, facts: facts{cluster: there, addons: addons}, works: true},
		"a deleted cluster that says that it is empty":   {phase: phaseDeleting, facts: facts{cluster: empty}, works: true, live: true},
		"a deleted cluster that was found empty, access": {phase: phaseDeleting, facts: facts{cluster: empty, have: all}, works: true, live: true},
		"a cluster that vanished":                        {phase: phaseGone, facts: facts{have: all}, works: true, live: true},
		"a cluster that vanished and has works":          {phase: phaseGone, facts: facts{have: all, works: works}, works: true, live: true},
		"a name that never was a cluster":                {phase: phaseGone, facts: facts{}},
		"any access proves that a cluster was there":     {phase: phaseGone, facts: facts{have: grants{role: all.role}}, works: true, live: true},
		"so does a binding of the cluster":               {phase: phaseGone, facts: facts{have: grants{binding: all.binding}}, works: true, live: true},
		"so does a binding in its namespace":             {phase: phaseGone, facts: facts{have: grants{registration: all.registration}}, works: true, live: true},
		"so does the binding for works":                  {phase: phaseGone, facts: facts{have: grants{work: all.work}}, works: true, live: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			tc.facts.name = "c1"
			assert.Equal(t, tc.works, needsWorks(tc.phase, tc.facts), "works")
			assert.Equal(t, tc.live, needsLiveCheck(tc.phase, tc.facts), "live")
		})
	}
}

// Shows: registration/restored-no-access
func TestAClusterThatOnlyTheCacheHasGetsNoAccess(t *testing.T) {
	all := renderGrants("c1", true)
	noRole := all
	noRole.role = nil
	narrowed := settledFacts()
	narrowed.have.role = renderGrants("c1", false).role
	there, foreign, going := settledFacts().namespace, settledFacts().namespace, settledFacts().namespace
	foreign.Labels, going.DeletionTimestamp = nil, deletedAt()
	for sentence, tc := range map[string]struct {
		phase phase
		facts facts
		gives bool
	}{
		"an accepted cluster without a namespace": {phaseAccepted, facts{have: all}, true},
		"one without a role":                      {phaseAccepted, facts{name: "c1", have: noRole, namespace: there}, true},
		"one that has everything":                 {phaseAccepted, settledFacts(), false},
		"one whose role is that of a denied one":  {phaseAccepted, narrowed, true},
		"one with a namespace of others":          {phaseAccepted, facts{name: "c1", namespace: foreign}, false},
		"one with a namespace that is going":      {phaseAccepted, facts{name: "c1", namespace: going}, false},
		"one that is not accepted":                {phaseNew, facts{}, false},
	} {
		assert.Equal(t, tc.gives, confirmsIn(t, tc.phase, tc.facts), sentence)
	}

	scheme := runtime.NewScheme()
	require.NoError(t, clusterv1.Install(scheme))
	cached := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1", UID: "one"}}
	accepted, deleting := cached.DeepCopy(), cached.DeepCopy()
	accepted.Spec.HubAcceptsClient = true
	deleting.DeletionTimestamp, deleting.Finalizers = deletedAt(), []string{names.FinalizerCluster}
	for sentence, tc := range map[string]struct {
		live []client.Object
		says string
	}{
		"it exists":                                     {[]client.Object{cached}, ""},
		"it is accepted by now":                         {[]client.Object{accepted}, "the cache does not have its latest version"},
		"it is being deleted by now":                    {[]client.Object{deleting}, "the cache does not have its latest version"},
		"the hub was restored to what was before it":    {nil, "only in the cache"},
		"the hub has another one of the name meanwhile": {[]client.Object{recreated(cached, "two")}, "only in the cache"},
	} {
		r := &Reconciler{Live: fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.live...).Build()}
		err := r.confirmCluster(t.Context(), "c1", cached)
		gone := r.confirmCluster(t.Context(), "c1", deleting)
		isDeleting := len(tc.live) == 1 && tc.live[0] == client.Object(deleting)
		assert.Equal(t, !isDeleting, reconcile.IsLostRace(gone), "%s, and it was being deleted: %v", sentence, gone)
		if tc.says == "" {
			require.NoError(t, err, sentence)
		} else {
			require.ErrorContains(t, err, tc.says, sentence)
		}
	}
}

// A cache that is behind shows an earlier cluster of the name that was being deleted, or the denial that was taken back.
//
// Shows: registration/taken-when-confirmed
func TestWhatAClusterLosesIsConfirmed(t *testing.T) {
	addon := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "w"}}
	going, freed := work.DeepCopy(), renderGrants("c1", true)
	going.DeletionTimestamp = deletedAt()
	freed.registration, freed.work.DeletionTimestamp = nil, deletedAt()
	freed.role = renderGrants("c1", false).role
	for sentence, tc := range map[string]struct {
		phase phase
		facts facts
		want  bool
	}{
		"a deleted cluster with an add-on":          {phaseDeleting, facts{addons: []*addonv1beta1.ManagedClusterAddOn{addon}}, true},
		"one with a work":                           {phaseDeleting, facts{works: []*workv1.ManifestWork{work}, live: &live{}}, true},
		"one whose works are going":                 {phaseDeleting, facts{works: []*workv1.ManifestWork{going}}, false},
		"one with nothing but access":               {phaseDeleting, facts{have: renderGrants("c1", true), live: &live{}}, true},
		"one with nothing":                          {phaseDeleting, facts{}, false},
		"a denied cluster with access":              {phaseDenied, facts{have: renderGrants("c1", true)}, true},
		"one that lost it, and waits for works":     {phaseDenied, facts{have: freed}, false},
		"one that only sees itself":                 {phaseDenied, facts{have: renderGrants("c1", false)}, false},
		"a denied cluster whose role is not shrunk": {phaseDenied, facts{have: grants{role: renderGrants("c1", true).role}}, true},
		"a denied cluster whose denial is not noted": {phaseDenied, facts{
			have: renderGrants("c1", false), namespace: settledFacts().namespace,
		}, true},
		"a deleted cluster whose request is left": {phaseDeleting, facts{
			live: &live{}, requests: []*certificatesv1.CertificateSigningRequest{{ObjectMeta: metav1.ObjectMeta{
				Name: "r", Labels: map[string]string{names.LabelClusterName: "c1"},
			}}},
		}, true},
		"a new cluster with the access of another one": {phaseNew, facts{have: renderGrants("c1", false)}, true},
		"a new cluster":          {phaseNew, facts{}, false},
		"a cluster that is gone": {phaseGone, facts{have: renderGrants("c1", true)}, false},
	} {
		assert.Equal(t, tc.want, confirmsIn(t, tc.phase, tc.facts), sentence)
	}
}

// confirmsIn reports whether what is decided about a cluster in a phase is confirmed.
func confirmsIn(t *testing.T, p phase, f facts) bool {
	t.Helper()
	f.name, f.now = "c1", noon()
	f.cluster = &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1", UID: "u"}}
	switch p {
	case phaseGone:
		f.cluster = nil
	case phaseDeleting:
		f.cluster.DeletionTimestamp, f.cluster.Finalizers = deletedAt(), []string{names.FinalizerCluster}
	case phaseDenied:
		f.cluster.Annotations = map[string]string{names.AnnotationAcceptedOn: "2026-03-01T11:00:00Z"}
	case phaseAccepted:
		f.cluster.Spec.HubAcceptsClient = true
	case phaseNew, phaseRefused:
	}
	require.Equal(t, p, phaseOf(f.name, f.cluster))
	return toConfirm(f, decide(f)).cluster
}

// A cache that is behind has no cluster that a user created a moment ago, or never had it.
func TestAClusterThatOnlyTheCacheLacksIsThere(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, clusterv1.Install(scheme))
	cache := fake.NewClientBuilder().WithScheme(scheme).Build()
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}).Build()
	r := &Reconciler{Client: cache, Live: server}
	assert.Equal(t, &live{cluster: true}, r.checkLive(t.Context(), facts{name: "c1"}))
}

// recreated is a cluster with another UID.
func recreated(cluster *clusterv1.ManagedCluster, uid types.UID) *clusterv1.ManagedCluster {
	other := cluster.DeepCopy()
	other.UID = uid
	return other
}

func TestTheCleanUpPriorityHasBounds(t *testing.T) {
	for text, want := range map[string]int{"": 0, "x": 0, "-1": 0, "0": 0, "1": 1, "100": 100, "101": 0} {
		o := &metav1.ObjectMeta{Annotations: map[string]string{clusterv1.CleanupPriorityAnnotationKey: text}}
		assert.Equal(t, want, addonapi.CleanupPriority(o), "%q", text)
	}
}

func TestAMessageListsFiveNamesAndCountsTheRest(t *testing.T) {
	work := func(n int) []*workv1.ManifestWork {
		var all []*workv1.ManifestWork
		for i := range n {
			all = append(all, &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "w" + strconv.Itoa(i)}})
		}
		return all
	}
	assert.Equal(t, "1 ManifestWork (w0)", summary("ManifestWork", objects(work(1))))
	assert.Equal(t, "5 ManifestWorks (w0, w1, w2, w3, w4)", summary("ManifestWork", objects(work(5))))
	assert.Equal(t, "7 ManifestWorks (w0, w1, w2, w3, w4, and 2 more)", summary("ManifestWork", objects(work(7))))
}

func TestTheLogListsTheConditionsThatChanged(t *testing.T) {
	condition := func(kind, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "R", Message: message}
	}
	before, after := &clusterv1.ManagedCluster{}, &clusterv1.ManagedCluster{}
	before.Status.Conditions = []metav1.Condition{condition("Same", "a"), condition("Changed", "a")}
	after.Status.Conditions = []metav1.Condition{condition("Same", "a"), condition("Changed", "b"), condition("New", "")}
	assert.Equal(t, "Changed=True (R), New=True (R)", changedConditions(before, after))
}
