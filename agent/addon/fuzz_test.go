package addon

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/token"
)

// FuzzPlace decides about add-ons with whatever a user wrote into what says where their agents run and for whom their
// credentials are. A Secret is only planned where there can be one.
func FuzzPlace(f *testing.F) {
	f.Add("ns", "", "", "u", "g", "example.com/s", "ServiceAccount c1/hello-agent (UID: u1) is ready", true)
	f.Add("", "other", "host", "", "", "", "", false)
	f.Add("../kube-system", "A B", "\x00", "system:masters", "system:masters", "a/b/c", "(UID: ", true)
	f.Fuzz(func(t *testing.T, status, annotation, hosting, user, group, signer, ready string, tokens bool) {
		facts := addonWith(hubClient("csr", user, group), hubClient("token", user), customSigner(signer))
		facts.split = true
		facts.addon.Status.Namespace, facts.addon.Status.HealthCheck.Mode = status, ""
		facts.addon.Annotations = map[string]string{
			names.AnnotationInstallNamespace: annotation, names.AnnotationHostingCluster: hosting,
		}
		facts.addon.Status.Conditions = []metav1.Condition{{
			Type: token.ConditionInfrastructure, Status: metav1.ConditionTrue, Message: ready,
		}}
		facts.lease = observation{known: true}
		if tokens {
			facts.driver = token.Driver
		}
		p := decide(facts)
		for _, reg := range p.serve {
			assert.Empty(t, validation.IsDNS1123Label(reg.secret.Namespace))
			assert.Empty(t, validation.IsDNS1123Subdomain(reg.secret.Name))
			if reg.account != nil {
				assert.Equal(t, token.User("c1", "hello"), reg.account.user, "the subject is ours, whatever is written there")
			}
		}
		assert.Equal(t, hosting != "", p.place.side == sideAgent)
		assert.Len(t, conclude(facts, p, nil).Status.Registrations, len(facts.addon.Status.Registrations))
	})
}

// FuzzSecret reads and fills Secrets with whatever a user put there. Filled once, nothing is left to write, and what
// is not ours stays.
func FuzzSecret(f *testing.F) {
	good := jwt(helloAccount, "u1", noon, noon.Add(1000))
	f.Add(good, []byte("crt"), []byte("key"), []byte("kubeconfig"), "2026-11-20T12:00:00Z", "hub", "addon", true)
	f.Add([]byte("a.b.c"), []byte{}, []byte{}, []byte("{}"), "never", "", "", false)
	f.Add([]byte{}, []byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----"), []byte("x"),
		[]byte("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a}]"), "9999-12-31T23:59:59Z", "\x00", "pending", true)
	server := issue.HubServer{Cluster: "hub", Server: "https://hub"}
	f.Fuzz(func(t *testing.T, jwt, crt, key, kubeconfig []byte, issuedAt, hub, mark string, tokens bool) {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Labels:      map[string]string{names.LabelCredential: mark, names.LabelAddonName: "hello"},
				Annotations: map[string]string{names.AnnotationIssuedAt: issuedAt, names.AnnotationHub: hub},
			},
			Data: map[string][]byte{
				"token": jwt, "tls.crt": crt, "tls.key": key, "kubeconfig": kubeconfig, "theirs": []byte("x"),
			},
		}
		r, reg := &Reconciler{Server: server}, registration{kubeconfig: true}
		fresh := credential{pair: issue.PairOf(secret)}
		if tokens {
			reg.account = &account{user: helloAccount, uid: "u1"}
			fresh = tokenOf(secret)
			state := judgeToken(fresh, addonWith(), reg)
			assert.False(t, state.good(noon) && !state.verdict.Fits)
		}
		_ = fromOtherHub(secret, server)
		require.Empty(t, ownerOf(secret, addonWith(), sideAgent, secret.Annotations[names.AnnotationHub]).foreign)
		once, err := fill(r, reg, secret, fresh)
		require.NoError(t, err)
		twice, err := fill(r, reg, once, fresh)
		require.NoError(t, err)
		assert.Equal(t, once, twice)
		assert.Equal(t, "x", string(once.Data["theirs"]))
		assert.False(t, fromOtherHub(once, server))
	})
}
