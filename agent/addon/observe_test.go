package addon

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/names"
)

func TestOwnerOf(t *testing.T) {
	const mine, other = "agent/hub-kubeconfig-secret", "elsewhere/hub-kubeconfig-secret"
	secret := func(addon, cluster, mark, hub string) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "s", Annotations: map[string]string{}, Labels: map[string]string{
				names.LabelCredential: "addon", names.LabelAddonName: addon, names.LabelClusterName: cluster,
			},
		}}
		for key, value := range map[string]string{names.AnnotationAgent: mark, names.AnnotationHub: hub} {
			if value != "" {
				s.Annotations[key] = value
			}
		}
		return s
	}
	tests := map[string]struct {
		secret *corev1.Secret
		split  bool
		on     side
		// foreign is a part of what is said; empty where the Secret is ours.
		foreign, unlessGone string
	}{
		"a Secret without our labels may be taken over":    {secret: &corev1.Secret{}},
		"our own Secret is ours":                           {secret: secret("hello", "c1", mine, "hub")},
		"so is one from before there were marks":           {secret: secret("hello", "c1", "", "hub")},
		"that of another add-on is not":                    {secret: secret("other", "c1", mine, "hub"), foreign: "add-on other"},
		"that of a former name of this cluster is ours":    {secret: secret("hello", "c0", mine, "hub")},
		"so is one without a mark":                         {secret: secret("hello", "c0", "", "hub")},
		"but not one without a mark from another hub":      {secret: secret("hello", "c0", "", "x"), foreign: "if no other agent"},
		"our own Secret on a hosting cluster is ours also": {secret: secret("hello", "c1", mine, "hub"), split: true},
		"a neighbour without a mark on a hosting cluster is one": {
			secret: secret("hello", "c0", "", "hub"), split: true, foreign: "if no other agent",
		},
		"that of a former name on a hosting cluster is ours": {secret: secret("hello", "c0", mine, "hub"), split: true},
		"that of another agent is ours once its namespace is gone": {
			secret: secret("hello", "c0", other, "hub"), foreign: "agent in namespace elsewhere", unlessGone: "elsewhere",
		},
		"that of the agent of another hub is too, though the clusters have one name": {
			secret: secret("hello", "c1", other, "x"), foreign: "agent in namespace elsewhere", unlessGone: "elsewhere",
		},
		"two agents of one cluster at one hub share":    {secret: secret("hello", "c1", other, "hub")},
		"another agent in our namespace is another one": {secret: secret("hello", "c0", "agent/x", "hub"), foreign: "namespace agent", unlessGone: "agent"},
		"we on the managed cluster are known by our mark": {
			secret: secret("hello", "c0", "hosted:"+mine, "hub"), split: true, on: sideSpoke,
		},
		"an agent on the managed cluster is not a hosted one": {
			secret: secret("hello", "c0", mine, "hub"), split: true, on: sideSpoke,
			foreign: "agent in namespace agent", unlessGone: "agent",
		},
		"whether a hosted one is gone, nobody can see": {
			secret: secret("hello", "c0", "hosted:"+other, "hub"), foreign: "if agent hosted:elsewhere/",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			on := cmp.Or(tc.on, sideAgent)
			got := ownerOf(tc.secret, facts{name: "hello", cluster: "c1", agent: mine, split: tc.split}, on, "hub")
			assert.Equal(t, tc.unlessGone, got.unlessGone)
			if tc.foreign == "" {
				assert.Empty(t, got.foreign)
				return
			}
			assert.Contains(t, got.foreign, "give one of the two add-ons another namespace")
			assert.Contains(t, got.foreign, tc.foreign)
		})
	}
}

func TestASecretOfAnotherAgentIsAdoptedForItsContent(t *testing.T) {
	pair := func(user string) map[string][]byte {
		return map[string][]byte{csr.KeyClusterName: []byte("c1"), csr.KeyCertificate: certificateOf(t, user)}
	}
	with := func(data map[string][]byte, key, value string) map[string][]byte {
		data[key] = []byte(value)
		return data
	}
	own := csr.AddonUser("c1", "hello", "a")
	for name, tc := range map[string]struct {
		data  map[string][]byte
		other bool
		want  bool
	}{
		"a certificate of the add-on":                  {data: pair(own), want: true},
		"a certificate with the subject that is asked": {data: pair("user"), want: true},
		"a certificate of another add-on":              {data: pair(csr.AddonUser("c1", "other", "a"))},
		"a certificate for another cluster":            {data: pair(csr.AddonUser("c2", "hello", "a"))},
		"a certificate of the cluster itself":          {data: pair(csr.ClusterUser("c1", "a"))},
		"the name of another cluster":                  {data: with(pair(own), csr.KeyClusterName, "c2")},
		"a token of the add-on": {
			data: with(map[string][]byte{"token": jwt(helloAccount, "u1", noon, noon)}, csr.KeyClusterName, "c1"), want: true,
		},
		"a token for a signer that issues certificates": {
			data: with(map[string][]byte{"token": jwt(helloAccount, "u1", noon, noon)}, csr.KeyClusterName, "c1"), other: true,
		},
		"a bootstrap kubeconfig": {data: map[string][]byte{csr.KeyKubeconfig: []byte("apiVersion: v1")}},
		"a TLS key of a server":  {data: map[string][]byte{csr.KeyCertificate: certificateOf(t, "user")}},
		"garbage":                {data: with(pair(own), csr.KeyCertificate, "garbage")},
		"nothing":                {want: true},
	} {
		t.Run(name, func(t *testing.T) {
			reg := registration{kubeconfig: !tc.other, request: csr.Request{User: "user"}}
			got := isCredentialOf(&corev1.Secret{Data: tc.data}, facts{name: "hello", cluster: "c1"}, reg)
			assert.Equal(t, tc.want, got)
		})
	}
}

