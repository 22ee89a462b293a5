package hub

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/kept"
	"github.com/spokelet/spokelet/internal/names"
	tokens "github.com/spokelet/spokelet/internal/token"
	"github.com/spokelet/spokelet/lease"
)

// transformOf returns what the cache of the manager does to an object.
func transformOf(options cache.Options, object client.Object) func(any) (any, error) {
	for kind, by := range options.ByObject {
		if reflect.TypeOf(kind) == reflect.TypeOf(object) && by.Transform != nil {
			return by.Transform
		}
	}
	return options.DefaultTransform
}

// The administrator of a namespace, or the agent of a cluster, may give objects of the hub the labels by which the hub
// manager finds its own, and fill them up to 1.5 MB. There may be hundreds, and the hub manager has 512 MiB.
// Shows: security/filled-objects
func TestLittleIsKeptOfWhatATenantFillsUp(t *testing.T) {
	const most = 64 << 10
	meta := func(labels ...string) metav1.ObjectMeta {
		all := map[string]string{}
		for _, label := range labels {
			all[label] = "true"
		}
		return metav1.ObjectMeta{Namespace: "cluster1", Name: "open-cluster-management:x", Labels: all}
	}
	account := &corev1.ServiceAccount{ObjectMeta: meta(tokens.LabelInfrastructure)}
	account.Secrets = make([]corev1.ObjectReference, 95_000)
	role := &rbacv1.Role{ObjectMeta: meta(tokens.LabelInfrastructure)}
	role.Rules = make([]rbacv1.PolicyRule, 20_000)
	binding := &rbacv1.RoleBinding{ObjectMeta: meta()}
	work := &workv1.ManifestWork{ObjectMeta: meta(names.LabelAddonName)}
	locked := &workv1.ManifestWork{ObjectMeta: meta(names.LabelAddonName)}
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: meta()}
	for n := range 10_000 {
		name := fmt.Sprint("x", n)
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: rbacv1.UserKind, Name: name})
		work.Spec.ManifestConfigs = append(work.Spec.ManifestConfigs, workv1.ManifestConfigOption{
			ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Name: name},
		})
		locked.Finalizers = append(locked.Finalizers, "a/"+name)
		addOn.Labels[name] = ""
	}
	annotated := metav1.ObjectMeta{
		Namespace: "cluster1", Name: lease.ClusterLease, Labels: map[string]string{names.LabelAddonName: "a"},
		Annotations: map[string]string{"x": strings.Repeat("y", 250_000)},
	}
	held := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: lease.ClusterLease}}
	held.Spec.HolderIdentity = new(strings.Repeat("y", 250_000))
	for sentence, object := range map[string]client.Object{
		"a Lease with a long holder":                held,
		"a RoleBinding with a long annotation":      &rbacv1.RoleBinding{ObjectMeta: annotated},
		"a work with a long annotation":             &workv1.ManifestWork{ObjectMeta: annotated},
		"a Lease with a long annotation":            &coordinationv1.Lease{ObjectMeta: annotated},
		"a Placement with a long annotation":        &clusterv1beta1.Placement{ObjectMeta: annotated},
		"a binding of a set with a long annotation": &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: annotated},
		"a ServiceAccount with many Secrets":        account, "a Role with many rules": role,
		"a RoleBinding with many subjects": binding, "a work with many configurations": work,
		"a work with many finalizers": locked, "an add-on with many labels": addOn,
	} {
		t.Run(sentence, func(t *testing.T) {
			options, err := cacheOptions("")
			require.NoError(t, err)
			left, err := transformOf(options, object)(object)
			require.NoError(t, err)
			text, err := json.Marshal(left)
			require.NoError(t, err)
			assert.Less(t, len(text), most)
		})
	}
}

// A configuration of 1.3 MB with many small values takes twenty times that decoded, and there may be any number that
// no add-on uses.
// Shows: security/filled-objects
func TestAConfigurationTakesItsBytesOnce(t *testing.T) {
	many := func(value func(n int) string) string {
		all := make([]string, 100_000)
		for n := range all {
			all[n] = value(n)
		}
		return strings.Join(all, ",")
	}
	for kind, spec := range map[string]string{
		"AddOnTemplate":         `{"agentSpec":{"workload":{"manifests":[[` + many(func(int) string { return "{}" }) + `]]}}}`,
		"AddOnDeploymentConfig": `{"nodePlacement":{"nodeSelector":{` + many(func(n int) string { return fmt.Sprintf("%q:\"\"", fmt.Sprint(n)) }) + `}}}`,
	} {
		t.Run(kind, func(t *testing.T) {
			text := `{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"` + kind + `","metadata":{"name":"a"},"spec":` + spec + `}`
			object := &unstructured.Unstructured{}
			require.NoError(t, object.UnmarshalJSON([]byte(text)))
			require.Greater(t, kept.Weigh(object.Object), 5*len(text))
			options, err := cacheOptions("")
			require.NoError(t, err)
			out, err := transformOf(options, object)(object)
			require.NoError(t, err)
			left, is := out.(*unstructured.Unstructured)
			require.True(t, is)
			assert.Less(t, kept.Weigh(left.Object), 2*len(text))
		})
	}
}
