package approve

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/spokelet/spokelet/csr"
)

// Shows: security/identity-confirmed
func TestTheHubManagerConfirmsOnlyAnAgentOfTheAddOnOnItsCluster(t *testing.T) {
	own := func() csr.Request {
		return csr.Request{
			GenerateName: "addon-c1-hello-", Labels: csr.ForCluster("c1", "x").Labels,
			Signer: certificatesv1.KubeAPIServerClientSignerName, User: csr.AddonUser("c1", "hello", "any"),
			Groups: csr.AddonGroups("c1", "hello"), DNSNames: []string{"hello.addon.open-cluster-management.io"},
		}
	}
	for sentence, tc := range map[string]struct {
		spoil  func(*csr.Request)
		by     string
		reason string
	}{
		"an agent of the add-on":              {func(*csr.Request) {}, "", ReasonIdentityOwn},
		"with the group of its cluster alone": {func(r *csr.Request) { r.Groups = r.Groups[:1] }, "", ReasonIdentityOwn},
		"with the group of old agents":        {func(r *csr.Request) { r.Groups = append(r.Groups, groupAuthenticated) }, "", ReasonIdentityOwn},
		"a controller of Kubernetes":          {func(r *csr.Request) { r.User = "system:kube-controller-manager" }, "", reasonIdentityNotOwn},
		"any user":                            {func(r *csr.Request) { r.User = "alice" }, "", reasonIdentityNotOwn},
		"the agent of the cluster":            {func(r *csr.Request) { r.User = csr.ClusterUser("c1", "agent") }, "", reasonIdentityNotOwn},
		"the add-on on another cluster":       {func(r *csr.Request) { r.User = csr.AddonUser("c2", "hello", "any") }, "", reasonIdentityNotOwn},
		"another add-on":                      {func(r *csr.Request) { r.User = csr.AddonUser("c1", "vault", "any") }, "", reasonIdentityNotOwn},
		"nobody":                              {func(r *csr.Request) { r.User = "" }, "", ReasonSubjectNotExpected},
		"in the group of administrators":      {func(r *csr.Request) { r.Groups = append(r.Groups, "system:masters") }, "", reasonIdentityNotOwn},
		"in the group of another add-on":      {func(r *csr.Request) { r.Groups = csr.AddonGroups("c1", "vault") }, "", reasonIdentityNotOwn},
		"in no group":                         {func(r *csr.Request) { r.Groups = nil }, "", ReasonSubjectNotExpected},
		"with a name of its own":              {func(r *csr.Request) { r.DNSNames = []string{"kubernetes.default"} }, "", ReasonNamesNotExpected},
		"asked for by another cluster":        {func(*csr.Request) {}, csr.ClusterUser("c2", "agent"), ReasonRequesterNotTrusted},
		"asked for by the add-on itself":      {func(*csr.Request) {}, csr.AddonUser("c1", "hello", "any"), ReasonRequesterNotTrusted},
		"of another signer":                   {func(r *csr.Request) { r.Signer = "example.com/x" }, "", reasonNotOurs},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := own()
			tc.spoil(&r)
			key, err := csr.NewKey()
			require.NoError(t, err)
			request, err := r.Build(key)
			require.NoError(t, err)
			request.Labels["open-cluster-management.io/addon-name"] = "hello"
			request.Spec.Username = csr.ClusterUser("c1", "agent")
			if tc.by != "" {
				request.Spec.Username = tc.by
			}
			v := JudgeIdentity(request)
			assert.Equal(t, tc.reason, v.Reason, v.Message)
			assert.Equal(t, tc.reason == ReasonIdentityOwn, v.Decision == DecisionApprove)
			v.Vouch(request, time.Unix(1, 0))
			assert.True(t, csr.Undecided(request), "somebody still decides about it")
			confirmed, message, found := Vouched(request)
			assert.Equal(t, v.Decision == DecisionApprove, confirmed)
			assert.Equal(t, v.Message, message)
			assert.True(t, found)
		})
	}
}
