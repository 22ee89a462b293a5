package token_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/token"
	"github.com/spokelet/spokelet/test/suite"
)

// Shows: registration/infrastructure-created
func TestTheDriverTokenGetsItsInfrastructure(t *testing.T) {
	t.Parallel()
	accepted(t, "t-create")
	a := install(t, "t-create", "a", kubeClient("token"))
	uid := a.ready(t)
	owner := a.read(t)
	want := token.Render(a.cluster, a.name)
	objects := a.objects()
	for _, object := range objects {
		require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
		assert.Equal(t, token.Labels(a.name), object.GetLabels())
		require.Len(t, object.GetOwnerReferences(), 1)
		assert.Equal(t, owner.UID, object.GetOwnerReferences()[0].UID)
	}
	role, isRole := objects[1].(*rbacv1.Role)
	binding, isBinding := objects[2].(*rbacv1.RoleBinding)
	require.True(t, isRole && isBinding)
	assert.Equal(t, want.Role.Rules, role.Rules)
	assert.Equal(t, want.Binding.Subjects, binding.Subjects)
	for _, c := range owner.Status.Conditions {
		if c.Type == "TokenInfrastructureReady" {
			assert.Equal(t, "TokenInfrastructureReady", c.Reason)
			assert.Equal(t, fmt.Sprintf("ServiceAccount t-create/a-agent (UID: %s) is ready", uid), c.Message)
		}
	}
}

// Shows: registration/infrastructure-follows-driver
func TestAnotherDriverEndsTheInfrastructure(t *testing.T) {
	t.Parallel()
	accepted(t, "t-switch")
	a := install(t, "t-switch", "a", kubeClient("token"))
	a.ready(t)
	a.register(t, kubeClient("csr"))
	a.gone(t)
	a.unconditional(t)
	a.register(t, kubeClient("token"))
	a.ready(t)
	a.register(t)
	a.gone(t)
	a.unconditional(t)
}

// Shows: registration/infrastructure-goes-with-add-on
func TestTheInfrastructureStaysUntilTheAddOnIsGone(t *testing.T) {
	t.Parallel()
	accepted(t, "t-delete")
	a := install(t, "t-delete", "a", kubeClient("token"))
	uid := a.ready(t)
	agent, _ := agentOf(t, "t-delete")
	hold(t, a, "test.example.com/hook")
	require.NoError(t, plane.AddOns.DeleteAddOn(t.Context(), a.read(t)))

	// W-31: while it leaves, what runs before it goes still needs the hub. Another add-on shows that the hub manager has
	// seen the deletion.
	other := install(t, "t-delete", "other", kubeClient("token"))
	other.ready(t)
	account := a.account(t.Context())
	require.NotNil(t, account)
	assert.Equal(t, uid, account.UID)
	mint(t, agent, a)
	assert.Equal(t, uid, a.ready(t))

	hold(t, a)
	a.gone(t)
	assert.NotNil(t, other.account(t.Context()), "other add-ons keep theirs")
}

// hold sets the finalizers of an add-on.
func hold(t *testing.T, a addOn, finalizers ...string) {
	t.Helper()
	suite.Eventually(t, func() error {
		before := a.read(t)
		after := before.DeepCopy()
		after.Finalizers = finalizers
		_, err := plane.AddOns.PatchAddOn(t.Context(), before, after)
		return err
	})
}

// Shows: registration/infrastructure-for-one-of-many
func TestOneRegistrationByTokenAmongOthersIsEnough(t *testing.T) {
	t.Parallel()
	accepted(t, "t-mixed")
	a := install(t, "t-mixed", "a", customSigner("example.com/signer"), kubeClient("token"))
	a.ready(t)
	a.register(t, customSigner("example.com/signer"))
	a.gone(t)
	a.unconditional(t)

	none := install(t, "t-mixed", "none", customSigner("example.com/signer"), kubeClient("csr"))
	a.register(t, kubeClient("token"))
	a.ready(t)
	require.NoError(t, none.absent(t.Context()), "without the driver there is nothing")
}

// Shows: registration/service-account-recreated
func TestANewServiceAccountVoidsTheToken(t *testing.T) {
	t.Parallel()
	accepted(t, "t-rotate")
	a := install(t, "t-rotate", "a", kubeClient("token"))
	before := a.ready(t)
	require.NoError(t, plane.Client.Delete(t.Context(), a.account(t.Context())))
	suite.Eventually(t, func() error {
		if a.ready(t) == before {
			return errors.New("the condition still names the ServiceAccount that was deleted")
		}
		return nil
	})
}

