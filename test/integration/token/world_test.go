package token_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/token"
	"github.com/spokelet/spokelet/test/suite"
)

// registrations as an agent and a hub manager of any add-on leave them in the status.
func kubeClient(driver string) addonv1beta1.RegistrationConfig {
	return addonv1beta1.RegistrationConfig{
		Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{Driver: driver},
	}
}

func customSigner(name string) addonv1beta1.RegistrationConfig {
	return addonv1beta1.RegistrationConfig{
		Type: addonv1beta1.CustomSigner, CustomSigner: &addonv1beta1.CustomSignerConfig{SignerName: name},
	}
}

// accepted creates a cluster that the hub accepts, and returns when its namespace is there.
func accepted(t *testing.T, name string) {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cluster.Spec.HubAcceptsClient = true
	require.NoError(t, plane.Client.Create(t.Context(), cluster))
	suite.Eventually(t, func() error {
		return plane.Client.Get(t.Context(), types.NamespacedName{Name: name}, &corev1.Namespace{})
	})
}

// accept accepts or denies a cluster.
func accept(t *testing.T, name string, yes bool) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"hubAcceptsClient":%t}}`, yes)
	require.NoError(t, plane.Client.Patch(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}},
		client.RawPatch(types.MergePatchType, []byte(patch))))
}

// addOn is an add-on on a cluster.
type addOn struct{ cluster, name string }

// install creates a ManagedClusterAddOn that nobody else manages, with registrations in its status.
func install(t *testing.T, cluster, name string, registrations ...addonv1beta1.RegistrationConfig) addOn {
	t.Helper()
	a := addOn{cluster, name}
	require.NoError(t, plane.AddOns.CreateAddOn(t.Context(), &addonv1beta1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name},
	}))
	a.register(t, registrations...)
	return a
}

func (a addOn) key() types.NamespacedName {
	return types.NamespacedName{Namespace: a.cluster, Name: a.name}
}

// read returns the add-on.
func (a addOn) read(t *testing.T) *addonv1beta1.ManagedClusterAddOn {
	t.Helper()
	object, err := plane.AddOns.GetAddOn(t.Context(), a.key())
	require.NoError(t, err)
	return object
}

// register writes the registrations into the status.
func (a addOn) register(t *testing.T, registrations ...addonv1beta1.RegistrationConfig) {
	t.Helper()
	a.registerAs(t, plane.AddOns, registrations...)
}

// registerAs is register with the rights of another client.
func (a addOn) registerAs(t *testing.T, as addonapi.Client, registrations ...addonv1beta1.RegistrationConfig) {
	t.Helper()
	suite.Eventually(t, func() error {
		before, err := as.GetAddOn(t.Context(), a.key())
		if err != nil {
			return err
		}
		after := before.DeepCopy()
		after.Status.Registrations = registrations
		_, err = as.PatchAddOnStatus(t.Context(), before, after)
		return err
	})
}

// account reads the ServiceAccount; nil when there is none.
func (a addOn) account(ctx context.Context) *corev1.ServiceAccount {
	var account corev1.ServiceAccount
	key := types.NamespacedName{Namespace: a.cluster, Name: token.ServiceAccountName(a.name)}
	if plane.Client.Get(ctx, key, &account) != nil {
		return nil
	}
	return &account
}

// objects returns empty objects with the names of the infrastructure.
func (a addOn) objects() []client.Object {
	role := metav1.ObjectMeta{Namespace: a.cluster, Name: token.RoleName(a.name)}
	return []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
			Namespace: a.cluster, Name: token.ServiceAccountName(a.name),
		}},
		&rbacv1.Role{ObjectMeta: role}, &rbacv1.RoleBinding{ObjectMeta: role},
	}
}

// ready waits until the condition names the ServiceAccount that is there, and returns its UID.
func (a addOn) ready(t *testing.T) types.UID {
	t.Helper()
	var uid types.UID
	suite.Eventually(t, func() error {
		account := a.account(t.Context())
		if account == nil {
			return errors.New("there is no ServiceAccount")
		}
		conditions := a.read(t).Status.Conditions
		var ready bool
		uid, ready = token.ReadReady(conditions, a.cluster, a.name)
		if !ready || uid != account.UID {
			return fmt.Errorf("ServiceAccount %s, but %v", account.UID,
				meta.FindStatusCondition(conditions, token.ConditionInfrastructure))
		}
		return nil
	})
	return uid
}

// gone waits until nothing of the infrastructure is left.
func (a addOn) gone(t *testing.T) {
	t.Helper()
	suite.Eventually(t, func() error { return a.absent(t.Context()) })
}

// absent says what of the infrastructure is there.
func (a addOn) absent(ctx context.Context) error {
	for _, object := range a.objects() {
		err := plane.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("%T %s is there: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// refused waits until the condition says that there is no infrastructure, and why.
func (a addOn) refused(t *testing.T, says string) {
	t.Helper()
	suite.Eventually(t, func() error {
		c := meta.FindStatusCondition(a.read(t).Status.Conditions, token.ConditionInfrastructure)
		if c == nil || c.Status != metav1.ConditionFalse {
			return fmt.Errorf("the condition is %v", c)
		}
		require.Equal(t, token.ReasonApplyFailed, c.Reason)
		require.Contains(t, c.Message, "Failed to apply token infrastructure: ")
		require.Contains(t, c.Message, says)
		return nil
	})
}

// unconditional waits until the condition is gone.
func (a addOn) unconditional(t *testing.T) {
	t.Helper()
	suite.Eventually(t, func() error {
		if c := meta.FindStatusCondition(a.read(t).Status.Conditions, token.ConditionInfrastructure); c != nil {
			return fmt.Errorf("the condition is %s: %s", c.Status, c.Message)
		}
		return nil
	})
}

// agentOf returns a client of the agent of a cluster, and its add-ons.
func agentOf(t *testing.T, cluster string) (client.Client, addonapi.Client) {
	t.Helper()
	c := plane.As(t, csr.ClusterUser(cluster, "agent"), csr.ClusterGroup(cluster), csr.GroupManagedClusters)
	return c, addonapi.Client{Client: c}
}