// certificateOf returns a certificate for a user, signed by itself.
func certificateOf(t *testing.T, user string) []byte {
	t.Helper()
	return certificateUntil(t, user, time.Time{})
}

// certificateUntil returns a certificate of a user that expires at an instant.
func certificateUntil(t *testing.T, user string, end time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: user}, NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestIsOfOthers(t *testing.T) {
	tests := map[string]struct {
		kind, mark, hub string
		want            bool
	}{
		"ours is not":                                 {kind: "addon", mark: "agent/s", hub: "hub"},
		"one without a mark is not":                   {kind: "addon", hub: "other"},
		"what another agent has from our hub is ours": {kind: "addon", mark: "x/s", hub: "hub"},
		"what another agent has from its hub is not to be removed": {
			kind: "addon", mark: "x/s", hub: "other", want: true,
		},
		"the pending key of another agent is not to be removed": {kind: "pending", mark: "agent/x", want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Labels:      map[string]string{names.LabelCredential: tc.kind},
				Annotations: map[string]string{names.AnnotationAgent: tc.mark, names.AnnotationHub: tc.hub},
			}}
			assert.Equal(t, tc.want, isOfOthers(secret, facts{agent: "agent/s"}, sideAgent, "hub"))
		})
	}
}

func TestFromOtherHub(t *testing.T) {
	here := issue.HubServer{Cluster: "hub", Server: "https://hub"}
	there := issue.HubServer{Cluster: "hub", Server: "https://other"}
	kubeconfig := func(s issue.HubServer) []byte {
		raw, err := s.Kubeconfig()
		require.NoError(t, err)
		return raw
	}
	tests := map[string]struct {
		annotation string
		kubeconfig []byte
		want       bool
	}{
		"nothing is known":                      {},
		"the annotation says so":                {annotation: there.Name(), want: true},
		"the annotation says it is not":         {annotation: here.Name(), kubeconfig: []byte("edited by hand")},
		"without it the kubeconfig says so":     {kubeconfig: kubeconfig(there), want: true},
		"without it the kubeconfig says it not": {kubeconfig: kubeconfig(here)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{Data: map[string][]byte{"kubeconfig": tc.kubeconfig}}
			if tc.annotation != "" {
				secret.Annotations = map[string]string{names.AnnotationHub: tc.annotation}
			}
			assert.Equal(t, tc.want, fromOtherHub(secret, here))
		})
	}
}

func TestFillKeepsWhatOthersPutThere(t *testing.T) {
	r := &Reconciler{Server: issue.HubServer{Cluster: "hub", Server: "https://hub"}}
	seen := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"theirs": "x"}},
		Data:       map[string][]byte{"theirs": []byte("x"), "kubeconfig": []byte("old")},
	}
	reg, pair := registration{kubeconfig: true}, issue.Pair{Certificate: []byte("crt"), Key: []byte("key")}
	got, err := fill(r, reg, seen, credential{pair: pair})
	require.NoError(t, err)
	assert.Equal(t, "x", string(got.Data["theirs"]))
	assert.Equal(t, "x", got.Labels["theirs"])
	assert.Equal(t, "c1", string(got.Data["cluster-name"]))
	assert.True(t, r.Server.Describes(got.Data["kubeconfig"]))
	assert.Equal(t, "old", string(seen.Data["kubeconfig"]), "what was read is left alone")
	selector := SecretSelector("c1")
	assert.True(t, selector.Matches(labelsOf(got)))
	assert.False(t, SecretSelector("c2").Matches(labelsOf(got)))
	assert.False(t, selector.Matches(labelsOf(seen)))

	again, err := fill(r, reg, got, credential{pair: pair})
	require.NoError(t, err)
	assert.Equal(t, got, again, "filled once, nothing is left to write")
	bare, err := fill(r, registration{}, &corev1.Secret{}, credential{pair: pair})
	require.NoError(t, err)
	assert.NotContains(t, bare.Data, "kubeconfig")
}

func TestASecretOnBothSidesIsOneOfTheSameCluster(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "hello-hub-kubeconfig"}
	merged := mergeSides([]ownedSecret{
		{side: sideSpoke, key: key, uid: "a"}, {side: sideAgent, key: key, uid: "a"}, {side: sideAgent, key: key, uid: "b"},
	})
	require.Len(t, merged, 2)
	assert.True(t, merged[0].both)
	assert.False(t, merged[1].both, "two clusters may have Secrets of the same name")

	for _, at := range []side{sideAgent, sideSpoke} {
		p := plan{
			remove: removeStale, place: place{side: at, namespace: "ns"}, serve: []registration{{secret: key}},
		}
		assert.False(t, obsolete(merged[0], types.NamespacedName{}, p, []result{{served: true}}), "it is in use on side %s", at)
		assert.Equal(t, at == sideSpoke, obsolete(merged[1], types.NamespacedName{}, p, []result{{served: true}}))
	}
}

// fill fills a Secret of the agent's side for a registration.
func fill(r *Reconciler, reg registration, seen *corev1.Secret, fresh credential) (*corev1.Secret, error) {
	return (&serving{r, addonWith(), place{side: sideAgent}, reg}).fill(seen, fresh)
}
