package approve

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/names"

	"github.com/spokelet/spokelet/csr"
)

// The abuse cases of docs/reference/registration.md, "Abuse cases", by their names.
// Shows: registration/cluster-request-judged, registration/abuse-refused
func TestAbuse(t *testing.T) {
	registrations := []addonv1beta1.RegistrationConfig{kubeClient("cluster1", "hello")}
	agent1, agent10 := csr.ClusterUser("cluster1", "a"), csr.ClusterUser("cluster10", "a")

	t.Run("W-01 the agent of cluster10 asks for an add-on of cluster1", func(t *testing.T) {
		v := JudgeAddon(newRequest(t, forAddon(t, "cluster1", "hello", registrations[0]), agent10), registrations)
		assertNotApproved(t, v, ReasonRequesterNotTrusted)
		assert.Contains(t, v.Message, `"system:open-cluster-management:cluster10:a"`)
		assert.Contains(t, v.Message, `only the agent of that cluster (user system:open-cluster-management:cluster1:<agent>)`)
	})
	t.Run("W-02 a third organization of one's own choice", func(t *testing.T) {
		for group, want := range map[string]Decision{
			"system:authenticated":       DecisionApprove,
			csr.ClusterGroup("cluster2"): DecisionRefuse,
			csr.GroupManagedClusters:     DecisionRefuse,
			"system:masters":             DecisionRefuse,
			"system:unauthenticated":     DecisionRefuse,
			"":                           DecisionRefuse,
			"system:authenticated:x":     DecisionRefuse,
		} {
			asked := forAddon(t, "cluster1", "hello", registrations[0])
			asked.Groups = append(asked.Groups, group)
			v := JudgeAddon(newRequest(t, asked, agent1), registrations)
			assert.Equal(t, want, v.Decision, "third organization %q: %s", group, v.Message)
			if want == DecisionApprove {
				asked.Groups = append(asked.Groups, "a-fourth")
				assertNotApproved(t, JudgeAddon(newRequest(t, asked, agent1), registrations),
					ReasonSubjectNotExpected)
			}
		}
	})
	t.Run("W-02 only as the third, beside the two of the hub", func(t *testing.T) {
		for _, c := range []struct {
			groups []string
			reason string
		}{
			{csr.AddonGroups("cluster1", "hello")[:1], ReasonSubjectNotExpected},
			{[]string{"one"}, reasonIdentityNotOwn},
			{[]string{"one", "two", "three"}, reasonIdentityNotOwn},
		} {
			own := kubeClient("cluster1", "hello")
			own.KubeClient.Subject.Groups = c.groups
			asked := forAddon(t, "cluster1", "hello", own)
			asked.Groups = append(asked.Groups, "system:authenticated")
			assertNotApproved(t, JudgeAddon(newRequest(t, asked, agent1), []addonv1beta1.RegistrationConfig{own}),
				c.reason)
		}
	})
	t.Run("W-03 an annotation claims another requester", func(t *testing.T) {
		request := newRequest(t, forAddon(t, "cluster1", "hello", registrations[0]),
			"system:serviceaccount:open-cluster-management-hub:grpc-server-sa")
		request.Annotations = map[string]string{"open-cluster-management.io/csr-user": agent1}
		assertNotApproved(t, JudgeAddon(request, registrations), ReasonRequesterNotTrusted)
		cluster := newRequest(t, csr.ForCluster("cluster1", "a"), agent10)
		cluster.Annotations = map[string]string{"open-cluster-management.io/csr-user": agent1}
		assertNotApproved(t, JudgeCluster(cluster, Trust{}, false), ReasonRequesterNotTrusted)
		cluster.Spec.SignerName = "open-cluster-management.io/grpc"
		assertNotApproved(t, JudgeCluster(cluster, Trust{}, false), reasonNotOurs)
	})
	t.Run("W-04 the labels name one cluster and the content another", func(t *testing.T) {
		request := newRequest(t, csr.ForCluster("cluster2", "a"), csr.ClusterUser("cluster2", "a"))
		request.Labels[names.LabelClusterName] = "cluster1"
		assertNotApproved(t, JudgeCluster(request, Trust{}, false), ReasonSubjectNotExpected)
	})
	t.Run("W-05 any requester and any subject for a custom signer", func(t *testing.T) {
		custom := []addonv1beta1.RegistrationConfig{customRegistration("user-test", []string{"g1"}, nil)}
		other := customRegistration("admin", []string{"g1"}, nil)
		assertNotApproved(t, JudgeAddon(newRequest(t, forAddon(t, "cluster1", "hello", other), agent1), custom),
			ReasonSubjectNotExpected)
		assertNotApproved(t, JudgeAddon(newRequest(t, forAddon(t, "cluster1", "hello", custom[0]), agent10), custom),
			ReasonRequesterNotTrusted)
	})
	t.Run("W-06 alternative names, usages and lifetime", func(t *testing.T) {
		for name, c := range map[string]change{
			"names":    {fields: func(r *csr.Request) { r.DNSNames = []string{"kubernetes.default.svc"} }},
			"usages":   commonChanges()["a serving usage"],
			"lifetime": commonChanges()["a lifetime of ten years"],
		} {
			request := c.apply(t, csr.ForCluster("cluster1", "a"), agent1)
			v := JudgeCluster(request, trust(agent1), false)
			assert.Equal(t, DecisionRefuse, v.Decision, name)
		}
	})
	t.Run("W-07 a subject that only the status of the add-on names", func(t *testing.T) {
		forged := kubeClient("cluster1", "hello")
		forged.KubeClient.Subject.User = "system:kube-controller-manager"
		assertNotApproved(t, JudgeAddon(newRequest(t, forAddon(t, "cluster1", "hello", forged), agent1), registrations),
			ReasonSubjectNotExpected)
	})
	t.Run("W-08 a cluster called managed-clusters", func(t *testing.T) {
		user := csr.ClusterUser("managed-clusters", "a")
		v := JudgeCluster(newRequest(t, csr.ForCluster("managed-clusters", "a"), user), trust(user), false)
		assertNotApproved(t, v, ReasonClusterNameReserved)
		reserved := kubeClient("managed-clusters", "hello")
		v = JudgeAddon(newRequest(t, forAddon(t, "managed-clusters", "hello", reserved), user),
			[]addonv1beta1.RegistrationConfig{reserved})
		assertNotApproved(t, v, ReasonClusterNameReserved)
	})
	t.Run("W-09 labels of another cluster to fill its quota", func(t *testing.T) {
		request := newRequest(t, csr.ForCluster("cluster10", "a"), agent10)
		request.Labels[names.LabelClusterName] = "cluster1"
		v := JudgeCluster(request, Trust{}, false)
		assertNotApproved(t, v, ReasonSubjectNotExpected)
		assert.Contains(t, v.Message, `must be "system:open-cluster-management:cluster1:<agent>"`)
	})
}

