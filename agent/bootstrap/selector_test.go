package bootstrap

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/csr/issue"
)

func TestTheHubOfTheStoredCredentialIsTriedFirst(t *testing.T) {
	at := func(server string) Candidate {
		return Candidate{Target: Target{Server: issue.HubServer{Server: server}}}
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
			var stored *issue.HubServer
			if tc.stored != "" {
				stored = &issue.HubServer{Server: tc.stored}
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

// hubOf starts a hub that allows everything and has the ManagedCluster, unaccepted or not; it returns its candidate.
func hubOf(t *testing.T, accepts bool) Candidate {
	t.Helper()
	return hubThat(t, func() bool { return accepts })
}

// hubThat starts such a hub, which may change its mind.
func hubThat(t *testing.T, accepts func() bool) Candidate {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodPost:
			_, _ = w.Write([]byte(`{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`))
		case strings.Contains(r.URL.Path, "/managedclusters/"):
			_, _ = fmt.Fprintf(w, `{"kind":"ManagedCluster","apiVersion":"cluster.open-cluster-management.io/v1",
				"metadata":{"name":"c1"},"spec":{"hubAcceptsClient":%t}}`, accepts())
		case r.URL.Path == "/api":
			_, _ = w.Write([]byte(`{"kind":"APIVersions","versions":["v1"]}`))
		case r.URL.Path == "/apis":
			_, _ = w.Write([]byte(`{"kind":"APIGroupList","groups":[
				{"name":"authorization.k8s.io","versions":[{"groupVersion":"authorization.k8s.io/v1","version":"v1"}]},
				{"name":"cluster.open-cluster-management.io","versions":[
					{"groupVersion":"cluster.open-cluster-management.io/v1","version":"v1"}]}]}`))
		case r.URL.Path == "/apis/authorization.k8s.io/v1":
			_, _ = w.Write([]byte(`{"kind":"APIResourceList","groupVersion":"authorization.k8s.io/v1","resources":[
				{"name":"selfsubjectaccessreviews","kind":"SelfSubjectAccessReview"}]}`))
		case r.URL.Path == "/apis/cluster.open-cluster-management.io/v1":
			_, _ = w.Write([]byte(`{"kind":"APIResourceList","groupVersion":"cluster.open-cluster-management.io/v1","resources":[
				{"name":"managedclusters","kind":"ManagedCluster"}]}`))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	return candidateFor(server.URL)
}

// candidateFor returns the candidate of a hub at an address.
func candidateFor(address string) Candidate {
	return Candidate{Target: Target{
		Source: Source{File: "/" + address}, Server: issue.HubServer{Server: address},
		Kubeconfig: []byte(`{"apiVersion":"v1","kind":"Config","current-context":"c",
			"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
			"clusters":[{"name":"c","cluster":{"insecure-skip-tls-verify":true,"server":"` + address + `"}}],
			"users":[{"name":"u","user":{"token":"t"}}]}`),
	}}
}

// Shows: registration/hub-given-up
func TestAHubThatIsAwayKeepsItsClusterFromOneThatHasNotAcceptedIt(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, clusterv1.Install(scheme))
	require.NoError(t, authorizationv1.AddToScheme(scheme))
	away, undecided, accepting := candidateFor("https://127.0.0.1:1"), hubOf(t, false), hubOf(t, true)
	for name, c := range map[string]struct {
		found    []Candidate
		stored   *issue.HubServer
		valid    bool
		selected string
		want     issue.HubServer
	}{
		"the credential is valid":                    {[]Candidate{away, undecided}, &away.Server, true, "", away.Server},
		"this process waited at the other one":       {[]Candidate{away, undecided}, &away.Server, true, undecided.Server.Server, away.Server},
		"the credential is not":                      {[]Candidate{away, undecided}, &away.Server, false, "", undecided.Server},
		"there is none":                              {[]Candidate{away, undecided}, nil, false, "", undecided.Server},
		"the other one has accepted it":              {[]Candidate{away, accepting}, &away.Server, true, "", accepting.Server},
		"the credential is of the one that has not":  {[]Candidate{undecided, away}, &undecided.Server, true, "", undecided.Server},
		"that one has not, and a third one has":      {[]Candidate{away, undecided, accepting}, &away.Server, true, "", accepting.Server},
		"there is none, and the process waits there": {[]Candidate{undecided, accepting}, nil, false, undecided.Server.Server, undecided.Server},
	} {
		t.Run(name, func(t *testing.T) {
			s := Selector{Scheme: scheme, selected: c.selected}
			target, _ := s.Select(t.Context(), c.found, Stored{Server: c.stored, Valid: c.valid}, "c1")
			assert.Equal(t, c.want, target.Server)
		})
	}
}
