package conversion_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// someUser may create and change add-ons in one namespace, and has no other right.
const someUser = "some-user@example.com"

const rightsOfSomeUser = `
apiVersion: v1
kind: Namespace
metadata: {name: cz}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: add-ons, namespace: cz}
rules:
- {apiGroups: [addon.open-cluster-management.io], resources: [managedclusteraddons], verbs: [create, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: add-ons, namespace: cz}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: add-ons}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: some-user@example.com}
`

// twisted returns an add-on whose annotation carries a field of the other version, with a value of another type.
func twisted(t *testing.T, name, version, other string, path ...string) *unstructured.Unstructured {
	t.Helper()
	u := addOnAs(version, name)
	u.SetNamespace("cz")
	text, err := json.Marshal(map[string]any{
		addonv1beta1.GroupName + "/" + other: []any{map[string]any{"path": path, "value": "boom"}},
	})
	require.NoError(t, err)
	u.SetAnnotations(map[string]string{names.AnnotationCarried: string(text)})
	return u
}

// TestAUserCannotBlindTheHubManagerByAnAnnotation has a user who may create add-ons in one namespace put fields that no
// typed client can read into the annotation that conversions use, in both directions.
//
// Shows: security/twisted-annotation
func TestAUserCannotBlindTheHubManagerByAnAnnotation(t *testing.T) {
	ctx := t.Context()
	install(t, shipped(t), appliedBy(ctx, "kubectl"))
	require.NoError(t, second.plane.Apply(ctx, []byte(rightsOfSomeUser)))
	user, err := second.plane.User(someUser)
	require.NoError(t, err)
	attacker, err := client.New(user, client.Options{Scheme: second.admin.Scheme()})
	require.NoError(t, err)
	r := runHub(t, nil)
	r.becomesReady(t)
	attacks := []*unstructured.Unstructured{
		twisted(t, "spec", "v1beta1", "v1alpha1", "spec", "configs"),
		twisted(t, "namespace", "v1beta1", "v1alpha1", "spec", "installNamespace"),
		twisted(t, "back", "v1alpha1", "v1beta1", "spec", "configs"),
	}
	for _, u := range attacks {
		suite.Eventually(t, func() error { return client.IgnoreAlreadyExists(attacker.Create(ctx, u.DeepCopy())) })
	}
	everybodyReads := func() {
		t.Helper()
		for _, list := range []client.ObjectList{
			&addonv1alpha1.ManagedClusterAddOnList{}, &addonv1beta1.ManagedClusterAddOnList{},
		} {
			suite.Eventually(t, func() error { return second.admin.List(ctx, list, client.InNamespace("cz")) })
		}
		for _, u := range attacks {
			for _, version := range []string{"v1alpha1", "v1beta1"} {
				got := addOnAs(version, u.GetName())
				got.SetNamespace("cz")
				require.NoError(t, second.admin.Get(ctx, client.ObjectKeyFromObject(got), got))
				assert.NotEqual(t, "boom", field(got.Object, "spec", "configs"), "%s in %s", u.GetName(), version)
				assert.NotEqual(t, "boom", field(got.Object, "spec", "installNamespace"))
			}
		}
	}
	everybodyReads()
	r.stop()
	r = runHub(t, nil)
	r.becomesReady(t)
	everybodyReads()
}

// TestAUserCannotFailListsByLargeAnnotations: the API server refuses a converted object whose annotations are too large,
// and every list with it.
//
// Shows: security/large-annotations
func TestAUserCannotFailListsByLargeAnnotations(t *testing.T) {
	ctx := t.Context()
	install(t, shipped(t), appliedBy(ctx, "kubectl"))
	require.NoError(t, second.plane.Apply(ctx, []byte(rightsOfSomeUser)))
	user, err := second.plane.User(someUser)
	require.NoError(t, err)
	attacker, err := client.New(user, client.Options{Scheme: second.admin.Scheme()})
	require.NoError(t, err)
	r := runHub(t, nil)
	r.becomesReady(t)
	for sentence, annotations := range map[string]map[string]string{
		"an annotation that leaves no room":  {"big": text(262000)},
		"carried fields beyond their bounds": {names.AnnotationCarried: text(16385)},
	} {
		t.Run(sentence, func(t *testing.T) {
			u := addOnAs("v1alpha1", "large")
			u.SetNamespace("cz")
			u.SetAnnotations(annotations)
			suite.Eventually(t, func() error {
				err := attacker.Create(ctx, u.DeepCopy())
				if !apierrors.IsInvalid(err) {
					return fmt.Errorf("the answer is %w", err)
				}
				return nil
			})
			require.ErrorContains(t, attacker.Create(ctx, u.DeepCopy()), "addon-annotations.spokelet.io")
		})
	}
	t.Run("even one that was there before the policy fails no list", func(t *testing.T) {
		old := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "cz", Name: "old"}}
		old.Spec.InstallNamespace = "somewhere"
		old.Annotations = map[string]string{"big": text(262140)}
		withoutPolicy(t, "addon-annotations.spokelet.io", func() error { return second.admin.Create(ctx, old) })
		suite.Eventually(t, func() error {
			return second.admin.List(ctx, &addonv1beta1.ManagedClusterAddOnList{}, client.InNamespace("cz"))
		})
		require.NoError(t, second.admin.Delete(ctx, old))
	})
}

func text(n int) string { return strings.Repeat("x", n) }

// withoutPolicy does something without the binding of a policy.
func withoutPolicy(t *testing.T, name string, do func() error) {
	t.Helper()
	binding := &unstructured.Unstructured{}
	binding.SetAPIVersion("admissionregistration.k8s.io/v1")
	binding.SetKind("ValidatingAdmissionPolicyBinding")
	binding.SetName(name)
	require.NoError(t, second.admin.Get(t.Context(), client.ObjectKeyFromObject(binding), binding))
	require.NoError(t, second.admin.Delete(t.Context(), binding.DeepCopy()))
	suite.Eventually(t, do)
	binding.SetResourceVersion("")
	binding.SetUID("")
	require.NoError(t, second.admin.Create(t.Context(), binding))
}
