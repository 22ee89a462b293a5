package approve

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/csr"
)

func TestWhatABootstrapCredentialIsBoundTo(t *testing.T) {
	tests := map[string]struct {
		user   string
		groups []string
		want   []string
	}{
		"nothing without a group of one cluster":       {"jane", []string{"system:bootstrappers:managedcluster"}, nil},
		"the cluster that its group names":             {"jane", []string{"system:bootstrappers:managedcluster:c1"}, []string{"c1"}},
		"all clusters that its groups name":            {"jane", []string{"system:bootstrappers:managedcluster:c2", "system:bootstrappers:managedcluster:c1"}, []string{"c1", "c2"}},
		"nothing that can be a cluster, by an odd one": {"jane", []string{"system:bootstrappers:managedcluster:"}, []string{""}},
		"nothing for the account of all clusters":      {bootstrapUser, nil, nil},
		"the cluster that the name of its account ends in": {
			"system:serviceaccount:open-cluster-management:agent-registration-bootstrap.c1", nil, []string{"c1"},
		},
		"one cluster that is named twice": {
			"system:serviceaccount:open-cluster-management:agent-registration-bootstrap.c1", []string{"system:bootstrappers:managedcluster:c1"},
			[]string{"c1"},
		},
		"nothing for an account of the same name in another namespace": {
			"system:serviceaccount:default:agent-registration-bootstrap.c1", nil, nil,
		},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) { assert.Equal(t, tc.want, boundClusters(tc.user, tc.groups)) })
	}
}

// TestWhoGetsAFirstCredential is the table of docs/operations/registration.md.
func TestWhoGetsAFirstCredential(t *testing.T) {
	const user = "bootstrap@example.com"
	of := func(clusters ...string) []string {
		groups := []string{"system:bootstrappers", "system:bootstrappers:managedcluster"}
		for _, cluster := range clusters {
			groups = append(groups, "system:bootstrappers:managedcluster:"+cluster)
		}
		return groups
	}
	trusted, joinedToo := Trust{Users: []string{user}}, Trust{Users: []string{user}, Joined: true}
	bound, both := Trust{Bound: true}, Trust{Users: []string{user}, Joined: true, Bound: true}
	tests := map[string]struct {
		trust  Trust
		groups []string
		joined bool
		// want is the reason; empty means that the request is approved.
		want string
	}{
		"nobody by default":                                      {Trust{}, of(), false, ReasonAwaitingApproval},
		"nobody by default, bound or not":                        {Trust{}, of("c1"), false, ReasonAwaitingApproval},
		"a trusted user for a new cluster":                       {trusted, of(), false, ""},
		"no trusted user for one that has joined":                {trusted, of(), true, ReasonClusterJoined},
		"a trusted user for one that has, if so said":            {joinedToo, of(), true, ""},
		"a trusted user that is bound to the cluster":            {trusted, of("c1"), true, ""},
		"no trusted user that is bound to another":               {both, of("c2"), false, ReasonBoundToOther},
		"no trusted user that is bound to a name that goes on":   {both, of("c10"), false, ReasonBoundToOther},
		"anybody bound to the cluster, if so said":               {bound, of("c1"), false, ""},
		"anybody bound to the cluster, also one that has joined": {bound, of("c1"), true, ""},
		"anybody bound to it among others":                       {bound, of("c0", "c1"), true, ""},
		"nobody bound to another, whatever is said":              {bound, of("c2"), true, ReasonBoundToOther},
		"nobody who is not bound, if only that is said":          {bound, of(), false, ReasonAwaitingApproval},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			request := newRequest(t, csr.ForCluster("c1", "a1"), user)
			request.Spec.Groups = tc.groups
			v := JudgeCluster(request, tc.trust, tc.joined)
			if tc.want == "" {
				assert.Equal(t, DecisionApprove, v.Decision, v.Message)
				assert.True(t, tc.trust.Names(request))
				return
			}
			assertNotApproved(t, v, tc.want)
		})
	}
}

func TestARefusalForAClusterThatHasJoinedSaysWhatToDo(t *testing.T) {
	v := JudgeCluster(newRequest(t, csr.ForCluster("c1", "a1"), "jane"), trust("jane"), true)
	assert.Equal(t, `Not approved: cluster "c1" has joined before, and everybody who holds the bootstrap credential of `+
		`"jane" could take over its identity. If the agent of the cluster lost its credential, run kubectl certificate `+
		`approve on this request, give it a bootstrap credential that is bound to the cluster, or start the hub manager `+
		`with --auto-approve-joined-clusters.`, v.Message)
}

func TestWhenAClusterHasJoined(t *testing.T) {
	with := func(status metav1.ConditionStatus) *clusterv1.ManagedCluster {
		return &clusterv1.ManagedCluster{Status: clusterv1.ManagedClusterStatus{Conditions: []metav1.Condition{
			{Type: clusterv1.ManagedClusterConditionJoined, Status: status},
		}}}
	}
	assert.True(t, HasJoined(with(metav1.ConditionTrue)))
	assert.False(t, HasJoined(with(metav1.ConditionFalse)))
	assert.False(t, HasJoined(&clusterv1.ManagedCluster{}))
	assert.False(t, HasJoined(nil))
}