// Shows: registration/cluster-request-judged
func TestLeniencesTowardsOldAgents(t *testing.T) {
	t.Run("a cluster may leave out the group of all clusters", func(t *testing.T) {
		asked := csr.ForCluster("c1", "a")
		asked.Groups = asked.Groups[:1]
		assert.Equal(t, DecisionReview, JudgeCluster(newRequest(t, asked, asked.User), Trust{}, false).Decision)
	})
	t.Run("an add-on without a subject may use the default of the hub or of the agent", func(t *testing.T) {
		registrations := []addonv1beta1.RegistrationConfig{{Type: addonv1beta1.KubeClient}}
		asked := forAddon(t, "c1", "hello", registrations[0])
		for _, groups := range [][]string{asked.Groups, csr.AddonGroups("c1", "hello")} {
			asked.Groups = groups
			v := JudgeAddon(newRequest(t, asked, csr.ClusterUser("c1", "a")), registrations)
			assert.Equal(t, DecisionApprove, v.Decision, v.Message)
		}
	})
	t.Run("a year of lifetime is nothing special", func(t *testing.T) {
		asked := csr.ForCluster("c1", "a")
		asked.ExpirationSeconds = ptr.To[int32](365 * 86400)
		assert.Equal(t, DecisionReview, JudgeCluster(newRequest(t, asked, asked.User), Trust{}, false).Decision)
	})
}

