package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/internal/names"
)

// asks is a request for a certificate with a common name and organizations, with the label of cluster store-201.
func asks(t *testing.T, name, commonName string, organizations ...string) map[string]any {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: commonName, Organization: organizations},
	}, key)
	require.NoError(t, err)
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	r := labelled(of("", name), map[string]any{names.LabelClusterName: "store-201"})
	part(r, "metadata")["uid"] = "uid-of-" + name
	r["spec"] = map[string]any{
		"signerName": "kubernetes.io/kube-apiserver-client", "username": "bootstrap\x1b[31m",
		"request": base64.StdEncoding.EncodeToString(block), "usages": []any{"digital signature", "key encipherment", "client auth"},
	}
	r["status"] = map[string]any{}
	return r
}

// gate is a hub with a cluster that waits, its request, one of another identity, and one that is decided.
func gate(t *testing.T) *hub {
	t.Helper()
	const all = "system:open-cluster-management:managed-clusters"
	waiting := of("", "store-201")
	part(waiting, "metadata")["uid"] = "u"
	decided := asks(t, "store-201-old", "system:open-cluster-management:store-201:a",
		"system:open-cluster-management:store-201", all)
	decided["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Denied", "status": "True"}}}
	return &hub{lists: map[string][]map[string]any{
		pathClusters: {waiting, cluster("store-001")},
		pathRequests: {
			asks(t, "store-201-good", "system:open-cluster-management:store-201:a",
				"system:open-cluster-management:store-201", all),
			asks(t, "store-201-evil", "system:open-cluster-management:store-201:a", "system:masters"),
			decided,
		},
	}}
}

func TestACandidateIsAcceptedAndItsOwnRequestsAreApproved(t *testing.T) {
	h := gate(t)
	got := plays(t, h, "approve", "cluster", "store-201")
	assert.Equal(t, statusProblem, got.status, "one request is refused")
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	require.Len(t, lines, 3, got.out)
	assert.Equal(t, "ManagedCluster store-201: spec.hubAcceptsClient is true now", lines[0])
	assert.Contains(t, lines[1], "request store-201-good of user bootstrap\\u001b[31m is approved: a certificate for user "+
		"system:open-cluster-management:store-201:a, groups system:open-cluster-management:store-201")
	assert.Contains(t, lines[2], "request store-201-evil of user bootstrap\\u001b[31m is not approved: ")
	assert.Contains(t, lines[2], "system:masters")
	require.Len(t, h.written, 3, "nothing but what was said")
	assert.Contains(t, h.written[0], pathRequests+"/store-201-good/approval?dryRun=All", "it is asked whether that may be")
	assert.Contains(t, h.written[1], pathClusters+`/store-201 [{"op":"test","path":"/metadata/uid","value":"u"},`)
	assert.Contains(t, h.written[2], pathRequests+`/store-201-good/approval [{"op":"test","path":"/metadata/uid",`)
	assert.Contains(t, h.written[2], `"type":"Approved","status":"True"`)

	dry := gate(t)
	got = plays(t, dry, "approve", "cluster", "store-201", "--dry-run")
	assert.Contains(t, got.out, "spec.hubAcceptsClient is true now (dry run)")
	for _, write := range dry.written {
		assert.Contains(t, write, "?dryRun=All")
	}
}

