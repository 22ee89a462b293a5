package admission_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/hub/policy"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/suite"
)

// checker looks at the policies as a ServiceAccount of the namespace of the hub manager, once.
func checker(t *testing.T, name string) *policy.Checker {
	t.Helper()
	return &policy.Checker{
		Client: plane.Account(t, names.NamespaceHub, name),
		Policies: func(namespace, name string) [][]byte {
			return manifests.PoliciesFor(namespace, name, names.ServiceAccountAddons)
		},
	}
}

// restored has the shipped policies in force again at the end of a test.
func restored(t *testing.T) {
	t.Helper()
	again := checker(t, names.ServiceAccountManager)
	again.Timeout = suite.Timeout
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		// To apply a binding does not take away what others put into it.
		require.NoError(t, client.IgnoreNotFound(plane.Client.Delete(ctx,
			&admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: clusters}})))
		require.NoError(t, plane.Apply(ctx, manifests.Policies()...))
		plane.AwaitPolicies(t)
		require.NoError(t, again.Wait(ctrl.LoggerInto(ctx, logr.Discard())))
	})
}

// editBinding changes the binding of the policy of clusters.
func editBinding(t *testing.T, edit func(*admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec)) {
	t.Helper()
	var binding admissionregistrationv1.ValidatingAdmissionPolicyBinding
	require.NoError(t, plane.Client.Get(t.Context(), types.NamespacedName{Name: clusters}, &binding))
	edit(&binding.Spec)
	require.NoError(t, plane.Client.Update(t.Context(), &binding))
}

func TestTheHubManagerSeesWhichPolicyIsNotInForce(t *testing.T) {
	ctx := ctrl.LoggerInto(t.Context(), logr.Discard())
	shipped := checker(t, names.ServiceAccountManager)
	shipped.Timeout = suite.Timeout
	require.NoError(t, shipped.Wait(ctx), "everything is in force")

	for sentence, tc := range map[string]struct {
		spoil func(*testing.T)
		says  string
	}{
		"a policy is missing": {func(t *testing.T) {
			t.Helper()
			require.NoError(t, plane.Client.Delete(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicy{
				ObjectMeta: metav1.ObjectMeta{Name: clusters},
			}))
		}, "ValidatingAdmissionPolicy " + clusters + " is missing"},
		"a binding is missing": {func(t *testing.T) {
			t.Helper()
			require.NoError(t, plane.Client.Delete(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
				ObjectMeta: metav1.ObjectMeta{Name: clusters},
			}))
		}, "ValidatingAdmissionPolicyBinding " + clusters + " is missing"},
		"policies are for another account": {func(t *testing.T) {
			t.Helper()
			other := manifests.PoliciesFor(names.NamespaceHub, "other", names.ServiceAccountAddons)
			require.NoError(t, plane.Apply(t.Context(), other...))
		}, "hub-manager-tokens.spokelet.io was written for system:serviceaccount:open-cluster-management-hub:other; " +
			"the hub manager needs it for system:serviceaccount:open-cluster-management-hub:spokelet-hub"},
		"a binding only audits": {func(t *testing.T) {
			t.Helper()
			editBinding(t, func(s *admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec) {
				s.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Audit}
			})
		}, "ValidatingAdmissionPolicyBinding " + clusters + " does not deny"},
		"a binding leaves objects out": {func(t *testing.T) {
			t.Helper()
			editBinding(t, func(s *admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec) {
				s.MatchResources = &admissionregistrationv1.MatchResources{
					ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"guard": "me"}},
				}
			})
		}, "is narrowed by matchResources"},
		"a policy fails open": {func(t *testing.T) {
			t.Helper()
			var p admissionregistrationv1.ValidatingAdmissionPolicy
			require.NoError(t, plane.Client.Get(t.Context(), types.NamespacedName{Name: clusters}, &p))
			ignore := admissionregistrationv1.Ignore
			p.Spec.FailurePolicy = &ignore
			require.NoError(t, plane.Client.Update(t.Context(), &p))
		}, "differs from the one that this version ships, in spec.failurePolicy"},
	} {
		t.Run(sentence, func(t *testing.T) {
			restored(t)
			tc.spoil(t)
			err := checker(t, names.ServiceAccountManager).Wait(ctx)
			require.ErrorContains(t, err, tc.says)
			require.ErrorContains(t, err, "spokelet-hub --print-policies --namespace=open-cluster-management-hub "+
				"--service-account=spokelet-hub | kubectl apply -f -")
		})
	}
}

