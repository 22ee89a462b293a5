package work

import (
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/agent/work/apply"
	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/watch"
)

// lean is a reconciler that can read works and nothing else.
func lean() *Reconciler {
	return &Reconciler{parts: parts{mapper: mapper(), notes: newNotes()}}
}

// mapper serves a few kinds.
func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	m.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	m.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	m.Add(rbac.WithKind("ClusterRoleBinding"), meta.RESTScopeRoot)
	return m
}

// rbac is the group of roles and bindings.
var rbac = schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}

// read parses and resolves manifests.
func read(t *testing.T, raws ...string) []manifest.Manifest {
	t.Helper()
	bytes := make([][]byte, len(raws))
	for i := range raws {
		bytes[i] = []byte(raws[i])
	}
	return readBy(t, lean(), workOf(bytes...))
}

// readBy has a reconciler read the manifests of a work.
func readBy(t *testing.T, r *Reconciler, f *facts) []manifest.Manifest {
	t.Helper()
	manifests, err := r.readManifests(t.Context(), f)
	require.NoError(t, err)
	return manifests
}

// configMap is the manifest of a ConfigMap in the namespace ns.
func configMap(name string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `","namespace":"ns"}}`
}

// entryOf is a listed ConfigMap in ns.
func entryOf(name, uid string) workv1.AppliedManifestResourceMeta {
	return workv1.AppliedManifestResourceMeta{Version: "v1", UID: uid, ResourceIdentifier: workv1.ResourceIdentifier{
		Resource: "configmaps", Namespace: "ns", Name: name,
	}}
}

// workOf is the facts about a work with the manifests, in its first generation.
func workOf(raws ...[]byte) *facts {
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "w", UID: "u", Generation: 1}}
	for _, raw := range raws {
		w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests,
			workv1.Manifest{RawExtension: kruntime.RawExtension{Raw: raw}})
	}
	return &facts{owner: watch.Owner{Name: "w"}, work: w}
}

// TestASpecIsReadOnce puts bytes that nobody can decode in the place of a manifest that was read: while its generation
// is the same, nothing notices, neither the reading of the work nor the pass over an object that is as it should be.
// Shows: work/memory
func TestASpecIsReadOnce(t *testing.T) {
	r := lean()
	first := readBy(t, r, workOf([]byte(configMap("x"))))
	require.NoError(t, first[0].Err)
	broken := workOf([]byte("{"))
	again := readBy(t, r, broken)
	assert.Equal(t, first, again)

	in := &input{now: epoch, owner: "a", manifests: again, raw: [][]byte{[]byte("{")}, objects: make([]object, 1)}
	in.objects[0].known.State = watch.State{
		Applied: watch.Applied{Desired: again[0].Desired, Owner: "a"}, Object: watch.Object{Exists: true, UID: "x"},
		Requested: epoch,
	}
	step := planStep(in, 0)
	assert.Equal(t, apply.Skip, step.Action)
	// There is no API server behind this applier.
	pass := apply.Pass{Owner: inventory.OwnerReference("applied", "a"), Now: epoch}
	result := (&apply.Applier{}).Apply(t.Context(), pass, &step)
	require.NoError(t, result.Err)
	assert.Equal(t, manifest.Present, result.Presence)
	assert.Nil(t, result.State)

	broken.work.Generation = 2
	require.Error(t, readBy(t, r, broken)[0].Err, "a new generation is read")
	other := workOf([]byte("{"))
	other.work.UID = "another"
	assert.Error(t, readBy(t, r, other)[0].Err, "and so is another work of the same name")
}

// TestTheBytesOfManifestsAreNotKept lets a work go from the cache: what the process remembers of it must not keep its
// manifests, however large they are.
// Shows: work/memory
func TestTheBytesOfManifestsAreNotKept(t *testing.T) {
	r := lean()
	kept := func() weak.Pointer[byte] {
		raw := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"ns"},"data":{"k":"` +
			strings.Repeat("x", 64<<10) + `"}}`)
		require.NoError(t, readBy(t, r, workOf(raw))[0].Err)
		return weak.Make(&raw[0])
	}()
	// What a pass makes of the bytes goes at the next collection, what is referred to stays for ever.
	runtime.GC()
	assert.Nil(t, kept.Value())
	assert.Len(t, r.notes.of(watch.Owner{Name: "w"}).manifests, 1)
	runtime.KeepAlive(r)
}

// Shows: work/created-meanwhile
func TestAWorkThatVanishesBeforeItHadAStatusIsAbandonedOnlyAtOnce(t *testing.T) {
	for sentence, c := range map[string]struct {
		after time.Duration
		onHub bool
		uid   types.UID
		want  phase
	}{
		"it vanished while it got its finalizer":                {after: time.Second, uid: "applied", want: phaseAbandon},
		"its hub came back from a backup, after an outage":      {after: vanishTime + time.Second, uid: "applied", want: phaseGone},
		"the hub, asked again, has it: the cache is behind":     {after: time.Second, onHub: true, uid: "applied", want: phaseGone},
		"the AppliedManifestWork is another one of this name":   {after: time.Second, uid: "another", want: phaseGone},
		"this process made no AppliedManifestWork for the work": {after: time.Second, want: phaseGone},
	} {
		t.Run(sentence, func(t *testing.T) {
			r, f := backAt(t, 1, "a")
			hub, live := r.Hub.GetClient(), r.Hub.GetClient()
			if !c.onHub {
				live = fake.NewClientBuilder().WithScheme(hub.Scheme()).Build()
			}
			r.Hub = stubHub{client: fake.NewClientBuilder().WithScheme(hub.Scheme()).Build(), live: live}
			r.inventory.Live = r.inventory.Client
			if c.uid != "" {
				r.notes.change(watch.Owner{Name: "w"}, func(n *note) { n.created, n.createdAt = c.uid, f.now.Add(-c.after) })
			}
			seen, err := r.observe(t.Context(), "w")
			require.NoError(t, err)
			assert.Equal(t, c.want, seen.phase())
		})
	}
}
