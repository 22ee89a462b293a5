package faults_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/test/suite"
)

// ofWork asks for a work of the cluster with an agent.
func ofWork(name string) string { return "work " + name + " -n " + near }

// refused is an admission policy that lets nobody write ConfigMaps of a name.
const refused = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]
  validations: [{expression: "object.metadata.name != '%[1]s'", message: "as the policy wants it"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}
`

// in is a manifest of a ConfigMap in a namespace.
func in(namespace, name string) string {
	return `{apiVersion: v1, kind: ConfigMap, metadata: {name: ` + name + `, namespace: ` + namespace + `}}`
}

// workFaults are the faults of works.
func workFaults() map[string]fault {
	return map[string]fault{
		"the work does not exist": {code: causes.ObjectMissing, ask: ofWork, inject: func(*testing.T, string) {}},
		"the cluster does not serve the kind of a manifest": {
			code: causes.WorkNotApplied, ask: ofWork,
			inject: func(t *testing.T, name string) {
				t.Helper()
				workOf(t, near, name, workload(`{apiVersion: nowhere.example/v1, kind: Missing, metadata: {name: x, namespace: default}}`))
			},
			repair: func(t *testing.T, name string) { t.Helper(); workOf(t, near, name, workload(settings(name))) },
		},
		"an admission policy of the cluster refuses a manifest": {
			code: causes.WorkNotApplied, ask: ofWork,
			prepare: func(t *testing.T, name string) {
				t.Helper()
				apply(t, world.cluster, format(refused, name))
				suite.Eventually(t, func() error {
					cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
					if err := world.cluster.Client.Create(t.Context(), cm, client.DryRunAll); !apierrors.IsInvalid(err) {
						return fmt.Errorf("the policy is not in force: %w", err)
					}
					return nil
				})
			},
			inject: func(t *testing.T, name string) { t.Helper(); workOf(t, near, name, workload(settings(name))) },
		},
		"another program owns a field of a manifest": {
			code: causes.WorkNotApplied, ask: ofWork,
			prepare: func(t *testing.T, name string) {
				t.Helper()
				cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
				cm.Data = map[string]string{"a": "theirs"}
				createOn(t, world.cluster, cm)
			},
			inject: func(t *testing.T, name string) {
				t.Helper()
				workOf(t, near, name, `{workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: `+name+`,
				  namespace: default}, data: {a: ours}}]}, manifestConfigs: [{resourceIdentifier: {group: "", resource: configmaps,
				  namespace: default, name: `+name+`}, updateStrategy: {type: ServerSideApply}}]}`)
			},
			repair: func(t *testing.T, name string) {
				t.Helper()
				remove(t, world.cluster, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
			},
		},
		"a quota of the cluster refuses a manifest": {
			code: causes.WorkNotApplied, ask: ofWork,
			prepare: func(t *testing.T, name string) {
				t.Helper()
				namespaceOn(t, world.cluster, name)
				apply(t, world.cluster, format(`{apiVersion: v1, kind: ResourceQuota, metadata: {name: none, namespace: %[1]s}, spec: {hard: {count/configmaps: "1"}}}`, name))
			},
			inject: func(t *testing.T, name string) {
				t.Helper()
				workOf(t, near, name, workload(in(name, "a"), in(name, "b"), in(name, "c")))
			},
		},
		"the namespace of a manifest does not exist": {
			code: causes.WorkNotApplied, ask: ofWork,
			inject: func(t *testing.T, name string) { t.Helper(); workOf(t, near, name, workload(in(name, "a"))) },
			repair: func(t *testing.T, name string) { t.Helper(); namespaceOn(t, world.cluster, name) },
		},
		"the namespace of a manifest is being deleted": {
			code: causes.WorkNotApplied, ask: ofWork,
			prepare: func(t *testing.T, name string) {
				t.Helper()
				ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"example.com/keep"}}}
				ns.Spec.Finalizers = []corev1.FinalizerName{"kubernetes"}
				createOn(t, world.cluster, ns)
				remove(t, world.cluster, ns)
			},
			inject: func(t *testing.T, name string) { t.Helper(); workOf(t, near, name, workload(in(name, "a"))) },
		},
		"the executor of the work may not write": {
			code: causes.WorkNotApplied, ask: ofWork,
			inject: func(t *testing.T, name string) {
				t.Helper()
				workOf(t, near, name, `{workload: {manifests: [`+settings(name)+`]}, executor: {subject: {type: ServiceAccount,
				  serviceAccount: {namespace: default, name: `+name+`}}}}`)
			},
			repair: func(t *testing.T, name string) { t.Helper(); apply(t, world.cluster, format(mayWrite, name)) },
		},
		"an object that the work only reads does not exist": {
			code: causes.WorkNotAvailable, ask: ofWork,
			inject: func(t *testing.T, name string) {
				t.Helper()
				workOf(t, near, name, `{workload: {manifests: [`+settings(name)+`]}, manifestConfigs: [{resourceIdentifier: {
				  group: "", resource: configmaps, namespace: default, name: `+name+`}, updateStrategy: {type: ReadOnly}}]}`)
			},
		},
		"a finalizer keeps an object of a work that is being deleted": {
			code: causes.WorkDeletion, ask: ofWork,
			prepare: func(t *testing.T, name string) {
				t.Helper()
				workOf(t, near, name, workload(settings(name)))
				isWell(t, ofWork(name))
				cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
				patch(t, world.cluster, cm, `{"metadata":{"finalizers":["example.com/keep"]}}`)
			},
			inject: func(t *testing.T, name string) { t.Helper(); remove(t, world.hub, work(name)) },
		},
		"no agent takes the work": {
			code: causes.WorkNotSeen, ask: func(name string) string { return "work " + name + " -n " + name },
			prepare: joined,
			inject:  func(t *testing.T, name string) { t.Helper(); workOf(t, name, name, workload(settings(name))) },
		},
	}
}

// mayWrite lets the ServiceAccount of a name write ConfigMaps.
const mayWrite = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: %[1]s, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[1]s, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}
subjects: [{kind: ServiceAccount, name: %[1]s, namespace: default}]
`
