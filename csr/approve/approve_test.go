package approve

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/names"

	"github.com/spokelet/spokelet/csr"
)

const (
	bootstrapUser = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap"
	customSigner  = "example.com/signer-test"
)

// trust names the users that are trusted.
func trust(users ...string) Trust { return Trust{Users: users} }

// newRequest builds a request as an agent does and stamps the requester as the API server does.
func newRequest(tb testing.TB, r csr.Request, requester string) *certificatesv1.CertificateSigningRequest {
	tb.Helper()
	key, err := csr.NewKey()
	require.NoError(tb, err)
	request, err := r.Build(key)
	require.NoError(tb, err)
	request.Name = r.GenerateName + "abcde"
	request.Spec.Username = requester
	return request
}

// withContent replaces the encoded request by one made from the template.
func withContent(tb testing.TB, request *certificatesv1.CertificateSigningRequest, template *x509.CertificateRequest) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(tb, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	require.NoError(tb, err)
	request.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func template(r csr.Request) *x509.CertificateRequest {
	return &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: r.User, Organization: r.Groups, OrganizationalUnit: r.OrganizationalUnits},
		DNSNames: r.DNSNames,
	}
}

func kubeClient(cluster, addon string) addonv1beta1.RegistrationConfig {
	return addonv1beta1.RegistrationConfig{
		Type: addonv1beta1.KubeClient,
		KubeClient: &addonv1beta1.KubeClientConfig{Subject: addonv1beta1.KubeClientSubject{
			BaseSubject: addonv1beta1.BaseSubject{
				User: csr.AddonUser(cluster, addon, addon+"-agent"), Groups: csr.AddonGroups(cluster, addon),
			},
		}},
	}
}

func customRegistration(user string, groups, units []string) addonv1beta1.RegistrationConfig {
	return addonv1beta1.RegistrationConfig{
		Type: addonv1beta1.CustomSigner,
		CustomSigner: &addonv1beta1.CustomSignerConfig{
			SignerName: customSigner,
			Subject: addonv1beta1.Subject{
				BaseSubject: addonv1beta1.BaseSubject{User: user, Groups: groups}, OrganizationUnits: units,
			},
		},
	}
}

func forAddon(tb testing.TB, cluster, addon string, r addonv1beta1.RegistrationConfig) csr.Request {
	tb.Helper()
	request, err := csr.ForAddon(cluster, addon, r)
	require.NoError(tb, err)
	return request
}

// change is one way to spoil a request: by its fields before it is built, or by the built object.
type change struct {
	fields func(*csr.Request)
	object func(*certificatesv1.CertificateSigningRequest)
	reason string
}

