package merge

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spokelet/spokelet/agent/work/apply/content"
	"github.com/spokelet/spokelet/agent/work/inventory"
)

func TestMergeOfStorage(t *testing.T) {
	const class = `{apiVersion: storage.k8s.io/v1, kind: StorageClass, provisioner: p, `
	for name, c := range map[string]struct {
		live, desired string
		want          Delta
		recreate      bool
	}{
		"defaults are no difference": {
			live: class + `reclaimPolicy: Delete, volumeBindingMode: Immediate}`, desired: class + `metadata: {}}`,
		},
		"a field that can be changed": {
			live:    class + `reclaimPolicy: Delete, volumeBindingMode: Immediate}`,
			desired: class + `allowVolumeExpansion: true}`, want: Changed,
		},
		"parameters cannot be":             {live: class + `parameters: {a: "1"}}`, desired: class + `parameters: {a: "2"}}`, recreate: true},
		"nor can parameters that it lacks": {live: class + `reclaimPolicy: Delete}`, desired: class + `parameters: {a: "2"}}`, recreate: true},
		"no parameters need no new object": {
			live:    class + `reclaimPolicy: Delete, volumeBindingMode: Immediate}`,
			desired: class + `parameters: {}}`, want: Extra,
		},
		"nor can the policy": {live: class + `reclaimPolicy: Retain}`, desired: class + `metadata: {}}`, recreate: true},
		"nor can the mode": {
			live:    class + `reclaimPolicy: Delete, volumeBindingMode: Immediate}`,
			desired: class + `volumeBindingMode: WaitForFirstConsumer}`, recreate: true,
		},
		"which class is the default is for the cluster to say": {
			live: class + `reclaimPolicy: Delete, volumeBindingMode: Immediate, metadata: {annotations: {
				storageclass.kubernetes.io/is-default-class: "false"}}}`,
			desired: class + `metadata: {annotations: {storageclass.kubernetes.io/is-default-class: "true"}}}`,
		},
		"so is the profile of a driver": {
			live: `{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {labels: {
				security.openshift.io/csi-ephemeral-volume-profile: baseline}}}`,
			desired: `{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {labels: {
				security.openshift.io/csi-ephemeral-volume-profile: privileged}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			desired := object(t, c.desired)
			before := desired.DeepCopy()
			_, got, err := Into(object(t, c.live), desired, metav1.OwnerReference{}, false)
			assert.Equal(t, before, desired, "the manifest is not touched")
			if c.recreate {
				require.ErrorIs(t, err, errRecreate)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}

// Shows: work/scaled-object
func TestMergeLeavesWhatWasScaled(t *testing.T) {
	live := func() *unstructured.Unstructured {
		o := object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 5, paused: true}}`)
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{
			Manager: "autoscaler", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "scale",
			APIVersion: o.GetAPIVersion(), FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
		}})
		return o
	}
	owner := metav1.OwnerReference{}
	next, got, err := Into(live(), object(t, `{apiVersion: apps/v1, kind: Deployment, spec: {paused: false}}`), owner, false)
	require.NoError(t, err)
	assert.Equal(t, Changed, got)
	assert.Equal(t, map[string]any{"replicas": int64(5), "paused": false}, next.Object["spec"], "left open, so left alone")

	_, got, err = Into(live(), object(t, `{apiVersion: apps/v1, kind: Deployment, spec: {paused: true}}`), owner, false)
	require.NoError(t, err)
	assert.Equal(t, Equal, got)

	next, _, err = Into(live(), object(t, `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 2}}`), owner, false)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"replicas": int64(2)}, next.Object["spec"], "a manifest that says how many is obeyed")
}

