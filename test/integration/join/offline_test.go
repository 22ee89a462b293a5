package join_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
)

// offlineWork is a work of a member with ConfigMaps that say something.
type offlineWork struct {
	*member
	// hub reads and writes the works past every link.
	hub client.Client
}

// applyWork gives the member a place for copies of works, and a work on its hub, and waits until it is applied and
// copied.
func (m *member) applyWork(h *hubSide, content map[string]string) *offlineWork {
	m.t.Helper()
	o := &offlineWork{member: m, hub: h.Client}
	require.NoError(m.t, h.Client.Create(m.t.Context(), &workv1.ManifestWork{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.name, Name: "w"}, Spec: o.spec(content),
	}))
	o.awaitApplied()
	m.eventually(func() bool {
		files, err := filepath.Glob(filepath.Join(m.config.WorkCacheDir, "works", "*.work"))
		return err == nil && len(files) == 1
	}, "the copy of the work")
	return o
}

// spec is a work with one ConfigMap for each name, and what it says.
func (o *offlineWork) spec(content map[string]string) workv1.ManifestWorkSpec {
	var spec workv1.ManifestWorkSpec
	for name, says := range content {
		raw := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":%q,"name":%q},"data":{"says":%q}}`,
			o.namespace, name, says)
		spec.Workload.Manifests = append(spec.Workload.Manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
	}
	return spec
}

func (o *offlineWork) awaitApplied() {
	o.t.Helper()
	o.eventually(func() bool {
		var w workv1.ManifestWork
		err := o.hub.Get(o.t.Context(), client.ObjectKey{Namespace: o.name, Name: "w"}, &w)
		applied := meta.FindStatusCondition(w.Status.Conditions, workv1.WorkApplied)
		return err == nil && applied != nil && applied.Status == metav1.ConditionTrue && applied.ObservedGeneration == w.Generation
	}, "the work is applied")
}

// edit changes the work on the hub.
func (o *offlineWork) edit(content map[string]string) {
	o.t.Helper()
	o.eventually(func() bool {
		var w workv1.ManifestWork
		if o.hub.Get(o.t.Context(), client.ObjectKey{Namespace: o.name, Name: "w"}, &w) != nil {
			return false
		}
		w.Spec = o.spec(content)
		return o.hub.Update(o.t.Context(), &w) == nil
	}, "the work is edited")
}

// configMap returns the UID of a ConfigMap of the work and what it says; empty when there is none.
func (o *offlineWork) configMap(name string) (types.UID, string) {
	var found corev1.ConfigMap
	if first.Client.Get(o.t.Context(), client.ObjectKey{Namespace: o.namespace, Name: name}, &found) != nil {
		return "", ""
	}
	return found.UID, found.Data["says"]
}

// removed deletes a ConfigMap of the work on the spoke, and waits until the agent has made it again.
func (o *offlineWork) removed(name string) {
	o.t.Helper()
	was, _ := o.configMap(name)
	require.NotEmpty(o.t, was)
	require.NoError(o.t, first.Client.Delete(o.t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: name},
	}))
	o.repaired(name, was)
}

func (o *offlineWork) repaired(name string, was types.UID) {
	o.t.Helper()
	o.eventually(func() bool {
		is, _ := o.configMap(name)
		return is != "" && is != was
	}, "%s is made again", name)
}

// Shows: work/offline
func TestAnAgentThatRestartsWithoutItsHubLooksAfterItsWorks(t *testing.T) {
	m := newMember(t, "offline")
	l := link(t, first)
	m.bootstrapSecret(way{hub: first, server: l.Host}.kubeconfig(t))
	m.config.WorkCacheDir = filepath.Join(m.dir, "cache")
	m.start()
	m.admit(first)
	o := m.applyWork(first, map[string]string{"a": "old", "b": "old", "dropped": "old"})
	m.stop()
	l.Cut()
	was, _ := o.configMap("a")
	require.NoError(t, first.Client.Delete(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: "a"},
	}))
	o.edit(map[string]string{"a": "new", "b": "new"})
	m.start()
	o.repaired("a", was)
	o.removed("dropped")
	m.awaitState("waiting for the hub, looking after the works by their copies")
	_, ready := m.state()
	assert.True(t, ready, "it does what it can without the hub")
	a, says := o.configMap("a")
	assert.Equal(t, "old", says)
	b, _ := o.configMap("b")

	l.Mend()
	m.awaitServing()
	m.eventually(func() bool { _, says := o.configMap("b"); return says == "new" }, "the word of the hub")
	o.awaitApplied()
	m.eventually(func() bool { uid, _ := o.configMap("dropped"); return uid == "" }, "what left the work goes")
	for name, was := range map[string]types.UID{"a": a, "b": b} {
		is, says := o.configMap(name)
		assert.Equal(t, was, is, name)
		assert.Equal(t, "new", says, name)
	}
}

// An agent cannot renew its certificate without the hub. It looks after its works all the same, also when it has no way
// to join, and while it waits for a user to approve that it joins again.
// Shows: work/offline
func TestAnAgentWhoseCertificateExpiredLooksAfterItsWorks(t *testing.T) {
	m := newMember(t, "expired")
	l := link(t, brief)
	bootstrap := way{hub: brief, server: l.Host}.kubeconfig(t)
	m.bootstrapSecret(bootstrap)
	m.config.WorkCacheDir = filepath.Join(m.dir, "cache")
	m.start()
	m.admit(brief)
	o := m.applyWork(brief, map[string]string{"a": "old"})
	m.stop()
	l.Cut()
	m.awaitExpiry(m.certificate())
	require.NoError(t, first.Client.Delete(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: names.SecretBootstrap},
	}))
	m.start()
	m.awaitState("the stored credential cannot be used")
	o.removed("a")

	m.bootstrapSecret(bootstrap)
	m.awaitState("does not answer")
	o.removed("a")

	l.Mend()
	m.eventually(func() bool { return len(m.undecided(brief)) > 0 }, "it asks to join")
	o.removed("a")
	a, _ := o.configMap("a")
	m.approve(brief)
	m.awaitServing()
	o.edit(map[string]string{"a": "new"})
	m.eventually(func() bool { _, says := o.configMap("a"); return says == "new" }, "the word of the hub")
	is, _ := o.configMap("a")
	assert.Equal(t, a, is)
}