// commonChanges spoil a request of either kind.
func commonChanges() map[string]change {
	return map[string]change{
		"another user":        {fields: func(r *csr.Request) { r.User += "x" }, reason: ReasonSubjectNotExpected},
		"no user":             {fields: func(r *csr.Request) { r.User = "" }, reason: ReasonSubjectNotExpected},
		"another first group": {fields: func(r *csr.Request) { r.Groups[0] += "x" }, reason: ReasonSubjectNotExpected},
		"a further group":     {fields: addGroup("system:masters"), reason: ReasonSubjectNotExpected},
		"a doubled group":     {fields: doubleGroup, reason: ReasonSubjectNotExpected},
		"no groups":           {fields: func(r *csr.Request) { r.Groups = nil }, reason: ReasonSubjectNotExpected},
		"a further unit": {fields: func(r *csr.Request) { r.OrganizationalUnits = append(r.OrganizationalUnits, "u") },
			reason: ReasonSubjectNotExpected},
		"a further DNS name": {fields: func(r *csr.Request) { r.DNSNames = append(r.DNSNames, "kubernetes.default") },
			reason: ReasonNamesNotExpected},
		"a lifetime of ten years": {fields: func(r *csr.Request) { r.ExpirationSeconds = ptr.To[int32](10 * 365 * 86400) },
			reason: ReasonLifetimeTooLong},
		"a serving usage": {object: func(o *certificatesv1.CertificateSigningRequest) {
			o.Spec.Usages = append(o.Spec.Usages, certificatesv1.UsageServerAuth)
		}, reason: ReasonUsagesNotExpected},
		"a usage less": {object: func(o *certificatesv1.CertificateSigningRequest) { o.Spec.Usages = o.Spec.Usages[:2] },
			reason: ReasonUsagesNotExpected},
		"another usage instead": {object: func(o *certificatesv1.CertificateSigningRequest) {
			o.Spec.Usages[2] = certificatesv1.UsageServerAuth
		}, reason: ReasonUsagesNotExpected},
		"a doubled usage": {object: func(o *certificatesv1.CertificateSigningRequest) {
			o.Spec.Usages = append(o.Spec.Usages, o.Spec.Usages[0])
		}, reason: ReasonUsagesNotExpected},
		"no requester": {object: func(o *certificatesv1.CertificateSigningRequest) { o.Spec.Username = "" }},
		"the label of another cluster": {object: func(o *certificatesv1.CertificateSigningRequest) {
			o.Labels[names.LabelClusterName] += "0"
		}, reason: ReasonSubjectNotExpected},
		"no cluster label": {object: func(o *certificatesv1.CertificateSigningRequest) {
			delete(o.Labels, names.LabelClusterName)
		}, reason: reasonNotOurs},
		"no labels": {object: func(o *certificatesv1.CertificateSigningRequest) { o.Labels = nil },
			reason: reasonNotOurs},
		"a serving signer": {object: func(o *certificatesv1.CertificateSigningRequest) {
			o.Spec.SignerName = certificatesv1.KubeletServingSignerName
		}},
		"no request": {object: func(o *certificatesv1.CertificateSigningRequest) { o.Spec.Request = nil },
			reason: ReasonRequestMalformed},
		"another PEM type": {object: func(o *certificatesv1.CertificateSigningRequest) {
			o.Spec.Request = []byte(strings.ReplaceAll(string(o.Spec.Request), "CERTIFICATE REQUEST", "CERTIFICATE"))
		}, reason: ReasonRequestMalformed},
		"something behind the request": {object: func(o *certificatesv1.CertificateSigningRequest) {
			o.Spec.Request = append(o.Spec.Request, o.Spec.Request...)
		}, reason: ReasonRequestMalformed},
		"something before the request": {object: func(o *certificatesv1.CertificateSigningRequest) {
			o.Spec.Request = append([]byte("hello\n"), o.Spec.Request...)
		}, reason: ReasonRequestMalformed},
		"headers in the PEM block": {object: func(o *certificatesv1.CertificateSigningRequest) {
			block, _ := pem.Decode(o.Spec.Request)
			block.Headers = map[string]string{"a": "b"}
			o.Spec.Request = pem.EncodeToMemory(block)
		}, reason: ReasonRequestMalformed},
		"a flipped bit in the signature": {object: func(o *certificatesv1.CertificateSigningRequest) {
			block, _ := pem.Decode(o.Spec.Request)
			block.Bytes[len(block.Bytes)-1] ^= 1
			o.Spec.Request = pem.EncodeToMemory(block)
		}, reason: ReasonKeyNotAccepted},
	}
}

func doubleGroup(r *csr.Request) { r.Groups = append(r.Groups, r.Groups[0]) }

func addGroup(group string) func(*csr.Request) {
	return func(r *csr.Request) { r.Groups = append(r.Groups, group) }
}

func (c change) apply(t *testing.T, r csr.Request, requester string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	r.Groups = append([]string(nil), r.Groups...)
	if c.fields != nil {
		c.fields(&r)
	}
	request := newRequest(t, r, requester)
	if c.object != nil {
		c.object(request)
	}
	return request
}

func assertNotApproved(t *testing.T, v Verdict, reason string) {
	t.Helper()
	assert.Contains(t, []Decision{DecisionRefuse, DecisionIgnore}, v.Decision, v.Message)
	assert.NotEmpty(t, v.Reason)
	assert.NotEmpty(t, v.Message)
	assert.LessOrEqual(t, len(v.Message), 1000)
	if reason != "" {
		assert.Equal(t, reason, v.Reason, v.Message)
	}
}

