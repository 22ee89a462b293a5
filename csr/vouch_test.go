package csr

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
)

// Shows: security/identity-confirmed
func TestTheHubManagerConfirmsOnlyAnAgentOfTheAddOnOnItsCluster(t *testing.T) {
	own := func() Request {
		return Request{
			GenerateName: "addon-c1-hello-", Labels: ForCluster("c1", "x").Labels,
			Signer: certificatesv1.KubeAPIServerClientSignerName, User: AddonUser("c1", "hello", "any"),
			Groups: AddonGroups("c1", "hello"), DNSNames: []string{"hello" + addonDomain},
		}
	}
	for sentence, tc := range map[string]struct {
		spoil  func(*Request)
		by     string
		reason string
	}{
		"an agent of the add-on":              {func(*Request) {}, "", ReasonIdentityOwn},
		"with the group of its cluster alone": {func(r *Request) { r.Groups = r.Groups[:1] }, "", ReasonIdentityOwn},
		"with the group of old agents":        {func(r *Request) { r.Groups = append(r.Groups, groupAuthenticated) }, "", ReasonIdentityOwn},
		"a controller of Kubernetes":          {func(r *Request) { r.User = "system:kube-controller-manager" }, "", ReasonIdentityNotOwn},
		"any user":                            {func(r *Request) { r.User = "alice" }, "", ReasonIdentityNotOwn},
		"the agent of the cluster":            {func(r *Request) { r.User = ClusterUser("c1", "agent") }, "", ReasonIdentityNotOwn},
		"the add-on on another cluster":       {func(r *Request) { r.User = AddonUser("c2", "hello", "any") }, "", ReasonIdentityNotOwn},
		"another add-on":                      {func(r *Request) { r.User = AddonUser("c1", "vault", "any") }, "", ReasonIdentityNotOwn},
		"nobody":                              {func(r *Request) { r.User = "" }, "", ReasonSubjectNotExpected},
		"in the group of administrators":      {func(r *Request) { r.Groups = append(r.Groups, "system:masters") }, "", ReasonIdentityNotOwn},
		"in the group of another add-on":      {func(r *Request) { r.Groups = AddonGroups("c1", "vault") }, "", ReasonIdentityNotOwn},
		"in no group":                         {func(r *Request) { r.Groups = nil }, "", ReasonSubjectNotExpected},
		"with a name of its own":              {func(r *Request) { r.DNSNames = []string{"kubernetes.default"} }, "", ReasonNamesNotExpected},
		"asked for by another cluster":        {func(*Request) {}, ClusterUser("c2", "agent"), ReasonRequesterNotTrusted},
		"asked for by the add-on itself":      {func(*Request) {}, AddonUser("c1", "hello", "any"), ReasonRequesterNotTrusted},
		"of another signer":                   {func(r *Request) { r.Signer = "example.com/x" }, "", ReasonNotOurs},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := own()
			tc.spoil(&r)
			key, err := NewKey()
			require.NoError(t, err)
			request, err := r.Build(key)
			require.NoError(t, err)
			request.Labels["open-cluster-management.io/addon-name"] = "hello"
			request.Spec.Username = ClusterUser("c1", "agent")
			if tc.by != "" {
				request.Spec.Username = tc.by
			}
			v := JudgeIdentity(request)
			assert.Equal(t, tc.reason, v.Reason, v.Message)
			assert.Equal(t, tc.reason == ReasonIdentityOwn, v.Decision == DecisionApprove)
			v.Vouch(request, time.Unix(1, 0))
			assert.True(t, Undecided(request), "somebody still decides about it")
			confirmed, message, found := Vouched(request)
			assert.Equal(t, v.Decision == DecisionApprove, confirmed)
			assert.Equal(t, v.Message, message)
			assert.True(t, found)
		})
	}
}