// Shows: work/restarted-workload
func TestMergeLeavesARestart(t *testing.T) {
	const at = `{metadata: {annotations: {kubectl.kubernetes.io/restartedAt: "2026-01-02T03:04:05Z"}}}`
	for name, c := range map[string]struct {
		kind, live, template, next string
		want                       Delta
	}{
		"a template without metadata": {kind: "Deployment", live: at, template: `{}`, want: Equal, next: at},
		"a DaemonSet":                 {kind: "DaemonSet", live: at, template: `{metadata: {}}`, want: Equal, next: at},
		"a StatefulSet":               {kind: "StatefulSet", live: at, template: `{metadata: {annotations: null}}`, want: Equal, next: at},
		"other annotations are those of the manifest": {
			kind: "Deployment", want: Changed, template: `{metadata: {annotations: {a: "2"}}}`,
			live: `{metadata: {annotations: {a: "1", b: "1", kubectl.kubernetes.io/restartedAt: now}}}`,
			next: `{metadata: {annotations: {a: "2", kubectl.kubernetes.io/restartedAt: now}}}`,
		},
		"a manifest that sets it is obeyed": {
			kind: "Deployment", live: at, template: `{metadata: {annotations: {kubectl.kubernetes.io/restartedAt: once}}}`,
			want: Changed, next: `{metadata: {annotations: {kubectl.kubernetes.io/restartedAt: once}}}`,
		},
		"no restart": {kind: "Deployment", live: `{}`, template: `{}`, want: Equal, next: `{}`},
		"a kind that kubectl does not restart": {
			kind: "ReplicaSet", live: at, template: `{spec: {hostPID: true}}`, want: Changed, next: `{spec: {hostPID: true}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			of := func(template string) *unstructured.Unstructured {
				return object(t, `{apiVersion: apps/v1, kind: `+c.kind+`, spec: {template: `+template+`}}`)
			}
			desired := of(c.template)
			before := desired.DeepCopy()
			next, got, err := Into(of(c.live), desired, metav1.OwnerReference{}, false)
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
			assert.Equal(t, of(c.next).Object["spec"], next.Object["spec"])
			assert.Equal(t, before, desired, "the manifest is not touched")
		})
	}
}

func TestMarkSpec(t *testing.T) {
	service := object(t, `{apiVersion: v1, kind: Service, spec: {ports: [{port: 80}]}}`)
	SetSpecHash(service)
	// The digest that library-go computes of the same Service.
	raw := `{"ports":[{"port":80,"targetPort":0}]}`
	sum := sha256.Sum256([]byte(raw))
	assert.Equal(t, hex.EncodeToString(sum[:]), service.GetAnnotations()[annotationSpecHash])
	for name, text := range map[string]string{
		"a spec that cannot be read": `{apiVersion: v1, kind: Service, spec: {ports: 80}}`,
		"another kind":               `{apiVersion: v1, kind: ConfigMap}`,
		"another group":              `{apiVersion: serving.example/v1, kind: Service, spec: {}}`,
	} {
		t.Run(name, func(t *testing.T) {
			o := object(t, text)
			SetSpecHash(o)
			assert.Empty(t, o.GetAnnotations())
		})
	}
}

func TestForRecreate(t *testing.T) {
	owner, other := inventory.OwnerReference("hash-w", "uid"), inventory.OwnerReference("hash-other", "uid2")
	live := object(t, `{apiVersion: v1, kind: Secret, metadata: {name: s, uid: u, resourceVersion: "7", labels: {theirs: x, gone: x},
		finalizers: [f]}, type: a, data: {k: eA==}}`)
	live.SetOwnerReferences([]metav1.OwnerReference{other})
	made := ForRecreate(live, object(t, `{apiVersion: v1, kind: Secret, metadata: {name: s, labels: {ours: x, gone-: ""}}, type: b}`),
		owner, true)
	assert.Equal(t, map[string]string{"theirs": "x", "ours": "x"}, made.GetLabels())
	assert.Equal(t, []metav1.OwnerReference{other, owner}, made.GetOwnerReferences())
	assert.Empty(t, string(made.GetUID())+made.GetResourceVersion())
	assert.Empty(t, made.GetFinalizers())
	assert.Equal(t, map[string]any{"type": "b"}, content.Of(made))
}

// Only the fields that were set through the scale subresource in the same version of the API stay.
func TestOnlyTheScaleSubresourceLeavesFieldsOpen(t *testing.T) {
	for name, c := range map[string]struct {
		subresource, version string
		want                 map[string]any
	}{
		"scaled":                     {"scale", "apps/v1", map[string]any{"a": "1", "replicas": int64(5)}},
		"written by another manager": {"", "apps/v1", map[string]any{"a": "1"}},
		"scaled in another version":  {"scale", "apps/v1beta2", map[string]any{"a": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			live := object(t, `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 5}}`)
			live.SetManagedFields([]metav1.ManagedFieldsEntry{{
				Subresource: c.subresource, APIVersion: c.version,
				FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
			}})
			got := yield(live, object(t, `{apiVersion: apps/v1, kind: Deployment, spec: {a: "1"}}`))
			assert.Equal(t, c.want, got.Object["spec"])
		})
	}
}

func TestAddMissing(t *testing.T) {
	have := map[string]any{"a": "1", "m": map[string]any{"x": "1"}, "n": map[string]any{}, "s": "1", "z": nil}
	addMissing(have, map[string]any{
		"a": "2", "b": "2", "z": "2", "m": map[string]any{"x": "2", "y": "2"}, "n": "2", "s": map[string]any{"y": "2"},
	})
	assert.Equal(t, map[string]any{
		"a": "1", "b": "2", "z": "2", "m": map[string]any{"x": "1", "y": "2"}, "n": map[string]any{}, "s": "1",
	}, have)
}