// Shows: registration/cluster-request-judged, registration/request-matches-approval
func TestTheHubApprovesWhatAnAgentBuildsForItsCluster(t *testing.T) {
	for _, cluster := range []string{"c1", "cluster10", "a", strings.Repeat("x", 63), "cluster", "addon"} {
		for _, agent := range []string{"a1b2c", "8a3f1d5e-0b5e-4b1f-9d2b-4f1d5e0b5e4b", "Agent_1"} {
			user := csr.ClusterUser(cluster, agent)
			t.Run(user, func(t *testing.T) {
				renewal := JudgeCluster(newRequest(t, csr.ForCluster(cluster, agent), user), Trust{}, false)
				assert.Equal(t, DecisionReview, renewal.Decision, renewal.Message)
				allowed := renewal.Reviewed(true)
				assert.Equal(t, DecisionApprove, allowed.Decision)
				assert.Equal(t, ReasonApproved, allowed.Reason)
				assert.Equal(t, messageClusterApproved, allowed.Message)
				refused := renewal.Reviewed(false)
				assertNotApproved(t, refused, ReasonRenewalNotAllowed)
				assert.Contains(t, refused.Message, "spec.hubAcceptsClient")

				first := JudgeCluster(newRequest(t, csr.ForCluster(cluster, agent), bootstrapUser),
					trust(bootstrapUser), false)
				assert.Equal(t, DecisionApprove, first.Decision, first.Message)
			})
		}
	}
}

// Shows: registration/add-on-request-judged
func TestTheHubApprovesWhatAnAgentBuildsForAnAddon(t *testing.T) {
	for _, cluster := range []string{"c1", "cluster10", strings.Repeat("x", 63)} {
		for _, addon := range []string{"hello", "a.b", strings.Repeat("y", 63)} {
			for name, registration := range map[string]addonv1beta1.RegistrationConfig{
				"kubeClient":                   kubeClient(cluster, addon),
				"kubeClient without subject":   {Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{}},
				"kubeClient without config":    {Type: addonv1beta1.KubeClient},
				"customSigner":                 customRegistration("user-test", []string{"g2", "g1"}, []string{"u1", "u2"}),
				"customSigner without subject": customRegistration("", nil, nil),
			} {
				t.Run(cluster+"/"+addon+"/"+name, func(t *testing.T) {
					registrations := []addonv1beta1.RegistrationConfig{kubeClient("other", "other"), registration}
					request := newRequest(t, forAddon(t, cluster, addon, registration), csr.ClusterUser(cluster, "agent"))
					v := JudgeAddon(request, registrations)
					assert.Equal(t, DecisionApprove, v.Decision, v.Message)
					assert.Equal(t, ReasonApproved, v.Reason)
					assert.Equal(t, messageAddonApproved, v.Message)
					assert.Equal(t, request.Spec.SignerName, v.Expected.Signer)
				})
			}
		}
	}
}

// Shows: registration/cluster-request-judged
func TestNothingElseIsApprovedForACluster(t *testing.T) {
	user := csr.ClusterUser("c1", "agent1")
	changes := commonChanges()
	// The name of another agent of this cluster is a good one, so what gives it away is the requester.
	changes["another user"] = change{fields: changes["another user"].fields, reason: ReasonRequesterNotTrusted}
	changes["the group of another cluster"] = change{
		fields: func(r *csr.Request) { r.Groups[0] = csr.ClusterGroup("c2") }, reason: ReasonSubjectNotExpected}
	changes["only the group of all clusters"] = change{
		fields: func(r *csr.Request) { r.Groups = r.Groups[1:] }, reason: ReasonSubjectNotExpected}
	changes["a DNS name"] = change{
		fields: func(r *csr.Request) { r.DNSNames = []string{"c1"} }, reason: ReasonNamesNotExpected}
	changes["the label of an add-on"] = change{object: func(o *certificatesv1.CertificateSigningRequest) {
		o.Labels[names.LabelAddonName] = "hello"
	}, reason: reasonNotOurs}
	changes["an empty label of an add-on"] = change{object: func(o *certificatesv1.CertificateSigningRequest) {
		o.Labels[names.LabelAddonName] = ""
	}, reason: reasonNotOurs}
	changes["the requester of another cluster"] = change{object: requestedBy(csr.ClusterUser("c10", "agent1")),
		reason: ReasonRequesterNotTrusted}
	changes["another agent of the cluster"] = change{object: requestedBy(csr.ClusterUser("c1", "agent2")),
		reason: ReasonRequesterNotTrusted}
	changes["a requester that only starts like the agent"] = change{object: requestedBy(user + "x"),
		reason: ReasonRequesterNotTrusted}
	changes["an add-on agent as requester"] = change{object: requestedBy(csr.AddonUser("c1", "hello", "hello-agent")),
		reason: ReasonRequesterNotTrusted}
	changes["anybody as requester"] = change{object: requestedBy("jane"), reason: ReasonAwaitingApproval}

	for name, c := range changes {
		t.Run(name, func(t *testing.T) {
			assertNotApproved(t, JudgeCluster(c.apply(t, csr.ForCluster("c1", "agent1"), user), Trust{}, false), c.reason)
		})
	}
}

