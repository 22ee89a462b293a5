package hubprocess

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/spokelet/spokelet/internal/names"
)

func filled(entries int) *corev1.ConfigMap {
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{names.LabelInstalledBy: "x"}}}
	for n := range entries {
		name := fmt.Sprint("a", n)
		o.Labels[name] = ""
		o.Finalizers = append(o.Finalizers, "a/"+name)
		o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{
			APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: types.UID(name),
		})
	}
	return o
}

func TestWhatIsKeptOfTheMetadataOfAnObjectIsBounded(t *testing.T) {
	same := func(in any) (any, error) { return in, nil }
	few := filled(20)
	_, err := Bounded(same)(few)
	require.NoError(t, err)
	assert.Equal(t, filled(20), few)

	many := filled(10_000)
	_, err = Bounded(same)(many)
	require.NoError(t, err)
	assert.Less(t, len(many.Labels), 300)
	assert.Contains(t, many.Labels, names.LabelInstalledBy)
	assert.Less(t, len(many.Finalizers), 300)
	assert.Less(t, len(many.OwnerReferences), 300)
	assert.Equal(t, filled(1).Finalizers[0], many.Finalizers[0])
	once := many.DeepCopy()
	_, err = Bounded(same)(many)
	require.NoError(t, err)
	assert.Equal(t, once, many, "a cache may transform the same object again")

	path := field.NewPath("metadata")
	assert.NotEmpty(t, validation.ValidateFinalizers(many.Finalizers, path), "the API server would not lose the others")
	assert.NotEmpty(t, validation.ValidateOwnerReferences(many.OwnerReferences, path))
}

func TestALongBindingOrRoleIsEqualToNoneOfOurs(t *testing.T) {
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: rolePrefix + "x"}}
	role := &rbacv1.Role{}
	for n := range 1000 {
		name := fmt.Sprint("x", n)
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: rbacv1.UserKind, Name: name})
		role.Rules = append(role.Rules, rbacv1.PolicyRule{Verbs: []string{"get"}, Resources: []string{name}})
	}
	first := slices.Clone(binding.Subjects)
	t1 := &Trims{}
	for range 2 {
		_, err := t1.Binding(binding)
		require.NoError(t, err)
		_, err = t1.Role(role)
		require.NoError(t, err)
		n, r := len(binding.Subjects)-1, len(role.Rules)-1
		assert.Less(t, n, 300)
		assert.Equal(t, first[:n], binding.Subjects[:n])
		assert.Equal(t, rbacv1.Subject{Name: tooMany}, binding.Subjects[n])
		assert.Less(t, r, 300)
		assert.Equal(t, rbacv1.PolicyRule{Verbs: []string{tooMany}}, role.Rules[r])
	}
}
