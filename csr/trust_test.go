package csr_test

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
		"the cluster that its group names":             {"jane", []string{csr.BoundGroup("c1")}, []string{"c1"}},
		"all clusters that its groups name":            {"jane", []string{csr.BoundGroup("c2"), csr.BoundGroup("c1")}, []string{"c1", "c2"}},
		"nothing that can be a cluster, by an odd one": {"jane", []string{"system:bootstrappers:managedcluster:"}, []string{""}},
		"nothing for the account of all clusters":      {bootstrapUser, nil, nil},
		"the cluster that the name of its account ends in": {
			"system:serviceaccount:open-cluster-management:" + csr.BoundAccount("c1"), nil, []string{"c1"},
		},
		"one cluster that is named twice": {
			"system:serviceaccount:open-cluster-management:" + csr.BoundAccount("c1"), []string{csr.BoundGroup("c1")},
			[]string{"c1"},
		},
		"nothing for an account of the same name in another namespace": {
			"system:serviceaccount:default:" + csr.BoundAccount("c1"), nil, nil,
		},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) { assert.Equal(t, tc.want, csr.BoundClusters(tc.user, tc.groups)) })
	}
}

// TestWhoGetsAFirstCredential is the table of docs/operations/registration.md.
func TestWhoGetsAFirstCredential(t *testing.T) {
	const user = "bootstrap@example.com"
	of := func(clusters ...string) []string {
		groups := []string{"system:bootstrappers", "system:bootstrappers:managedcluster"}
		for _, cluster := range clusters {
			groups = append(groups, csr.BoundGroup(cluster))
		}
		return groups
	}
	trusted, joinedToo := csr.Trust{Users: []string{user}}, csr.Trust{Users: []string{user}, Joined: true}
	bound, both := csr.Trust{Bound: true}, csr.Trust{Users: []string{user}, Joined: true, Bound: true}
	tests := map[string]struct {
		trust  csr.Trust
		groups []string
		joined bool
		// want is the reason; empty means that the request is approved.
		want string
	}{
		"nobody by default":                                      {csr.Trust{}, of(), false, csr.ReasonAwaitingApproval},
		"nobody by default, bound or not":                        {csr.Trust{}, of("c1"), false, csr.ReasonAwaitingApproval},
		"a trusted user for a new cluster":                       {trusted, of(), false, ""},
		"no trusted user for one that has joined":                {trusted, of(), true, csr.ReasonClusterJoined},
		"a trusted user for one that has, if so said":            {joinedToo, of(), true, ""},
		"a trusted user that is bound to the cluster":            {trusted, of("c1"), true, ""},
		"no trusted user that is bound to another":               {both, of("c2"), false, csr.ReasonBoundToOther},
		"no trusted user that is bound to a name that goes on":   {both, of("c10"), false, csr.ReasonBoundToOther},
		"anybody bound to the cluster, if so said":               {bound, of("c1"), false, ""},
		"anybody bound to the cluster, also one that has joined": {bound, of("c1"), true, ""},
		"anybody bound to it among others":                       {bound, of("c0", "c1"), true, ""},
		"nobody bound to another, whatever is said":              {bound, of("c2"), true, csr.ReasonBoundToOther},
		"nobody who is not bound, if only that is said":          {bound, of(), false, csr.ReasonAwaitingApproval},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			request := newRequest(t, csr.ForCluster("c1", "a1"), user)
			request.Spec.Groups = tc.groups
			v := csr.JudgeCluster(request, tc.trust, tc.joined)
			if tc.want == "" {
				assert.Equal(t, csr.DecisionApprove, v.Decision, v.Message)
				assert.True(t, tc.trust.Names(request))
				return
			}
			assertNotApproved(t, v, tc.want)
		})
	}
}

func TestARefusalForAClusterThatHasJoinedSaysWhatToDo(t *testing.T) {
	v := csr.JudgeCluster(newRequest(t, csr.ForCluster("c1", "a1"), "jane"), trust("jane"), true)
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
	assert.True(t, csr.HasJoined(with(metav1.ConditionTrue)))
	assert.False(t, csr.HasJoined(with(metav1.ConditionFalse)))
	assert.False(t, csr.HasJoined(&clusterv1.ManagedCluster{}))
	assert.False(t, csr.HasJoined(nil))
}