func TestAnEmptyUserIsNeverTrusted(t *testing.T) {
	request := newRequest(t, csr.ForCluster("c1", "a"), "")
	assertNotApproved(t, JudgeCluster(request, trust("", bootstrapUser), false), ReasonAwaitingApproval)
}

func TestAnAgentNameOfAnyLengthIsNotTrusted(t *testing.T) {
	for length, want := range map[int]Decision{1: DecisionReview, 253: DecisionReview, 254: DecisionRefuse} {
		own := csr.ForCluster("c1", strings.Repeat("a", length))
		assert.Equal(t, want, JudgeCluster(newRequest(t, own, own.User), Trust{}, false).Decision, "%d characters", length)
	}
}

func TestALabelThatNamesNoClusterIsRefused(t *testing.T) {
	for _, cluster := range []string{"C1", "c_1", "c.1", "-c", "c1:a"} {
		own := csr.ForCluster(cluster, "a")
		assertNotApproved(t, JudgeCluster(newRequest(t, own, own.User), trust(own.User), false),
			ReasonClusterNameInvalid)
	}
}

// Shows: registration/add-on-request-judged
func TestNothingElseIsApprovedForAnAddon(t *testing.T) {
	requester := csr.ClusterUser("c1", "agent1")
	for kind, registration := range map[string]addonv1beta1.RegistrationConfig{
		"kubeClient":   kubeClient("c1", "hello"),
		"customSigner": customRegistration("user-test", []string{"g1", "g2"}, []string{"u1"}),
	} {
		changes := commonChanges()
		if kind == "customSigner" {
			// The subject of a custom signer need not name the cluster, so what gives this away is the requester.
			changes["the label of another cluster"] = change{
				object: changes["the label of another cluster"].object, reason: ReasonRequesterNotTrusted}
			changes["system:authenticated besides the groups"] = change{
				fields: addGroup("system:authenticated"), reason: ReasonSubjectNotExpected}
			changes["another unit"] = change{
				fields: func(r *csr.Request) { r.OrganizationalUnits = []string{"u2"} }, reason: ReasonSubjectNotExpected}
		}
		changes["one group less"] = change{
			fields: func(r *csr.Request) { r.Groups = r.Groups[:1] }, reason: ReasonSubjectNotExpected}
		changes["no DNS name"] = change{
			fields: func(r *csr.Request) { r.DNSNames = nil }, reason: ReasonNamesNotExpected}
		changes["the DNS name of another add-on"] = change{
			fields: func(r *csr.Request) { r.DNSNames[0] = "x" + r.DNSNames[0] }, reason: ReasonNamesNotExpected}
		changes["the label of another add-on"] = change{object: func(o *certificatesv1.CertificateSigningRequest) {
			o.Labels[names.LabelAddonName] = "other"
		}}
		changes["no label of an add-on"] = change{object: func(o *certificatesv1.CertificateSigningRequest) {
			delete(o.Labels, names.LabelAddonName)
		}, reason: reasonNotOurs}
		changes["a signer that the add-on does not register with"] = change{
			object: func(o *certificatesv1.CertificateSigningRequest) { o.Spec.SignerName = "example.com/other" },
			reason: ReasonSignerNotExpected}
		for name, by := range map[string]string{
			"the agent of a cluster whose name starts the same": csr.ClusterUser("c10", "agent1"),
			"the bootstrap user":        bootstrapUser,
			"the add-on agent itself":   csr.AddonUser("c1", "hello", "hello-agent"),
			"the group of the cluster":  csr.ClusterGroup("c1"),
			"a longer name of an agent": requester + ":more",
			"the cluster without agent": csr.ClusterGroup("c1") + ":",
			"the agent with a space":    " " + requester,
		} {
			changes["requested by "+name] = change{object: requestedBy(by), reason: ReasonRequesterNotTrusted}
		}
		for name, c := range changes {
			t.Run(kind+" with "+name, func(t *testing.T) {
				request := c.apply(t, forAddon(t, "c1", "hello", registration), requester)
				registered := registration
				if cluster, addon, _ := csr.Subject(request); kind == "kubeClient" {
					registered = kubeClient(cluster, addon) // what the hub computes for where the labels point
				}
				v := JudgeAddon(request, []addonv1beta1.RegistrationConfig{registered})
				assertNotApproved(t, v, c.reason)
			})
		}
	}
}

