package token

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	tokens "github.com/spokelet/spokelet/internal/token"
)

func TestTokensOfAServiceAccountOfOthersAreGrantedToNobody(t *testing.T) {
	foreign := wanted(key, nil, "")[0]
	foreign.SetLabels(nil)
	for sentence, tc := range map[string]struct {
		there []client.Object
		have  []client.Object
		left  int
	}{
		"nothing is granted":                       {[]client.Object{foreign}, []client.Object{nil, nil, nil}, 0},
		"what was granted is withdrawn":            {append(built(addOn())[1:], foreign), append([]client.Object{nil}, built(addOn())[1:]...), 0},
		"without such an account both are granted": {nil, []client.Object{nil, nil, nil}, 2},
	} {
		t.Run(sentence, func(t *testing.T) {
			scheme := runtime.NewScheme()
			require.NoError(t, corev1.AddToScheme(scheme))
			require.NoError(t, rbacv1.AddToScheme(scheme))
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.there...).Build()
			f := facts{now: now, key: key, addOn: addOn(kube(tokens.Driver)), accepted: true, have: tc.have}
			done := (&Reconciler{Client: c, Live: c}).act(t.Context(), f, decide(f))
			assert.Equal(t, tc.left == 0, done.err != nil)
			var roles rbacv1.RoleList
			var bindings rbacv1.RoleBindingList
			require.NoError(t, c.List(t.Context(), &roles))
			require.NoError(t, c.List(t.Context(), &bindings))
			assert.Len(t, roles.Items, tc.left/2)
			assert.Len(t, bindings.Items, tc.left/2)
		})
	}
}
