package bootstrap

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/csr"
)

func TestTheHubOfTheStoredCredentialIsTriedFirst(t *testing.T) {
	at := func(server string) Candidate {
		return Candidate{Target: Target{Server: csr.HubServer{Server: server}}}
	}
	broken := Candidate{Problem: errors.New("broken")}
	tests := map[string]struct {
		found  []Candidate
		stored string
		want   []int
	}{
		"without a credential they are tried in order": {[]Candidate{at("a"), at("b"), at("c")}, "", []int{0, 1, 2}},
		"the current one comes first":                  {[]Candidate{at("a"), at("b"), at("c")}, "c", []int{2, 0, 1}},
		"one that is not listed changes nothing":       {[]Candidate{at("a"), at("b")}, "x", []int{0, 1}},
		"a broken one stays in its place":              {[]Candidate{broken, at("b")}, "b", []int{1, 0}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var stored *csr.HubServer
			if tc.stored != "" {
				stored = &csr.HubServer{Server: tc.stored}
			}
			assert.Equal(t, tc.want, order(tc.found, stored))
		})
	}
}

// Shows: registration/bootstrap-rights
func TestABootstrapCredentialHasToBeAllowedWhatJoiningNeeds(t *testing.T) {
	var asked []string
	for _, right := range requiredRights() {
		asked = append(asked, right.Verb+" "+right.Resource+"."+right.Group)
	}
	assert.Equal(t, []string{
		"create managedclusters.cluster.open-cluster-management.io", "get managedclusters.cluster.open-cluster-management.io",
		"create certificatesigningrequests.certificates.k8s.io", "get certificatesigningrequests.certificates.k8s.io",
		"list certificatesigningrequests.certificates.k8s.io", "watch certificatesigningrequests.certificates.k8s.io",
	}, asked)
}

// Shows: registration/hub-given-up
func TestAClusterThatWasNeverAcceptedIsNotDenied(t *testing.T) {
	tests := map[string]struct {
		accepts bool
		status  metav1.ConditionStatus
		want    bool
	}{
		"accepted":                              {true, metav1.ConditionTrue, false},
		"new":                                   {false, "", false},
		"denied":                                {false, metav1.ConditionFalse, true},
		"denied, and the hub has not acted yet": {false, metav1.ConditionTrue, true},
		"accepted again":                        {true, metav1.ConditionFalse, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			own := &clusterv1.ManagedCluster{Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: tc.accepts}}
			if tc.status != "" {
				own.Status.Conditions = []metav1.Condition{{Type: "HubAcceptedManagedCluster", Status: tc.status}}
			}
			assert.Equal(t, tc.want, Denied(own))
		})
	}
}