// Shows: registration/infrastructure-repaired
func TestWhatIsEditedIsRepaired(t *testing.T) {
	t.Parallel()
	accepted(t, "t-repair")
	a := install(t, "t-repair", "a", kubeClient("token"))
	uid := a.ready(t)
	want := token.Render(a.cluster, a.name)
	for sentence, edit := range map[string]func(account *corev1.ServiceAccount, role *rbacv1.Role, b *rbacv1.RoleBinding) client.Object{
		"rules of the role": func(_ *corev1.ServiceAccount, role *rbacv1.Role, _ *rbacv1.RoleBinding) client.Object {
			role.Rules[0].ResourceNames = nil
			return role
		},
		"subjects of the binding": func(_ *corev1.ServiceAccount, _ *rbacv1.Role, b *rbacv1.RoleBinding) client.Object {
			b.Subjects = append(b.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "x"})
			return b
		},
		"labels of the account": func(account *corev1.ServiceAccount, _ *rbacv1.Role, _ *rbacv1.RoleBinding) client.Object {
			account.Labels = nil
			return account
		},
		"labels of the role": func(_ *corev1.ServiceAccount, role *rbacv1.Role, _ *rbacv1.RoleBinding) client.Object {
			delete(role.Labels, token.LabelInfrastructure)
			return role
		},
		"labels of the binding": func(_ *corev1.ServiceAccount, _ *rbacv1.Role, b *rbacv1.RoleBinding) client.Object {
			b.Labels = nil
			return b
		},
		"owners": func(_ *corev1.ServiceAccount, role *rbacv1.Role, _ *rbacv1.RoleBinding) client.Object {
			role.OwnerReferences = nil
			return role
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			account, role, binding := a.current(t)
			require.NoError(t, plane.Client.Update(t.Context(), edit(account, role, binding)))
			suite.Eventually(t, func() error {
				account, role, binding := a.current(t)
				for _, object := range []client.Object{account, role, binding} {
					if !assert.ObjectsAreEqual(token.Labels(a.name), object.GetLabels()) || len(object.GetOwnerReferences()) != 1 {
						return fmt.Errorf("%T has labels %v and owners %v", object, object.GetLabels(), object.GetOwnerReferences())
					}
				}
				if !assert.ObjectsAreEqual(want.Role.Rules, role.Rules) {
					return fmt.Errorf("rules %v", role.Rules)
				}
				if !assert.ObjectsAreEqual(want.Binding.Subjects, binding.Subjects) {
					return fmt.Errorf("subjects %v", binding.Subjects)
				}
				return nil
			})
		})
	}
	assert.Equal(t, uid, a.ready(t), "the ServiceAccount, and with it every token, stays")
	for _, object := range a.objects()[1:] {
		require.NoError(t, plane.Client.Delete(t.Context(), object))
		suite.Eventually(t, func() error { return plane.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object) })
	}
}

// current reads the infrastructure.
func (a addOn) current(t *testing.T) (*corev1.ServiceAccount, *rbacv1.Role, *rbacv1.RoleBinding) {
	t.Helper()
	objects := a.objects()
	for _, object := range objects {
		require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	}
	account, ok1 := objects[0].(*corev1.ServiceAccount)
	role, ok2 := objects[1].(*rbacv1.Role)
	binding, ok3 := objects[2].(*rbacv1.RoleBinding)
	require.True(t, ok1 && ok2 && ok3)
	return account, role, binding
}