func requestedBy(user string) func(*certificatesv1.CertificateSigningRequest) {
	return func(o *certificatesv1.CertificateSigningRequest) { o.Spec.Username = user }
}

func TestARefusalEndsWithItsRemedy(t *testing.T) {
	for _, text := range []string{"x", strings.Repeat("x", 3000)} {
		v := refuse("credential", []problem{{ReasonSubjectNotExpected, text}})
		assert.True(t, strings.HasSuffix(v.Message, "the next request is judged by itself."), v.Message)
		assert.LessOrEqual(t, len(v.Message), maxMessage)
	}
}

// FuzzJudgeCluster feeds everything that the author of a request chooses to the judge of clusters: what it lets pass
// names, to the parser of the standard library, one agent of the cluster of the label, who asks for itself, and no
// group besides the two of the cluster.
func FuzzJudgeCluster(f *testing.F) {
	own := csr.ForCluster("c1", "a")
	good := newRequest(f, own, "").Spec.Request
	f.Add(good, own.User, "c1", "client auth,digital signature,key encipherment", int32(0))
	f.Add(good, csr.ClusterUser("c10", "a"), "c1", "client auth", int32(1<<30))
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\na: b\n\n-----END CERTIFICATE REQUEST-----"), "trusted", "c1", "", int32(1))
	f.Fuzz(func(t *testing.T, content []byte, requester, cluster, usages string, seconds int32) {
		request := &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{names.LabelClusterName: cluster}},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request: content, Username: requester, ExpirationSeconds: ptr.To(seconds),
				SignerName: certificatesv1.KubeAPIServerClientSignerName,
			},
		}
		for usage := range strings.SplitSeq(usages, ",") {
			request.Spec.Usages = append(request.Spec.Usages, certificatesv1.KeyUsage(usage))
		}
		v := JudgeCluster(request, trust("trusted"), false)
		require.LessOrEqual(t, len(v.Message), 1000)
		if v.Decision != DecisionApprove && v.Decision != DecisionReview {
			return
		}
		parsed, err := csr.ParseRequest(content)
		require.NoError(t, err)
		require.NoError(t, parsed.CheckSignature())
		id, ok := csr.ParseClusterUser(parsed.Subject.CommonName)
		require.True(t, ok && id.Cluster == cluster)
		require.True(t, requester == "trusted" || requester == parsed.Subject.CommonName)
		require.Equal(t, v.Decision == DecisionReview, requester == parsed.Subject.CommonName)
		require.Contains(t, parsed.Subject.Organization, csr.ClusterGroup(cluster))
		require.Subset(t, []string{csr.ClusterGroup(cluster), csr.GroupManagedClusters}, parsed.Subject.Organization)
		require.Len(t, parsed.Subject.Names, 1+len(parsed.Subject.Organization))
		require.Empty(t, parsed.Extensions)
		require.Len(t, request.Spec.Usages, 3)
	})
}