func TestWhatIsNotApproved(t *testing.T) {
	for sentence, tc := range map[string]struct {
		args    []string
		status  int
		says    string
		denied  bool
		written int
	}{
		"an accepted cluster without requests":    {[]string{"approve", "cluster", "store-001"}, statusWell, "nothing waits for a person", false, 0},
		"a cluster that does not exist":           {[]string{"approve", "cluster", "store-9"}, statusUse, "there is no ManagedCluster store-9", false, 0},
		"a request that does not exist":           {[]string{"approve", "csr", "x"}, statusUse, "there is no certificate request x", false, 0},
		"a request of another identity":           {[]string{"approve", "csr", "store-201-evil"}, statusProblem, "is not approved", false, 0},
		"a request that a person decided":         {[]string{"approve", "csr", "store-201-old"}, statusWell, "nothing waits for a person", false, 0},
		"a request, by its name":                  {[]string{"approve", "csr", "store-201-good"}, statusWell, "is approved", false, 1},
		"a person without the right":              {[]string{"approve", "cluster", "store-201"}, statusBlind, "Forbidden", true, 0},
		"a word that is neither":                  {[]string{"approve", "node", "x"}, statusUse, "it is approve (cluster NAME | csr NAME)", false, 0},
		"a bundle":                                {[]string{"approve", "csr", "x", "--from", "y.tgz"}, statusUse, "a bundle cannot be written to", false, 0},
		"nothing is written with a wrong context": {[]string{"approve", "csr", "x", "--context", "nowhere"}, statusUse, "nowhere", false, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := gate(t)
			h.denied = tc.denied
			got := plays(t, h, tc.args...)
			assert.Equal(t, tc.status, got.status)
			assert.Contains(t, got.out+got.errs, tc.says)
			assert.Len(t, h.written, tc.written)
		})
	}
}

// A person who may accept clusters and not approve their requests would leave a cluster that is accepted and cannot join.
func TestAClusterIsNotAcceptedWhoseRequestsMayNotBeApproved(t *testing.T) {
	h := gate(t)
	h.fails = func(r *http.Request) int {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/approval") {
			return http.StatusForbidden
		}
		return 0
	}
	got := plays(t, h, "approve", "cluster", "store-201")
	assert.Equal(t, statusBlind, got.status, got.out)
	assert.Contains(t, got.errs, "nothing was written")
	assert.Empty(t, h.written)
}

func TestAWriteThatFailsIsTold(t *testing.T) {
	h := gate(t)
	h.changed = true
	got := plays(t, h, "approve", "cluster", "store-201")
	assert.Equal(t, statusProblem, got.status)
	assert.Contains(t, got.errs, "nothing was written")
	assert.Contains(t, got.errs, "changing certificatesigningrequests.certificates.k8s.io store-201-good: Conflict")
	assert.Empty(t, got.out, "nothing is said to be written that is not")
}

// An agent may make requests with any label and any content. The hub refuses those in which one agent asks for the
// identity of another cluster, and says "Do not approve it by hand unless you know why"; a person who accepts a new
// cluster must not hand it over to such an agent.
func TestTheIdentityOfAClusterIsNotGivenToTheAgentOfAnother(t *testing.T) {
	for sentence, who := range map[string]struct {
		user   string
		groups []any
	}{
		"the agent of another cluster": {"system:open-cluster-management:store-001:a", []any{
			"system:open-cluster-management:store-001", "system:open-cluster-management:managed-clusters",
		}},
		"a bootstrap credential of another cluster": {"system:bootstrap:abcdef", []any{"system:bootstrappers:managedcluster:store-001"}},
	} {
		for _, args := range [][]string{{"approve", "cluster", "store-201"}, {"approve", "csr", "store-201-good"}} {
			t.Run(sentence+" "+args[1], func(t *testing.T) {
				h := gate(t)
				spec := part(h.lists[pathRequests][0], "spec")
				require.Equal(t, "store-201-good", part(h.lists[pathRequests][0], "metadata")["name"])
				spec["username"], spec["groups"] = who.user, who.groups
				got := plays(t, h, args...)
				assert.Equal(t, statusProblem, got.status)
				assert.Contains(t, got.out, "request store-201-good of user "+who.user+" is not approved")
				for _, write := range h.written {
					assert.NotContains(t, write, "/store-201-good/approval")
				}
			})
		}
	}
}

// A person on call types what the answer says. For a request that "approve" refuses, it must not say to approve it.
func TestNobodyIsToldToApproveARequestOfAnotherIdentity(t *testing.T) {
	got := plays(t, gate(t), "why", "csr", "store-201-evil")
	assert.Equal(t, statusProblem, got.status)
	assert.NotContains(t, got.out, "kubectl certificate approve store-201-evil")
	assert.Contains(t, got.out, "next: kubectl spokelet approve csr store-201-evil", "which looks at it, and refuses")
}
