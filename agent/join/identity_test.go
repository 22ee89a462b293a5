package join

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
)

// hubSecret is where the credential is kept.
var hubSecret = types.NamespacedName{Namespace: "agent", Name: names.SecretHub}

// Shows: registration/identity-order
func TestResolveIdentity(t *testing.T) {
	secret := func(cluster, agent string) *corev1.Secret {
		data := map[string][]byte{}
		if cluster != "" {
			data["cluster-name"] = []byte(cluster)
		}
		if agent != "" {
			data["agent-name"] = []byte(agent)
		}
		return &corev1.Secret{Data: data}
	}
	random := csr.Identity{Cluster: "drawn", Agent: "dice"}
	tests := map[string]struct {
		flags   csr.Identity
		secrets []*corev1.Secret
		want    csr.Identity
		problem string
	}{
		"with nothing known, both are drawn": {want: random},
		"the flags come first": {
			flags: csr.Identity{Cluster: "c1", Agent: "a1"}, secrets: []*corev1.Secret{secret("old", "old")},
			want: csr.Identity{Cluster: "c1", Agent: "a1"},
		},
		"what a former agent left comes next": {
			flags: csr.Identity{Cluster: "c1"}, secrets: []*corev1.Secret{nil, secret("old", "a0")},
			want: csr.Identity{Cluster: "c1", Agent: "a0"},
		},
		"the first Secret that knows counts": {
			secrets: []*corev1.Secret{secret("c0", ""), secret("c9", "a9")}, want: csr.Identity{Cluster: "c0", Agent: "a9"},
		},
		"a name that cannot be a namespace": {
			flags:   csr.Identity{Cluster: "Bad_Name"},
			problem: `cluster name "Bad_Name" cannot be the name of a namespace on the hub`,
		},
		"the name of the group of all clusters": {
			flags: csr.Identity{Cluster: "managed-clusters"}, problem: `cluster name "managed-clusters" is reserved`,
		},
		"an agent name that would change the user name": {
			flags: csr.Identity{Cluster: "c1", Agent: "a:b"}, problem: `agent name "a:b" must not be empty nor contain a colon`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ResolveIdentity(tc.flags, random, tc.secrets...)
			if tc.problem != "" {
				require.ErrorContains(t, err, tc.problem)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestADrawnIdentityStays(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	first, err := Identify(t.Context(), c, hubSecret, csr.Identity{})
	require.NoError(t, err)
	assert.Len(t, first.Cluster, 36)
	assert.Len(t, first.Agent, 5)
	second, err := Identify(t.Context(), c, hubSecret, csr.Identity{})
	require.NoError(t, err)
	assert.Equal(t, first, second)

	other, err := Identify(t.Context(), c, hubSecret, csr.Identity{Cluster: "c1"})
	require.NoError(t, err)
	assert.Equal(t, csr.Identity{Cluster: "c1", Agent: first.Agent}, other)
}

func TestADrawnNameJoinsAPendingKeyWithoutHarm(t *testing.T) {
	pending := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "agent", Name: names.SecretHub + "-pending"},
		Data:       map[string][]byte{"tls.key": []byte("key")},
	}
	c := fake.NewClientBuilder().WithObjects(pending).Build()
	id, err := Identify(t.Context(), c, hubSecret, csr.Identity{Cluster: "c1"})
	require.NoError(t, err)
	secret, err := readSecret(t.Context(), c, keyOf(pending))
	require.NoError(t, err)
	assert.Equal(t, []byte("key"), secret.Data["tls.key"])
	assert.Equal(t, []byte(id.Agent), secret.Data["agent-name"])
}

func TestTwoAgentsOfOneNamespaceDrawDifferentNames(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	other := types.NamespacedName{Namespace: hubSecret.Namespace, Name: "other"}
	first, err := Identify(t.Context(), c, hubSecret, csr.Identity{})
	require.NoError(t, err)
	second, err := Identify(t.Context(), c, other, csr.Identity{})
	require.NoError(t, err)
	assert.NotEqual(t, first, second)
	for key, want := range map[types.NamespacedName]csr.Identity{hubSecret: first, other: second} {
		again, err := Identify(t.Context(), c, key, csr.Identity{})
		require.NoError(t, err)
		assert.Equal(t, want, again, "and each keeps its own")
	}
}

func TestNamesThatAnEarlierVersionDrewAreKept(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "agent", Name: names.SecretHub + "-pending"},
		Data:       map[string][]byte{"cluster-name": []byte("c1"), "agent-name": []byte("a1")},
	}).Build()
	id, err := Identify(t.Context(), c, types.NamespacedName{Namespace: "agent", Name: "other"}, csr.Identity{})
	require.NoError(t, err)
	assert.Equal(t, csr.Identity{Cluster: "c1", Agent: "a1"}, id)
}
