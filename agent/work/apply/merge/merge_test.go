package merge

import (
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/agent/work/apply/content"
	"github.com/spokelet/spokelet/agent/work/inventory"
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

// Shows: work/strategies
func TestMergeContent(t *testing.T) {
	for name, c := range map[string]struct {
		live, desired string
		want          Delta
		next          string
		fails         string
	}{
		"a ConfigMap is replaced key by key": {
			live:    `{apiVersion: v1, kind: ConfigMap, data: {a: "1", b: "2"}, immutable: false}`,
			desired: `{apiVersion: v1, kind: ConfigMap, data: {a: "1"}}`,
			want:    Changed, next: `{apiVersion: v1, kind: ConfigMap, data: {a: "1"}, immutable: false}`,
		},
		"an equal ConfigMap is left alone": {
			live:    `{apiVersion: v1, kind: ConfigMap, data: {a: "1"}, immutable: false}`,
			desired: `{apiVersion: v1, kind: ConfigMap, data: {a: "1"}, binaryData: {}}`,
			want:    Equal,
		},
		"an injected bundle of a ConfigMap stays": {
			live: `{apiVersion: v1, kind: ConfigMap, data: {ca-bundle.crt: x}}`,
			desired: `{apiVersion: v1, kind: ConfigMap, metadata: {labels: {
				config.openshift.io/inject-trusted-cabundle: "true"}}}`,
			want: Changed, // the label is new, the data stays
			next: `{apiVersion: v1, kind: ConfigMap, data: {ca-bundle.crt: x}, metadata: {labels: {
				config.openshift.io/inject-trusted-cabundle: "true"}}}`,
		},
		"stringData of a Secret is folded in": {
			live:    `{apiVersion: v1, kind: Secret, type: Opaque, data: {a: ` + encode("x") + `}}`,
			desired: `{apiVersion: v1, kind: Secret, stringData: {a: x}}`,
			want:    Equal,
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
			want:    Equal,
		},
		"of a Namespace only the metadata counts": {
			live:    `{apiVersion: v1, kind: Namespace, spec: {finalizers: [kubernetes]}}`,
			desired: `{apiVersion: v1, kind: Namespace, spec: {finalizers: [other]}}`,
			want:    Equal,
		},
		"of a ServiceAccount the secrets stay": {
			live:    `{apiVersion: v1, kind: ServiceAccount, secrets: [{name: x}]}`,
			desired: `{apiVersion: v1, kind: ServiceAccount}`,
			want:    Equal,
		},
		"rules of a Role are replaced": {
			live:    `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: [{verbs: [get]}]}`,
			desired: `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: [{verbs: [list]}]}`,
			want:    Changed,
			next:    `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: [{verbs: [list]}]}`,
		},
		"rules of an aggregated ClusterRole are those of the cluster": {
			live: `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, rules: [{verbs: [get]}],
				aggregationRule: {clusterRoleSelectors: [{}]}}`,
			desired: `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole,
				aggregationRule: {clusterRoleSelectors: [{}]}}`,
			want: Equal,
		},
		"default groups of a binding are no difference": {
			live: `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding,
				roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r},
				subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: u}, {kind: ServiceAccount, name: s}]}`,
			desired: `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {kind: Role, name: r},
				subjects: [{kind: User, name: u}, {apiGroup: "", kind: ServiceAccount, name: s}]}`,
			want: Equal,
		},
		"an injected bundle of a webhook stays": {
			live: `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration,
				webhooks: [{name: a, clientConfig: {url: u, caBundle: eA==}}]}`,
			desired: `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration,
				webhooks: [{name: a, clientConfig: {url: u}}]}`,
			want: Equal,
		},
		"defaults of a definition are no difference": {
			live: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: g, scope: Cluster,
				names: {plural: xs, kind: X, singular: x, listKind: XList}, conversion: {strategy: None},
				versions: [{name: v1, served: true, storage: true}]}}`,
			desired: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: g, scope: Cluster,
				names: {plural: xs, kind: X}, versions: [{name: v1, served: true, storage: true}]}}`,
			want: Equal,
		},
		"a version is added to a definition": {
			live: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: g, scope: Cluster,
				names: {plural: xs, kind: X, singular: x, listKind: XList}, conversion: {strategy: None},
				versions: [{name: v1, served: true, storage: true}]}}`,
			desired: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: g, scope: Cluster,
				names: {plural: xs, kind: X}, versions: [{name: v1, served: true, storage: true,
				schema: {openAPIV3Schema: {type: object, default: {a: 1}}}}]}}`,
			want: Changed,
			next: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: g, scope: Cluster,
				names: {plural: xs, kind: X, singular: x, listKind: XList}, conversion: {strategy: None},
				versions: [{name: v1, served: true, storage: true,
				schema: {openAPIV3Schema: {type: object, default: {a: 1}}}}]}}`,
		},
		"a bundle that was not asked for goes": {
			live:    `{apiVersion: v1, kind: ConfigMap, data: {ca-bundle.crt: x, service-ca.crt: x}}`,
			desired: `{apiVersion: v1, kind: ConfigMap}`,
			want:    Changed, next: `{apiVersion: v1, kind: ConfigMap}`,
		},
		"the bundle of a service stays": {
			live: `{apiVersion: v1, kind: ConfigMap, data: {service-ca.crt: x, a: "1"}, metadata: {annotations: {
				service.beta.openshift.io/inject-cabundle: "true"}}}`,
			desired: `{apiVersion: v1, kind: ConfigMap, data: {a: "1"}, metadata: {annotations: {
				service.beta.openshift.io/inject-cabundle: "true"}}}`,
			want: Equal,
		},
		"a bundle that the manifest has itself is that of the manifest": {
			live: `{apiVersion: v1, kind: ConfigMap, data: {service-ca.crt: x}, metadata: {annotations: {
				service.beta.openshift.io/inject-cabundle: "true"}}}`,
			desired: `{apiVersion: v1, kind: ConfigMap, data: {service-ca.crt: own}, metadata: {annotations: {
				service.beta.openshift.io/inject-cabundle: "true"}}}`,
			want: Changed, next: `{apiVersion: v1, kind: ConfigMap, data: {service-ca.crt: own}}`,
		},
		"a bundle that is not injected yet is not awaited": {
			live: `{apiVersion: v1, kind: ConfigMap, metadata: {annotations: {
				service.beta.openshift.io/inject-cabundle: "true"}}}`,
			desired: `{apiVersion: v1, kind: ConfigMap, metadata: {annotations: {
				service.beta.openshift.io/inject-cabundle: "true"}}}`,
			want: Equal,
		},
		"rules that a Role gets": {
			live:    `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role}`,
			desired: `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: [{verbs: [list]}]}`,
			want:    Changed,
			next:    `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: [{verbs: [list]}]}`,
		},
		"rules that a Role loses": {
			live:    `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: [{verbs: [list]}]}`,
			desired: `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: []}`,
			want:    Changed, next: `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role}`,
		},
		"another group of a role is a difference": {
			live:    `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}}`,
			desired: `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {apiGroup: other, kind: Role, name: r}}`,
			want:    Changed, next: `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {apiGroup: other, kind: Role, name: r}}`,
		},
		"the default group of a group": {
			live:    `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: g}]}`,
			desired: `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, subjects: [{kind: Group, name: g}]}`,
			want:    Equal,
		},
		"another group of a subject is a difference": {
			live:    `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: u}]}`,
			desired: `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, subjects: [{apiGroup: other, kind: User, name: u}]}`,
			want:    Changed, next: `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, subjects: [{apiGroup: other, kind: User, name: u}]}`,
		},
		"a bundle in the manifest of a webhook is that of the manifest": {
			live: `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration,
				webhooks: [{name: a, clientConfig: {url: u, caBundle: eA==}}, {name: b, clientConfig: {url: u}}]}`,
			desired: `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration,
				webhooks: [{name: a, clientConfig: {url: u, caBundle: eQ==}}, {name: b, clientConfig: {url: v}}]}`,
			want: Changed, next: `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration,
				webhooks: [{name: a, clientConfig: {url: u, caBundle: eQ==}}, {name: b, clientConfig: {url: v}}]}`,
		},
		"an injected bundle of a conversion stays": {
			live: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: g, scope: Cluster,
				names: {plural: xs, kind: X, singular: x, listKind: XList}, versions: [{name: v1, served: true, storage: true}],
				conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://c", caBundle: eA==}}}}}`,
			desired: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: g, scope: Cluster,
				names: {plural: xs, kind: X, singular: x, listKind: XList}, versions: [{name: v1, served: true, storage: true}],
				conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://c"}}}}}`,
			want: Equal,
		},
		"a bundle in the manifest of a conversion is that of the manifest": {
			live: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: g, scope: Cluster,
				names: {plural: xs, kind: X, singular: x, listKind: XList}, versions: [{name: v1, served: true, storage: true}],
				conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://c", caBundle: eA==}}}}}`,
			desired: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: g, scope: Cluster,
				names: {plural: xs, kind: X, singular: x, listKind: XList}, versions: [{name: v1, served: true, storage: true}],
				conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://c", caBundle: eQ==}}}}}`,
			want: Changed, next: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: g, scope: Cluster,
				names: {plural: xs, kind: X, singular: x, listKind: XList}, versions: [{name: v1, served: true, storage: true}],
				conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://c", caBundle: eQ==}}}}}`,
		},
		"a conversion that a definition gets": {
			live: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: g, scope: Cluster,
				names: {plural: xs, kind: X, singular: x, listKind: XList}, conversion: {strategy: None},
				versions: [{name: v1, served: true, storage: true}]}}`,
			desired: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: g, scope: Cluster,
				names: {plural: xs, kind: X, singular: x, listKind: XList}, versions: [{name: v1, served: true, storage: true}],
				conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://c"}}}}}`,
			want: Changed, next: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: g, scope: Cluster,
				names: {plural: xs, kind: X, singular: x, listKind: XList}, versions: [{name: v1, served: true, storage: true}],
				conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://c"}}}}}`,
		},
		"anything else is made exactly so": {
			live:    `{apiVersion: x/v1, kind: X, spec: {a: 1, more: 2}, other: 3, status: {s: 1}}`,
			desired: `{apiVersion: x/v1, kind: X, spec: {a: 2}}`,
			want:    Changed, next: `{apiVersion: x/v1, kind: X, spec: {a: 2}, status: {s: 1}}`,
		},
		"what the live object says beyond the manifest is told apart": {
			live:    `{apiVersion: x/v1, kind: X, spec: {a: 1, more: 2}, status: {s: 1}}`,
			desired: `{apiVersion: x/v1, kind: X, spec: {a: 1}}`,
			want:    Extra, next: `{apiVersion: x/v1, kind: X, spec: {a: 1}, status: {s: 1}}`,
		},
		"a status in the manifest does not count": {
			live:    `{apiVersion: x/v1, kind: X, spec: {a: 1}, status: {s: 1}}`,
			desired: `{apiVersion: x/v1, kind: X, spec: {a: 1}, status: {s: 2}}`,
			want:    Equal,
		},
	} {
		t.Run(name, func(t *testing.T) {
			live := object(t, c.live)
			before := live.DeepCopy()
			next, got, err := Into(live, object(t, c.desired), metav1.OwnerReference{}, false)
			assert.Equal(t, before, live, "the live object is not touched")
			if c.fails != "" {
				require.ErrorContains(t, err, c.fails)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
			if c.next != "" {
				want := object(t, c.next)
				assert.Equal(t, content.Of(want), content.Of(next))
				assert.Equal(t, want.Object["status"], next.Object["status"])
			}
			_, again, err := Into(next, object(t, c.desired), metav1.OwnerReference{}, false)
			require.NoError(t, err)
			assert.Equal(t, Equal, again, "merging twice changes nothing more")
		})
	}
}

