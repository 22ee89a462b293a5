// Package onebadcluster_test lets the agent of one cluster misbehave in every way that its rights allow, and counts what
// the other clusters notice of it: the writes of the hub manager that concern them, which no clock decides.
package onebadcluster_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/badagent"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

const (
	// bad begins the names of the clusters whose agents misbehave.
	bad = "bad-"
	// others is the number of the other clusters.
	others = 4
)

var (
	plane *suite.Plane
	sent  = &writes{}
)

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		plane = suite.Start(t, sandbox.Options{Name: "onebadcluster"}, manifests.CRDs(), manifests.Hub())
		suite.StartHub(t, plane, func(c *hub.Config) {
			c.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return counted{next} }
		})
		plane.AwaitPolicies(t)
	})
}

// writes counts the writes of the hub manager by the cluster that they concern.
type writes struct {
	mutex     sync.Mutex
	byCluster map[string]int
}

// counted is a transport whose writes are counted.
type counted struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (c counted) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		sent.note(request.URL.Path)
	}
	return c.RoundTripper.RoundTrip(request)
}

func (w *writes) note(path string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.byCluster == nil {
		w.byCluster = map[string]int{}
	}
	for _, part := range strings.Split(path, "/") {
		if strings.HasPrefix(part, bad) || strings.HasPrefix(part, "other-") {
			w.byCluster[part]++
			return
		}
	}
}

// of returns the writes about a cluster so far, and ofOthers those about all the others.
func (w *writes) of(cluster string) int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.byCluster[cluster]
}

func (w *writes) ofOthers() int {
	total := 0
	for i := range others {
		total += w.of(other(i))
	}
	return total
}

func other(i int) string { return fmt.Sprintf("other-%d", i) }

// newAgent accepts a cluster with the add-on, and returns its agent.
func newAgent(t *testing.T, cluster string) badagent.Agent {
	t.Helper()
	enable(t, cluster)
	user := plane.As(t, csr.ClusterUser(cluster, "agent"), csr.ClusterGroup(cluster), csr.GroupManagedClusters)
	a := badagent.Agent{Client: user, Reader: plane.Client, Cluster: cluster}
	suite.Eventually(t, func() error { return a.Ready(t.Context()) })
	return a
}

// enable accepts clusters with the add-on.
func enable(t *testing.T, clusters ...string) {
	t.Helper()
	for _, cluster := range clusters {
		require.NoError(t, plane.Client.Create(t.Context(), &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: cluster}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		}))
		suite.Eventually(t, func() error {
			return client.IgnoreAlreadyExists(plane.Client.Create(t.Context(), &addonv1alpha1.ManagedClusterAddOn{
				ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: badagent.AddOn},
			}))
		})
		awaitWork(t, cluster, "")
	}
}

// awaitWork waits until the work of the add-on is on a cluster, and is not the one that was there.
func awaitWork(t *testing.T, cluster, not string) *workv1.ManifestWork {
	t.Helper()
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: badagent.Work}}
	suite.Eventually(t, func() error {
		err := plane.Client.Get(t.Context(), client.ObjectKeyFromObject(work), work)
		if err == nil && string(work.UID) == not {
			err = fmt.Errorf("the work on %s is still the one that was deleted", cluster)
		}
		return err
	})
	return work
}

// repair deletes the work of another cluster, and returns the writes about all others until it is there again and the
// hub manager writes nothing about them any more.
func repair(t *testing.T, cluster string) int {
	t.Helper()
	before := suite.Quiet(t, quiet, sent.ofOthers)
	work := awaitWork(t, cluster, "")
	require.NoError(t, plane.Client.Delete(t.Context(), work))
	awaitWork(t, cluster, string(work.UID))
	return suite.Quiet(t, quiet, sent.ofOthers) - before
}
