package addon

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// lagging is a cluster whose cache is behind its API server.
type lagging struct {
	cluster.Cluster
	cached client.Client
	live   client.Reader
}

// GetClient implements cluster.Cluster.
func (l lagging) GetClient() client.Client { return l.cached }

// GetAPIReader implements cluster.Cluster.
func (l lagging) GetAPIReader() client.Reader { return l.live }

func TestASecretOfOthersThatIsGoneDoesNotBlockAnAddonWhileItIsStillInTheCache(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "hello-hub-kubeconfig"}
	foreign := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Data:       map[string][]byte{"kubeconfig": []byte("precious")},
	}
	reg, f := registration{secret: key}, facts{name: "hello", cluster: "c1"}
	load := func(onServer ...client.Object) (stored, error) {
		r := &Reconciler{sides: map[side]cluster.Cluster{sideAgent: lagging{
			cached: fake.NewClientBuilder().WithObjects(foreign.DeepCopy()).Build(),
			live:   fake.NewClientBuilder().WithObjects(onServer...).Build(),
		}}}
		return (&serving{r, f, place{side: sideAgent}, reg}).load(t.Context(), false)
	}
	have, err := load()
	require.NoError(t, err)
	assert.Nil(t, have.secret)

	_, err = load(foreign.DeepCopy())
	require.ErrorAs(t, err, &foreignError{}, "as long as it is there, it blocks")
}
