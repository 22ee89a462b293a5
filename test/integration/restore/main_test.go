// Package restore_test restores the etcd of a hub to an earlier state, under a hub manager and agents that run on. Two
// clusters, each with an agent, are on one control plane of their own.
package restore_test

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/agent"
	"github.com/spokelet/spokelet/agent/work"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

var hub, managed *suite.Plane

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		hub = suite.Start(t, sandbox.Options{Name: "hub"}, manifests.CRDs(), manifests.Hub())
		managed = suite.Start(t, sandbox.Options{Name: "spoke", Managed: true}, manifests.SpokeCRDs(), manifests.Klusterlet())
		suite.StartHub(t, hub)
	})
}

// limit is how long everything may take: API servers start again.
const limit = 3 * time.Minute

// member is one cluster with its agent.
type member struct {
	*testing.T
	name    string
	config  agent.Config
	program *suite.Program
}

// join starts the agent of a cluster and has it accepted. What is missing goes after a moment, unless it is held.
func join(t *testing.T, name string) *member {
	t.Helper()
	m := &member{T: t, name: suite.UniqueName(name)}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: m.name}}
	require.NoError(t, managed.Client.Create(t.Context(), namespace))
	m.config = suite.ConfigureAgent(t, hub, managed, m.name, m.name)
	m.config.AgentID, m.config.EvictionGracePeriod = m.name, time.Second
	m.program = suite.RunAgent(t, m.config)
	suite.Admit(t, hub, m.name)
	return m
}

// eventually waits until something holds; a failure shows what the agent says.
func (m *member) eventually(what string, holds func() bool) {
	m.Helper()
	suite.Within(m, limit, suite.True(what, holds, m.says))
}

// says returns what the agent reports about itself.
func (m *member) says() string {
	request, err := http.NewRequestWithContext(m.Context(), http.MethodGet,
		"http://"+m.config.HealthAddress+"/readyz?verbose", nil)
	require.NoError(m, err)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(m, err)
	return answer.Status + "\n" + string(body)
}

// credential is the certificate of the agent as it is stored; empty when there is none.
func (m *member) credential() string {
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: m.name, Name: m.config.HubSecret}
	if managed.Client.Get(m.Context(), key, &secret) != nil {
		return ""
	}
	return string(secret.Data[corev1.TLSCertKey])
}

// deploy creates a work on the hub with a ConfigMap of its name.
func (m *member) deploy(name string) {
	m.Helper()
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: m.name, Name: name}}
	w.Spec.Workload.Manifests = []workv1.Manifest{m.configMap(name)}
	m.eventually(name+" can be created", func() bool { return hub.Client.Create(m.Context(), w.DeepCopy()) == nil })
}

// configMap is the manifest of a ConfigMap.
func (m *member) configMap(name string) workv1.Manifest {
	raw, err := json.Marshal(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: m.name, Name: name},
	})
	require.NoError(m, err)
	return workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}}
}

// grow adds a ConfigMap to a work, and returns its name and its UID.
func (m *member) grow(name string) (more, uid string) {
	m.Helper()
	more = name + "-more"
	m.eventually(name+" can be edited", func() bool {
		var w workv1.ManifestWork
		if hub.Client.Get(m.Context(), client.ObjectKey{Namespace: m.name, Name: name}, &w) != nil {
			return false
		}
		w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, m.configMap(more))
		return hub.Client.Update(m.Context(), &w) == nil
	})
	m.eventually(more+" is applied", func() bool {
		uid = m.object(more)
		return uid != ""
	})
	return more, uid
}

// applied waits until the hub knows that a work is applied, and returns the UID of its object.
func (m *member) applied(name string) (uid string) {
	m.Helper()
	m.eventually(name+" is applied", func() bool {
		var w workv1.ManifestWork
		uid = m.object(name)
		return uid != "" && hub.Client.Get(m.Context(), client.ObjectKey{Namespace: m.name, Name: name}, &w) == nil &&
			meta.IsStatusConditionTrue(w.Status.Conditions, workv1.WorkApplied)
	})
	return uid
}

// object is the UID of the object of a work; empty when it does not exist.
func (m *member) object(name string) string {
	var cm corev1.ConfigMap
	if managed.Client.Get(m.Context(), client.ObjectKey{Namespace: m.name, Name: name}, &cm) != nil {
		return ""
	}
	return string(cm.UID)
}

// record is the AppliedManifestWork of a work; nil when there is none.
func (m *member) record(name string) *workv1.AppliedManifestWork {
	var record workv1.AppliedManifestWork
	if managed.Client.Get(m.Context(), client.ObjectKey{Name: work.HubHash(hub.Host) + "-" + name}, &record) != nil {
		return nil
	}
	return &record
}

// condition holds what the ManagedCluster says about missing works; nil when it says nothing.
func (m *member) condition() *metav1.Condition {
	var cluster clusterv1.ManagedCluster
	if hub.Client.Get(m.Context(), client.ObjectKey{Name: m.name}, &cluster) != nil {
		return nil
	}
	return meta.FindStatusCondition(cluster.Status.Conditions, names.ConditionWorksPresent)
}

// annotate sets an annotation of the ManagedCluster.
func (m *member) annotate(key, value string) {
	m.Helper()
	m.eventually("the cluster can be annotated", func() bool {
		var cluster clusterv1.ManagedCluster
		if hub.Client.Get(m.Context(), client.ObjectKey{Name: m.name}, &cluster) != nil {
			return false
		}
		metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, key, value)
		return hub.Client.Update(m.Context(), &cluster) == nil
	})
}