// TestTheHubManagerWaitsUntilThePoliciesAreInForce starts it before a user applies a policy.
func TestTheHubManagerWaitsUntilThePoliciesAreInForce(t *testing.T) {
	restored(t)
	ctx := ctrl.LoggerInto(t.Context(), logr.Discard())
	require.NoError(t, plane.Client.Delete(ctx, &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: clusters},
	}))
	waiting := checker(t, names.ServiceAccountManager)
	waiting.Timeout = suite.Timeout
	ended := make(chan error, 1)
	go func() { ended <- waiting.Wait(ctx) }()
	require.NoError(t, plane.Apply(ctx, manifests.Policies()...))
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(2 * suite.Timeout):
		require.Fail(t, "it does not end")
	}
}

// TestAdmissionThatAsksNoPolicyIsNoticed plays an account whose objects all look right, which no policy refuses.
func TestAdmissionThatAsksNoPolicyIsNoticed(t *testing.T) {
	t.Parallel()
	const name = "unbounded"
	require.NoError(t, plane.Client.Create(t.Context(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.NamespaceHub, Name: name},
	}))
	require.NoError(t, plane.Client.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "open-cluster-management:spokelet-hub",
		},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: names.NamespaceHub, Name: name}},
	}))
	unbounded := checker(t, name)
	unbounded.Policies = func(string, string) [][]byte { return nil }
	suite.Eventually(t, func() error {
		err := unbounded.Wait(ctrl.LoggerInto(t.Context(), logr.Discard()))
		require.ErrorContains(t, err, "hub-manager-tokens.spokelet.io")
		if strings.Contains(err.Error(), "cannot create resource") {
			return err // The authorizer of the API server learns of new bindings by a watch.
		}
		require.ErrorContains(t, err, "it allowed the dry run of a token request")
		return nil
	})
}

// TestAHubManagerThatIsNoServiceAccountSaysSo runs it as an administrator does who tries it out.
func TestAHubManagerThatIsNoServiceAccountSaysSo(t *testing.T) {
	t.Parallel()
	config := config
	config.Kubeconfig = plane.WriteKubeconfig(t, plane.Admin(), t.TempDir(), "admin")
	err := hub.Run(ctrl.LoggerInto(t.Context(), logr.Discard()), config)
	require.ErrorContains(t, err, "which is no ServiceAccount")
	require.ErrorContains(t, err, "--require-policies=false")
}

func TestWhatWasGrantedTooMuchForAddOnsIsSaid(t *testing.T) {
	user := "system:serviceaccount:" + names.NamespaceHub + ":" + names.ServiceAccountAddons
	manager := plane.Account(t, names.NamespaceHub, names.ServiceAccountManager)
	found, err := policy.Excess(t.Context(), manager, user)
	require.NoError(t, err)
	assert.Empty(t, found, "as it is shipped")

	// As OCM's installation has it.
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "test:of-ocm"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, Verbs: []string{"create"}},
		{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"signers"}, Verbs: []string{"approve", "sign"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "test:of-ocm"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "test:of-ocm"},
		Subjects: []rbacv1.Subject{
			{Kind: "ServiceAccount", Namespace: names.NamespaceHub, Name: names.ServiceAccountAddons},
		},
	}
	for _, object := range []client.Object{role, binding} {
		require.NoError(t, plane.Client.Create(t.Context(), object))
		t.Cleanup(func() { assert.NoError(t, plane.Client.Delete(context.WithoutCancel(t.Context()), object)) })
	}
	suite.Eventually(t, func() error {
		found, err := policy.Excess(t.Context(), manager, user)
		if err == nil && !slices.Equal(found, []string{"create serviceaccounts/token", "approve signers"}) {
			err = fmt.Errorf("it says %q", found)
		}
		return err
	})
}
