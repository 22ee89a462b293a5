package rollout

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/policies"
)

// byWave are the facts about clusters a and b in two decision groups, and c in the second, with an old content, where
// each wave is approved.
func byWave(hash string, approved ...string) facts {
	cfg := fixture.Template("t")
	selected := selects("a", "b", "c")
	selected.Key = types.NamespacedName{Namespace: "ns", Name: "p"}
	selected.Groups = map[string]fleet.Group{"a": {Index: 0, Name: "canary"}, "b": {Index: 1}, "c": {Index: 1}}
	var all []*addonv1beta1.ManagedClusterAddOn
	for _, cluster := range selected.Names {
		all = append(all, fixture.AddOn(cluster, fixture.Has(cfg, "old")))
	}
	return facts{
		now: fixture.Noon(), states: addonconfig.States{cfg: {Hash: hash}},
		cma: fixture.NewCMA(nil, fixture.ByStrategy(clusterv1alpha1.RolloutStrategy{
			Type: clusterv1alpha1.ProgressivePerGroup,
		}, fixture.Placement("p", cfg))),
		placements: []*fleet.Decisions{selected}, members: membersOf(all...),
		gate: gate.New("hello", &policies.AddOnPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "hello"},
			Spec:       policies.AddOnPolicySpec{Approval: policies.ApprovalPerWave, Approved: approved},
		}, nil),
	}
}

// status is what the policy says after a plan.
func (f facts) status() policies.AddOnPolicyStatus {
	return f.concludePolicy(f.gate.Policy(), decide(f)).Status
}

// Shows: policies/policy-wave-order
func TestTheWaveThatHasItsTurnIsToldFirst(t *testing.T) {
	status := byWave("new").status()
	require.Len(t, status.Contents, 2)
	first, second := status.Contents[0], status.Contents[1]
	assert.Equal(t, "decision group 0 (canary) of placement ns/p", first.Wave)
	assert.Equal(t, "decision group 1 of placement ns/p", second.Wave)
	assert.True(t, first.Turn)
	assert.False(t, second.Turn)
	assert.Equal(t, first.Content, second.Content, "one name approves both")
	assert.EqualValues(t, 3, status.Waiting)
}

// Shows: policies/policy-unused
func TestWhoIsAdmittedByTheApprovalOfAWave(t *testing.T) {
	names := byWave("new").status().Contents
	other := byWave("newer").status().Contents
	for sentence, tc := range map[string]struct {
		approved []string
		granted  string
		unused   []string
	}{
		"nothing":                              {nil, "", nil},
		"the first wave":                       {[]string{names[0].Name}, "a", nil},
		"the second wave ahead of the first":   {[]string{names[1].Name}, "", nil},
		"the waves of other content":           {[]string{other[0].Name, other[1].Name}, "", []string{other[0].Name, other[1].Name}},
		"the content, and so all of its waves": {[]string{names[0].Content}, "a", nil},
		"other content":                        {[]string{other[0].Content}, "", []string{other[0].Content}},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := byWave("new", tc.approved...)
			p := decide(f)
			var granted string
			for _, cluster := range []string{"a", "b", "c"} {
				if p.admissions[cluster].granted {
					granted += cluster
				}
			}
			assert.Equal(t, tc.granted, granted)
			assert.ElementsMatch(t, tc.unused, p.unused)
		})
	}
}

// A wave that was approved ahead waits for its turn, and not for the policy.
func TestAWaveThatIsApprovedAheadIsToldOnlyThatItWaitsForItsTurn(t *testing.T) {
	names := byWave("new").status().Contents
	f := byWave("new", names[1].Name)
	p := decide(f)
	assert.Contains(t, p.admissions["b"].reason, "decision groups follow one another")
	assert.Contains(t, p.admissions["a"].reason, "does not approve content "+names[0].Name+
		", which is for decision group 0 (canary) of placement ns/p")
	assert.Len(t, f.concludePolicy(f.gate.Policy(), p).Status.Contents, 1)
}

// With strategy All there are no waves: the content is approved.
func TestWithStrategyAllTheContentIsApproved(t *testing.T) {
	f := byWave("new")
	f.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy = clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.All}
	status := f.status()
	require.Len(t, status.Contents, 1)
	assert.Empty(t, status.Contents[0].Wave)
	assert.Empty(t, status.Contents[0].Content)
	assert.EqualValues(t, 3, status.Contents[0].Clusters)
}

// While nobody knows which clusters are selected, nobody knows which approvals are of no use.
func TestWhatIsUnusedIsToldWhenItIsKnown(t *testing.T) {
	f := byWave("new", "other")
	f.placements[0].Incomplete, f.placements[0].DoubtedSince = assert.AnError, fixture.Noon()
	f.gate.Policy().Status.Unused = []string{"before"}
	assert.Equal(t, []string{"before"}, decide(f).unused)
}