// Shows: work/strategies
func TestMergeMeta(t *testing.T) {
	owner := inventory.OwnerReference("hash-w", "uid")
	other := inventory.OwnerReference("hash-other", "uid2")
	live := func() *unstructured.Unstructured {
		o := object(t, `{kind: X, metadata: {name: x, labels: {a: "1", b: "2"}, annotations: {c: "3"}, finalizers: [f]}}`)
		o.SetOwnerReferences([]metav1.OwnerReference{other})
		return o
	}
	desired := object(t, `{kind: X, metadata: {name: x, labels: {b-: "", a: "9"}, annotations: {d: "4", nothing--: ""},
		finalizers: [g], ownerReferences: [{kind: Foreign, name: f}]}}`)

	next := live()
	assert.True(t, Metadata(next, desired, owner, true))
	assert.Equal(t, map[string]string{"a": "9"}, next.GetLabels())
	assert.Equal(t, map[string]string{"c": "3", "d": "4"}, next.GetAnnotations())
	assert.Equal(t, []string{"f"}, next.GetFinalizers())
	assert.Equal(t, []metav1.OwnerReference{other, owner}, next.GetOwnerReferences())
	assert.False(t, Metadata(next, desired, owner, true), "merging twice changes nothing more")

	assert.True(t, Metadata(next, desired, owner, false), "an orphan loses its owner")
	assert.Equal(t, []metav1.OwnerReference{other}, next.GetOwnerReferences())
	assert.False(t, Metadata(next, desired, owner, false))

	made := ForCreate(desired, owner, true)
	assert.Equal(t, map[string]string{"a": "9"}, made.GetLabels(), "marks are not made into labels")
	assert.Equal(t, []metav1.OwnerReference{owner}, made.GetOwnerReferences())
	assert.Equal(t, []string{"g"}, made.GetFinalizers())
	assert.Empty(t, ForCreate(desired, owner, false).GetOwnerReferences())
}

func TestWhatNeedsRecreation(t *testing.T) {
	assert.True(t, NeedsRecreation(fmt.Errorf("merging: %w", errRecreate)))
	assert.False(t, NeedsRecreation(nil))
}