func TestWhatSomebodyElseHasIsLeftAlone(t *testing.T) {
	t.Parallel()
	accepted(t, "t-foreign")
	theirs := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "t-foreign", Name: "a-agent"}}
	require.NoError(t, plane.Client.Create(t.Context(), theirs))
	a := install(t, "t-foreign", "a", kubeClient("token"))
	a.refused(t, "ServiceAccount t-foreign/a-agent exists already and is not ours")
	assert.Equal(t, theirs.UID, a.account(t.Context()).UID)
	assert.Empty(t, a.account(t.Context()).Labels)

	// What an OCM hub manager has made has the labels, and no owner: it is taken over as it is, with its tokens.
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:"a",%q:"true"}}}`, token.LabelName, token.LabelInfrastructure)
	require.NoError(t, plane.Client.Patch(t.Context(), theirs, client.RawPatch(types.MergePatchType, []byte(patch))))
	assert.Equal(t, theirs.UID, a.ready(t))
	assert.Len(t, a.account(t.Context()).OwnerReferences, 1)
}

func TestADeniedClusterLosesItsTokens(t *testing.T) {
	t.Parallel()
	accepted(t, "t-deny")
	a := install(t, "t-deny", "a", kubeClient("token"))
	before := a.ready(t)
	accept(t, "t-deny", false)
	a.refused(t, "does not accept cluster t-deny")
	a.gone(t)
	accept(t, "t-deny", true)
	assert.NotEqual(t, before, a.ready(t))
}

func TestNoTokenOutlivesItsAddOn(t *testing.T) {
	accepted(t, "t-again")
	a := install(t, "t-again", "a", kubeClient("token"))
	before := a.ready(t)
	manager.Stop()
	require.NoError(t, plane.AddOns.DeleteAddOn(t.Context(), a.read(t)))
	suite.Eventually(t, func() error {
		if _, err := plane.AddOns.GetAddOn(t.Context(), a.key()); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the add-on is there: %w", err)
		}
		return nil
	})
	a = install(t, "t-again", "a", kubeClient("token"))
	manager.Start()
	suite.Eventually(t, func() error {
		if a.ready(t) == before {
			return errors.New("the ServiceAccount is that of the add-on before")
		}
		return nil
	})

	// The same with nobody left, which also happened while nobody looked.
	manager.Stop()
	require.NoError(t, plane.AddOns.DeleteAddOn(t.Context(), a.read(t)))
	manager.Start()
	a.gone(t)
}

// mint asks for a token of the ServiceAccount of an add-on, which must succeed.
func mint(t *testing.T, as client.Client, a addOn) string {
	t.Helper()
	var minted string
	// The authorizer of the API server learns of new roles by a watch.
	suite.Eventually(t, func() error {
		var err error
		minted, err = tryMint(t.Context(), as, a.cluster, token.ServiceAccountName(a.name))
		return err
	})
	return minted
}

func tryMint(ctx context.Context, as client.Client, namespace, name string) (string, error) {
	seconds := token.MinExpirationSeconds
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	err := as.SubResource("token").Create(ctx, account, request)
	return request.Status.Token, err
}

func TestTheAgentOfAClusterGetsTokensOfItsAddOnsOnly(t *testing.T) {
	t.Parallel()
	accepted(t, "t-mine")
	accepted(t, "t-theirs")
	mine := install(t, "t-mine", "a", kubeClient("token"))
	theirs := install(t, "t-theirs", "a", kubeClient("token"))
	uid, _ := mine.ready(t), theirs.ready(t)
	agent, _ := agentOf(t, "t-mine")
	minted := mint(t, agent, mine)
	claims, err := token.Parse([]byte(minted))
	require.NoError(t, err)
	assert.Equal(t, token.User("t-mine", "a"), claims.Subject)
	assert.Equal(t, uid, claims.ServiceAccountUID)

	neighbour := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "t-mine", Name: "b-agent"}}
	require.NoError(t, plane.Client.Create(t.Context(), neighbour))
	for sentence, key := range map[string]types.NamespacedName{
		"of another cluster":              {Namespace: "t-theirs", Name: "a-agent"},
		"of another account in its own":   {Namespace: "t-mine", Name: "b-agent"},
		"of the default account":          {Namespace: "t-mine", Name: "default"},
		"of the hub manager":              {Namespace: names.NamespaceHub, Name: names.ServiceAccountManager},
		"of the bootstrap identity":       {Namespace: names.NamespaceBootstrap, Name: names.ServiceAccountBootstrap},
		"of a controller of the hub":      {Namespace: "kube-system", Name: "namespace-controller"},
		"of an account that is not there": {Namespace: "t-mine", Name: "c-agent"},
	} {
		t.Run("no token "+sentence, func(t *testing.T) {
			_, err := tryMint(t.Context(), agent, key.Namespace, key.Name)
			require.True(t, apierrors.IsForbidden(err), "%v", err)
		})
	}
}

// TestTheHubManagerUsesNothingOfWhatItHoldsToGrant tries what its ClusterRole would allow, with its own credential.
func TestTheHubManagerUsesNothingOfWhatItHoldsToGrant(t *testing.T) {
	accepted(t, "t-policy")
	a := install(t, "t-policy", "a", kubeClient("token"))
	a.ready(t)
	manager := plane.Account(t, names.NamespaceHub, names.ServiceAccountManager)

	for _, key := range []types.NamespacedName{
		{Namespace: "t-policy", Name: "a-agent"}, {Namespace: "kube-system", Name: "namespace-controller"},
	} {
		_, err := tryMint(t.Context(), manager, key.Namespace, key.Name)
		require.True(t, apierrors.IsForbidden(err), "%v", err)
		require.ErrorContains(t, err, "holds the right to ask for tokens only to grant it")
	}
	rule := func(names ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: names, Verbs: []string{"create"},
		}}
	}
	says := map[string]string{"in kube-system": "gives nobody access to kube-system"}
	for sentence, role := range map[string]client.Object{
		"in kube-system": &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "b-token-role"}, Rules: rule("b-agent"),
		},
		"for another account": &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: "t-policy", Name: "b-token-role"}, Rules: rule("default"),
		},
		"for all accounts": &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: "t-policy", Name: "b-token-role"}, Rules: rule(),
		},
		"under another name": &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: "t-policy", Name: "b"}, Rules: rule("b-agent"),
		},
		"where no cluster is": &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b-token-role"}, Rules: rule("b-agent"),
		},
		"for everything else": &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: "t-policy", Name: "b-token-role"}, Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{"work.open-cluster-management.io"}, Resources: []string{"manifestworks"}, Verbs: []string{"get"},
			}},
		},
		"everywhere": &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "b-token-role"}, Rules: rule("b-agent")},
	} {
		t.Run("no role "+sentence, func(t *testing.T) {
			err := manager.Create(t.Context(), role)
			require.True(t, apierrors.IsForbidden(err), "%v", err)
			require.ErrorContains(t, err, cmp.Or(says[sentence], "hub manager may"))
		})
	}
}
