package addon

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
)

func TestCheckOwner(t *testing.T) {
	secret := func(addon, cluster string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", Labels: map[string]string{
			names.LabelCredential: "addon", names.LabelAddonName: addon, names.LabelClusterName: cluster,
		}}}
	}
	tests := map[string]struct {
		secret  *corev1.Secret
		split   bool
		refused bool
	}{
		"a Secret without our labels may be taken over":    {secret: &corev1.Secret{}},
		"our own Secret is ours":                           {secret: secret("hello", "c1")},
		"that of another add-on is not":                    {secret: secret("other", "c1"), refused: true},
		"that of a former name of this cluster is":         {secret: secret("hello", "c0")},
		"that of a neighbour on a hosting cluster is not":  {secret: secret("hello", "c0"), split: true, refused: true},
		"our own Secret on a hosting cluster is ours also": {secret: secret("hello", "c1"), split: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := checkOwner(tc.secret, facts{name: "hello", cluster: "c1", split: tc.split}, sideAgent)
			if !tc.refused {
				assert.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, "give one of the two add-ons another namespace")
		})
	}
}

func TestFromOtherHub(t *testing.T) {
	here := csr.HubServer{Cluster: "hub", Server: "https://hub"}
	there := csr.HubServer{Cluster: "hub", Server: "https://other"}
	kubeconfig := func(s csr.HubServer) []byte {
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
	r := &Reconciler{Server: csr.HubServer{Cluster: "hub", Server: "https://hub"}}
	seen := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"theirs": "x"}},
		Data:       map[string][]byte{"theirs": []byte("x"), "kubeconfig": []byte("old")},
	}
	reg, pair := registration{kubeconfig: true}, csr.Pair{Certificate: []byte("crt"), Key: []byte("key")}
	got, err := r.fill(addonWith(), reg, seen, credential{pair: pair})
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

	again, err := r.fill(addonWith(), reg, got, credential{pair: pair})
	require.NoError(t, err)
	assert.Equal(t, got, again, "filled once, nothing is left to write")
	bare, err := r.fill(addonWith(), registration{}, &corev1.Secret{}, credential{pair: pair})
	require.NoError(t, err)
	assert.NotContains(t, bare.Data, "kubeconfig")
}