func TestRegistrationsThatGiveNoCertificate(t *testing.T) {
	registration := kubeClient("c1", "hello")
	request := newRequest(t, forAddon(t, "c1", "hello", registration), csr.ClusterUser("c1", "a"))
	byToken := kubeClient("c1", "hello")
	byToken.KubeClient.Driver = "token"
	for name, registrations := range map[string][]addonv1beta1.RegistrationConfig{
		"none":           nil,
		"a token":        {byToken},
		"an unknown one": {{Type: "other"}},
	} {
		t.Run(name, func(t *testing.T) {
			v := JudgeAddon(request, registrations)
			assertNotApproved(t, v, ReasonSignerNotExpected)
			assert.Contains(t, v.Message, "registers no certificate")
		})
	}
}

func TestAMessageTellsEveryDifferenceAndStaysShort(t *testing.T) {
	asked := forAddon(t, "c1", "hello", kubeClient("c1", "hello"))
	asked.User = "nobody\nat \"home\""
	asked.Groups = []string{"b", "a"}
	request := newRequest(t, asked, csr.ClusterUser("c1", "a"))
	request.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageAny}
	v := JudgeAddon(request, []addonv1beta1.RegistrationConfig{kubeClient("c1", "hello")})
	assertNotApproved(t, v, ReasonSubjectNotExpected)
	assert.Equal(t, `Not approved: this is no valid request for the credential of add-on "hello" on cluster "c1": `+
		`its common name is ["nobody\nat \"home\""] and must be `+
		`"system:open-cluster-management:cluster:c1:addon:hello:agent:hello-agent"; `+
		`its organizations are ["a", "b"] and must be exactly ["system:open-cluster-management:addon:hello", `+
		`"system:open-cluster-management:cluster:c1:addon:hello"]; `+
		`spec.usages is ["any"] and must be exactly ["client auth", "digital signature", "key encipherment"]. `+
		`Correct what asks or, for an add-on, the registration in its definition: the next request is judged by itself.`,
		v.Message)

	asked.Groups = nil
	for range 15 {
		asked.Groups = append(asked.Groups, strings.Repeat("ä", 20))
	}
	asked.User = strings.Repeat("u", 1000)
	v = JudgeAddon(newRequest(t, asked, csr.ClusterUser("c1", "a")),
		[]addonv1beta1.RegistrationConfig{kubeClient("c1", "hello")})
	assertNotApproved(t, v, ReasonSubjectNotExpected)
	assert.Contains(t, v.Message, "and 10 more")
}

