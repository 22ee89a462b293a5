package work

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// object parses YAML as the API server would give it back.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	o := &unstructured.Unstructured{}
	require.NoError(t, o.UnmarshalJSON(raw))
	return o
}

func encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// Row: work 6.1 AP update/createonly/readonly/SSA tests
func TestMergeContent(t *testing.T) {
	for name, c := range map[string]struct {
		live, desired string
		want          delta
		next          string
		fails         string
	}{
		"a ConfigMap is replaced key by key": {
			live:    `{apiVersion: v1, kind: ConfigMap, data: {a: "1", b: "2"}, immutable: false}`,
			desired: `{apiVersion: v1, kind: ConfigMap, data: {a: "1"}}`,
			want:    deltaChanged, next: `{apiVersion: v1, kind: ConfigMap, data: {a: "1"}, immutable: false}`,
		},
		"an equal ConfigMap is left alone": {
			live:    `{apiVersion: v1, kind: ConfigMap, data: {a: "1"}, immutable: false}`,
			desired: `{apiVersion: v1, kind: ConfigMap, data: {a: "1"}, binaryData: {}}`,
			want:    deltaNone,
		},
		"an injected bundle of a ConfigMap stays": {
			live: `{apiVersion: v1, kind: ConfigMap, data: {ca-bundle.crt: x}}`,
			desired: `{apiVersion: v1, kind: ConfigMap, metadata: {labels: {
				config.openshift.io/inject-trusted-cabundle: "true"}}}`,
			want: deltaChanged, // the label is new, the data stays
			next: `{apiVersion: v1, kind: ConfigMap, data: {ca-bundle.crt: x}, metadata: {labels: {
				config.openshift.io/inject-trusted-cabundle: "true"}}}`,
		},
		"stringData of a Secret is folded in": {
			live:    `{apiVersion: v1, kind: Secret, type: Opaque, data: {a: ` + encode("x") + `}}`,
			desired: `{apiVersion: v1, kind: Secret, stringData: {a: x}}`,
			want:    deltaNone,
		},
		"a Secret that says two things is refused": {
			live:    `{apiVersion: v1, kind: Secret, type: Opaque}`,
			desired: `{apiVersion: v1, kind: Secret, stringData: {a: x}, data: {a: ` + encode("y") + `}}`,
			fails:   "different values",
		},
		"another type of a Secret needs a new one": {
			live:    `{apiVersion: v1, kind: Secret, type: Opaque}`,
			desired: `{apiVersion: v1, kind: Secret, type: other}`,
			fails:   errRecreate.Error(),
		},
		"a token Secret keeps the keys of the cluster": {
			live:    `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, data: {token: eA==}}`,
			desired: `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token}`,
			want:    deltaNone,
		},
		"of a Namespace only the metadata counts": {
			live:    `{apiVersion: v1, kind: Namespace, spec: {finalizers: [kubernetes]}}`,
			desired: `{apiVersion: v1, kind: Namespace, spec: {finalizers: [other]}}`,
			want:    deltaNone,
		},
		"of a ServiceAccount the secrets stay": {
			live:    `{apiVersion: v1, kind: ServiceAccount, secrets: [{name: x}]}`,
			desired: `{apiVersion: v1, kind: ServiceAccount}`,
			want:    deltaNone,
		},
		"rules of a Role are replaced": {
			live:    `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: [{verbs: [get]}]}`,
			desired: `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: [{verbs: [list]}]}`,
			want:    deltaChanged,
			next:    `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: [{verbs: [list]}]}`,
		},
		"rules of an aggregated ClusterRole are those of the cluster": {
			live: `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, rules: [{verbs: [get]}],
				aggregationRule: {clusterRoleSelectors: [{}]}}`,
			desired: `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole,
				aggregationRule: {clusterRoleSelectors: [{}]}}`,
			want: deltaNone,
		},
		"default groups of a binding are no difference": {
			live: `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding,
				roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r},
				subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: u}, {kind: ServiceAccount, name: s}]}`,
			desired: `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {kind: Role, name: r},
				subjects: [{kind: User, name: u}, {apiGroup: "", kind: ServiceAccount, name: s}]}`,
			want: deltaNone,
		},
		"an injected bundle of a webhook stays": {
			live: `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration,
				webhooks: [{name: a, clientConfig: {url: u, caBundle: eA==}}]}`,
			desired: `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration,
				webhooks: [{name: a, clientConfig: {url: u}}]}`,
			want: deltaNone,
		},
		"defaults of a definition are no difference": {
			live: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: g, scope: Cluster,
				names: {plural: xs, kind: X, singular: x, listKind: XList}, conversion: {strategy: None},
				versions: [{name: v1, served: true, storage: true}]}}`,
			desired: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: g, scope: Cluster,
				names: {plural: xs, kind: X}, versions: [{name: v1, served: true, storage: true}]}}`,
			want: deltaNone,
		},
		"a version is added to a definition": {
			live: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: g, scope: Cluster,
				names: {plural: xs, kind: X, singular: x, listKind: XList}, conversion: {strategy: None},
				versions: [{name: v1, served: true, storage: true}]}}`,
			desired: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: g, scope: Cluster,
				names: {plural: xs, kind: X}, versions: [{name: v1, served: true, storage: true,
				schema: {openAPIV3Schema: {type: object, default: {a: 1}}}}]}}`,
			want: deltaChanged,
			next: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: g, scope: Cluster,
				names: {plural: xs, kind: X, singular: x, listKind: XList}, conversion: {strategy: None},
				versions: [{name: v1, served: true, storage: true,
				schema: {openAPIV3Schema: {type: object, default: {a: 1}}}}]}}`,
		},
		"anything else is made exactly so": {
			live:    `{apiVersion: x/v1, kind: X, spec: {a: 1, more: 2}, other: 3, status: {s: 1}}`,
			desired: `{apiVersion: x/v1, kind: X, spec: {a: 2}}`,
			want:    deltaChanged, next: `{apiVersion: x/v1, kind: X, spec: {a: 2}, status: {s: 1}}`,
		},
		"what the live object says beyond the manifest is told apart": {
			live:    `{apiVersion: x/v1, kind: X, spec: {a: 1, more: 2}, status: {s: 1}}`,
			desired: `{apiVersion: x/v1, kind: X, spec: {a: 1}}`,
			want:    deltaExtra, next: `{apiVersion: x/v1, kind: X, spec: {a: 1}, status: {s: 1}}`,
		},
		"a status in the manifest does not count": {
			live:    `{apiVersion: x/v1, kind: X, spec: {a: 1}, status: {s: 1}}`,
			desired: `{apiVersion: x/v1, kind: X, spec: {a: 1}, status: {s: 2}}`,
			want:    deltaNone,
		},
	} {
		t.Run(name, func(t *testing.T) {
			live := object(t, c.live)
			before := live.DeepCopy()
			next, got, err := merge(live, object(t, c.desired), metav1.OwnerReference{}, false)
			assert.Equal(t, before, live, "the live object is not touched")
			if c.fails != "" {
				require.ErrorContains(t, err, c.fails)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
			if c.next != "" {
				want := object(t, c.next)
				assert.Equal(t, contentOf(want), contentOf(next))
				assert.Equal(t, want.Object["status"], next.Object["status"])
			}
			_, again, err := merge(next, object(t, c.desired), metav1.OwnerReference{}, false)
			require.NoError(t, err)
			assert.Equal(t, deltaNone, again, "merging twice changes nothing more")
		})
	}
}

// Row: work 6.1 AP update/createonly/readonly/SSA tests
func TestMergeMeta(t *testing.T) {
	owner := ownerReference("hash-w", "uid")
	other := ownerReference("hash-other", "uid2")
	live := func() *unstructured.Unstructured {
		o := object(t, `{kind: X, metadata: {name: x, labels: {a: "1", b: "2"}, annotations: {c: "3"}, finalizers: [f]}}`)
		o.SetOwnerReferences([]metav1.OwnerReference{other})
		return o
	}
	desired := object(t, `{kind: X, metadata: {name: x, labels: {b-: "", a: "9"}, annotations: {d: "4", nothing--: ""},
		finalizers: [g], ownerReferences: [{kind: Foreign, name: f}]}}`)

	next := live()
	assert.True(t, mergeMeta(next, desired, owner, true))
	assert.Equal(t, map[string]string{"a": "9"}, next.GetLabels())
	assert.Equal(t, map[string]string{"c": "3", "d": "4"}, next.GetAnnotations())
	assert.Equal(t, []string{"f"}, next.GetFinalizers())
	assert.Equal(t, []metav1.OwnerReference{other, owner}, next.GetOwnerReferences())
	assert.False(t, mergeMeta(next, desired, owner, true), "merging twice changes nothing more")

	assert.True(t, mergeMeta(next, desired, owner, false), "an orphan loses its owner")
	assert.Equal(t, []metav1.OwnerReference{other}, next.GetOwnerReferences())
	assert.False(t, mergeMeta(next, desired, owner, false))

	made := forCreate(desired, owner, true)
	assert.Equal(t, map[string]string{"a": "9"}, made.GetLabels(), "marks are not made into labels")
	assert.Equal(t, []metav1.OwnerReference{owner}, made.GetOwnerReferences())
	assert.Equal(t, []string{"g"}, made.GetFinalizers())
	assert.Empty(t, forCreate(desired, owner, false).GetOwnerReferences())
}

// Row: work 6.1 HP tests
func TestWithOwner(t *testing.T) {
	mine := ownerReference("w", "new")
	old := mine
	old.UID, old.APIVersion = "old", "work.open-cluster-management.io/v1alpha1"
	foreign := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "w"}
	for name, c := range map[string]struct {
		refs  []metav1.OwnerReference
		owned bool
		want  []metav1.OwnerReference
	}{
		"added":                     {nil, true, []metav1.OwnerReference{mine}},
		"replaced in place":         {[]metav1.OwnerReference{old, foreign}, true, []metav1.OwnerReference{mine, foreign}},
		"kept once":                 {[]metav1.OwnerReference{mine, old}, true, []metav1.OwnerReference{mine}},
		"removed":                   {[]metav1.OwnerReference{old, foreign}, false, []metav1.OwnerReference{foreign}},
		"another kind is not meant": {[]metav1.OwnerReference{foreign}, false, []metav1.OwnerReference{foreign}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, withOwner(c.refs, mine, c.owned)) })
	}
}

func TestContains(t *testing.T) {
	live := map[string]any{"a": int64(1), "m": map[string]any{"x": "1", "y": "2"}, "l": []any{
		map[string]any{"n": "1", "default": true},
	}}
	for name, c := range map[string]struct {
		wanted map[string]any
		want   bool
	}{
		"a part":                    {map[string]any{"m": map[string]any{"x": "1"}}, true},
		"a part of a list element":  {map[string]any{"l": []any{map[string]any{"n": "1"}}}, true},
		"null means nothing":        {map[string]any{"z": nil}, true},
		"empty means nothing":       {map[string]any{"z": map[string]any{}, "q": []any{}}, true},
		"another value":             {map[string]any{"a": int64(2)}, false},
		"a key more":                {map[string]any{"m": map[string]any{"z": "1"}}, false},
		"a shorter list":            {map[string]any{"l": []any{}}, false},
		"another shape":             {map[string]any{"m": []any{"x"}}, false},
		"a map instead of a scalar": {map[string]any{"a": map[string]any{"x": "1"}}, false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, contains(live, c.wanted)) })
	}
}

func TestForeignContent(t *testing.T) {
	entry := func(manager, operation, subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation), Subresource: subresource,
			FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
		}
	}
	ours := entry("work-agent", "Update", "", `{"f:metadata":{},"f:spec":{}}`)
	for name, c := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    bool
	}{
		"nobody else":                  {[]metav1.ManagedFieldsEntry{ours}, false},
		"a status of somebody else":    {[]metav1.ManagedFieldsEntry{ours, entry("kcm", "Update", "status", `{"f:spec":{}}`)}, false},
		"metadata of somebody else":    {[]metav1.ManagedFieldsEntry{ours, entry("kcm", "Update", "", `{"f:metadata":{}}`)}, false},
		"content of somebody else":     {[]metav1.ManagedFieldsEntry{ours, entry("kubectl", "Update", "", `{"f:spec":{}}`)}, true},
		"scaled by somebody else":      {[]metav1.ManagedFieldsEntry{ours, entry("hpa", "Update", "scale", `{"f:spec":{}}`)}, false},
		"our own earlier server apply": {[]metav1.ManagedFieldsEntry{entry("work-agent", "Apply", "", `{"f:spec":{}}`)}, true},
		"no managed fields at all":     {nil, true},
		"fields that cannot be read":   {[]metav1.ManagedFieldsEntry{entry("x", "Update", "", `[`)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, foreignContent(&metav1.ObjectMeta{ManagedFields: c.entries}))
		})
	}
}

func TestFingerprint(t *testing.T) {
	base := func() *metav1.ObjectMeta {
		return &metav1.ObjectMeta{
			Labels: map[string]string{"a": "1", "b": "2"}, Annotations: map[string]string{"c": "3"},
			OwnerReferences: []metav1.OwnerReference{ownerReference("w", "u")}, Finalizers: []string{"f"},
		}
	}
	want := fingerprint(base())
	assert.Equal(t, want, fingerprint(base()))
	for name, change := range map[string]func(*metav1.ObjectMeta){
		"a label":                     func(m *metav1.ObjectMeta) { m.Labels["a"] = "2" },
		"a label made an annotation":  func(m *metav1.ObjectMeta) { delete(m.Labels, "b"); m.Annotations["b"] = "2" },
		"an owner":                    func(m *metav1.ObjectMeta) { m.OwnerReferences[0].UID = types.UID("v") },
		"a finalizer":                 func(m *metav1.ObjectMeta) { m.Finalizers = nil },
		"the mark of being deleted":   func(m *metav1.ObjectMeta) { m.DeletionTimestamp = &metav1.Time{} },
		"a value that moves to a key": func(m *metav1.ObjectMeta) { m.Labels = map[string]string{"a": "1b", "": "2"} },
	} {
		t.Run(name, func(t *testing.T) {
			changed := base()
			change(changed)
			assert.NotEqual(t, want, fingerprint(changed))
		})
	}
	moved := base()
	moved.ResourceVersion, moved.Generation = "9", 9
	assert.Equal(t, want, fingerprint(moved), "versions are not part of it")
}

func TestDropNullTimestamps(t *testing.T) {
	o := object(t, `{kind: X, metadata: {name: x, creationTimestamp: null}, spec: {template: {metadata: {creationTimestamp: null}},
		list: [{metadata: {creationTimestamp: null}}, {metadata: {creationTimestamp: "2020-01-01T00:00:00Z"}}],
		creationTimestamp: null}}`)
	dropNullTimestamps(o.Object)
	assert.Equal(t, object(t, `{kind: X, metadata: {name: x}, spec: {template: {metadata: {}},
		list: [{metadata: {}}, {metadata: {creationTimestamp: "2020-01-01T00:00:00Z"}}],
		creationTimestamp: null}}`), o)
}