func TestRenewalReviewCarriesAllThatIsKnownOfTheRequester(t *testing.T) {
	request := newRequest(t, csr.ForCluster("c1", "a"), csr.ClusterUser("c1", "a"))
	request.Spec.UID = "uid"
	request.Spec.Groups = []string{"g1", "g2"}
	request.Spec.Extra = map[string]certificatesv1.ExtraValue{"k": {"v1", "v2"}}
	assert.Equal(t, authorizationv1.SubjectAccessReviewSpec{
		User: csr.ClusterUser("c1", "a"), UID: "uid", Groups: []string{"g1", "g2"},
		Extra: map[string]authorizationv1.ExtraValue{"k": {"v1", "v2"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "renew", Group: "register.open-cluster-management.io",
			Resource: "managedclusters", Subresource: "clientcertificates",
		},
	}, RenewalReview(request))
}

func TestAReviewChangesNoOtherVerdict(t *testing.T) {
	for _, decision := range []Decision{DecisionIgnore, DecisionRefuse, DecisionApprove} {
		v := Verdict{Decision: decision, Reason: "R", Message: "m"}
		assert.Equal(t, v, v.Reviewed(true))
		assert.Equal(t, v, v.Reviewed(false))
	}
}

// FuzzJudge feeds any bytes, names and labels to both judges: what they approve must read, to the plain parser of the
// standard library, like a request of the requester's own cluster.
func FuzzJudge(f *testing.F) {
	asked := csr.ForCluster("c1", "a")
	f.Add(newRequest(f, asked, "").Spec.Request, asked.User, "c1", "")
	registered, err := csr.ForAddon("c1", "hello", kubeClient("c1", "hello"))
	require.NoError(f, err)
	f.Add(newRequest(f, registered, "").Spec.Request, csr.ClusterUser("c1", "a"), "c1", "hello")
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\n"), csr.ClusterUser("c10", "a"), "c1", "hello")
	f.Fuzz(func(t *testing.T, content []byte, requester, cluster, addon string) {
		request := &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{names.LabelClusterName: cluster}},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request: content, Username: requester, Usages: csr.Usages(),
				SignerName: certificatesv1.KubeAPIServerClientSignerName,
			},
		}
		judge := func() Verdict { return JudgeCluster(request, Trust{}, false) }
		if addon != "" {
			request.Labels[names.LabelAddonName] = addon
			registrations := []addonv1beta1.RegistrationConfig{kubeClient(cluster, addon)}
			judge = func() Verdict { return JudgeAddon(request, registrations) }
		}
		v := judge()
		require.NotEmpty(t, v.Reason)
		require.LessOrEqual(t, len(v.Message), 1000)
		if v.Decision != DecisionApprove && v.Decision != DecisionReview {
			return
		}
		id, ok := csr.ParseClusterUser(requester)
		require.True(t, ok)
		require.Equal(t, cluster, id.Cluster)
		parsed, err := csr.ParseRequest(content)
		require.NoError(t, err)
		require.Equal(t, v.Expected.User, parsed.Subject.CommonName)
		require.Subset(t, append(v.Expected.Groups, "system:authenticated"), parsed.Subject.Organization)
		require.Empty(t, parsed.IPAddresses)
		require.Subset(t, []string{addon + ".addon.open-cluster-management.io"}, append([]string{}, parsed.DNSNames...))
	})
}

// FuzzRoundTrip builds requests for any names: where the names are possible ones, the hub approves what the agent
// built, for the agent of that cluster and for no other.
func FuzzRoundTrip(f *testing.F) {
	f.Add("c1", "agent1", "hello")
	f.Add("cluster10", "8a3f1d5e-0b5e", "a.b")
	f.Add("managed-clusters", "a", "x")
	f.Add("a:b", "c", "d")
	f.Fuzz(func(t *testing.T, cluster, agent, addon string) {
		possible := len(validation.IsDNS1123Label(cluster)) == 0 && cluster != "managed-clusters" &&
			len(validation.IsDNS1123Subdomain(addon)) == 0 && len(addon) <= 63 &&
			len(validation.IsValidLabelValue(agent)) == 0 && agent != ""
		if !possible {
			return
		}
		self, other := csr.ClusterUser(cluster, agent), csr.ClusterUser(cluster+"0", agent)
		own := csr.ForCluster(cluster, agent)
		require.Equal(t, DecisionReview, JudgeCluster(newRequest(t, own, self), Trust{}, false).Decision)
		require.Equal(t, DecisionRefuse, JudgeCluster(newRequest(t, own, other), Trust{}, false).Decision)
		registrations := []addonv1beta1.RegistrationConfig{kubeClient(cluster, addon)}
		registered := forAddon(t, cluster, addon, registrations[0])
		require.Equal(t, DecisionApprove, JudgeAddon(newRequest(t, registered, self), registrations).Decision)
		require.Equal(t, DecisionRefuse, JudgeAddon(newRequest(t, registered, other), registrations).Decision)
	})
}
