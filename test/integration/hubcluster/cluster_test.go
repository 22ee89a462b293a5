package hubcluster_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

func TestAnAcceptedClusterGetsItsNamespaceAccessAndLease(t *testing.T) {
	t.Parallel()
	const name = "accepted"
	bootstrap := bootstrapClient(t)
	eventuallyCreate(t, bootstrap, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
	accept(t, name, true)
	expectCondition(t, name, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue, "HubClusterAdminAccepted")

	cluster := getCluster(t, name)
	assert.Contains(t, cluster.Finalizers, names.FinalizerCluster)
	accepted := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted)
	assert.Equal(t, "Accepted by hub cluster admin", accepted.Message)

	var namespace corev1.Namespace
	require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKey{Name: name}, &namespace))
	assert.Equal(t, name, namespace.Labels[names.LabelClusterName])

	var work rbacv1.RoleBinding
	require.NoError(t, plane.Client.Get(t.Context(), binding(name, "work"), &work))
	assert.Contains(t, work.Finalizers, names.FinalizerManifestWork)

	var heartbeat coordinationv1.Lease
	require.NoError(t, plane.Client.Get(t.Context(), leaseKey(name), &heartbeat))
	assert.Equal(t, name, heartbeat.Labels[names.LabelClusterName])
	assert.False(t, heartbeat.Spec.RenewTime.IsZero())
}

func TestAnAgentMayDoWhatTheContractListsAndNothingElse(t *testing.T) {
	t.Parallel()
	const name, other = "rights", "rights-other"
	createCluster(t, name, true)
	createCluster(t, other, true)
	expectCondition(t, name, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue, "HubClusterAdminAccepted")
	expectCondition(t, other, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue, "HubClusterAdminAccepted")
	agent := agentClient(t, name)

	type access struct{ group, resource, namespace, name, verbs string }
	const (
		addons, clusters, works = addonv1alpha1.GroupName, clusterv1.GroupName, workv1.GroupName
		certificates, register  = "certificates.k8s.io", "register.open-cluster-management.io"
	)
	allowed := []access{
		{certificates, "certificatesigningrequests", "", "", "create get list watch"},
		{register, "managedclusters/clientcertificates", "", "", "renew"},
		{clusters, "managedclusters", "", name, "get list update watch"},
		{clusters, "managedclusters/status", "", name, "patch update"},
		{"coordination.k8s.io", "leases", name, "", "get list watch"},
		{"coordination.k8s.io", "leases", name, names.LeaseCluster, "update"},
		{addons, "managedclusteraddons", name, "", "get list watch"},
		{addons, "managedclusteraddons/status", name, "", "patch update"},
		{"events.k8s.io", "events", name, "", "create patch update"},
		{"", "events", name, "", "create patch update"},
		{works, "manifestworks", name, "", "get list watch update patch"},
		{works, "manifestworks/status", name, "", "patch update"},
	}
	forbidden := []access{
		{certificates, "certificatesigningrequests", "", "", "update delete patch"},
		{certificates, "certificatesigningrequests/approval", "", "", "update patch"},
		{clusters, "managedclusters", "", "", "get list watch update create delete"},
		{clusters, "managedclusters", "", other, "get list update watch"},
		{clusters, "managedclusters", "", name, "patch delete"},
		{clusters, "managedclusters/status", "", other, "patch update"},
		{"coordination.k8s.io", "leases", name, "", "create delete patch"},
		{"coordination.k8s.io", "leases", name, "", "update"},
		{"coordination.k8s.io", "leases", name, "another-lease", "update"},
		{"coordination.k8s.io", "leases", other, "", "get list watch update"},
		{"coordination.k8s.io", "leases", "kube-system", "", "get list update"},
		{addons, "managedclusteraddons", name, "", "create update patch delete"},
		{addons, "managedclusteraddons", other, "", "get list watch"},
		{addons, "clustermanagementaddons", "", "", "get list watch"},
		{works, "manifestworks", name, "", "create delete"},
		{works, "manifestworks", other, "", "get list watch update patch"},
		{"", "secrets", name, "", "get list watch create"},
		{"", "configmaps", name, "", "get list watch create"},
		{"", "namespaces", "", name, "get update patch delete"},
		{"rbac.authorization.k8s.io", "rolebindings", name, "", "get create"},
		{"", "serviceaccounts/token", name, "", "create"},
	}
	check := func(list []access, want bool) error {
		var wrong []error
		for _, a := range list {
			for verb := range strings.FieldsSeq(a.verbs) {
				resource, sub, _ := strings.Cut(a.resource, "/")
				review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
					ResourceAttributes: &authorizationv1.ResourceAttributes{
						Group: a.group, Resource: resource, Subresource: sub, Namespace: a.namespace, Name: a.name, Verb: verb,
					},
				}}
				require.NoError(t, agent.Create(t.Context(), review))
				if review.Status.Allowed != want {
					wrong = append(wrong, fmt.Errorf("%s %+v: allowed %t", verb, a, review.Status.Allowed))
				}
			}
		}
		return errors.Join(wrong...)
	}
	suite.Eventually(t, func() error { return check(allowed, true) }) // the API server hears of its roles, too
	require.NoError(t, check(forbidden, false))

	var heartbeat coordinationv1.Lease
	require.NoError(t, agent.Get(t.Context(), leaseKey(name), &heartbeat))
	renewed := metav1.NewMicroTime(time.Now())
	heartbeat.Spec.RenewTime = &renewed
	require.NoError(t, agent.Update(t.Context(), &heartbeat))
}

func TestAClusterThatWasNeverAcceptedGetsNothing(t *testing.T) {
	t.Parallel()
	const name = "never"
	createCluster(t, name, false)
	suite.Consistently(t, time.Second, func() error {
		var role rbacv1.ClusterRole
		err := plane.Client.Get(t.Context(), client.ObjectKey{Name: "open-cluster-management:managedcluster:" + name}, &role)
		if err == nil {
			return errors.New("there is a role")
		}
		return client.IgnoreNotFound(err)
	})
	assert.Empty(t, getCluster(t, name).Status.Conditions)
}

// Shows: registration/access-repaired
func TestAccessThatIsTamperedWithIsRepaired(t *testing.T) {
	t.Parallel()
	const name = "tampered"
	createCluster(t, name, true)
	expectCondition(t, name, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue, "HubClusterAdminAccepted")

	var registration rbacv1.RoleBinding
	require.NoError(t, plane.Client.Get(t.Context(), binding(name, "registration"), &registration))
	require.NoError(t, plane.Client.Delete(t.Context(), &registration))
	var role rbacv1.ClusterRole
	key := client.ObjectKey{Name: "open-cluster-management:managedcluster:" + name}
	require.NoError(t, plane.Client.Get(t.Context(), key, &role))
	want := role.DeepCopy()
	role.Labels, role.Rules = nil, role.Rules[:1]
	require.NoError(t, plane.Client.Update(t.Context(), &role))

	suite.Eventually(t, func() error {
		return errors.Join(
			plane.Client.Get(t.Context(), binding(name, "registration"), &rbacv1.RoleBinding{}),
			plane.Client.Get(t.Context(), key, &role),
			equal(len(want.Rules), len(role.Rules)), equal(name, role.Labels[names.LabelClusterName]),
		)
	})
}

// Shows: registration/denied-keeps-works-access
func TestADeniedClusterKeepsItsWorksUntilNoneIsLeft(t *testing.T) {
	t.Parallel()
	const name = "denied"
	createCluster(t, name, true)
	expectCondition(t, name, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue, "HubClusterAdminAccepted")
	createWork(t, name, "kept", nil)
	accept(t, name, false)
	expectCondition(t, name, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionFalse, "HubClusterAdminDenied")

	gone(t, &rbacv1.RoleBinding{}, binding(name, "registration"))
	suite.Eventually(t, func() error {
		var role rbacv1.ClusterRole
		key := client.ObjectKey{Name: "open-cluster-management:managedcluster:" + name}
		return errors.Join(plane.Client.Get(t.Context(), key, &role), equal(1, len(role.Rules)))
	})
	require.NoError(t, plane.Client.Get(t.Context(),
		client.ObjectKey{Name: "open-cluster-management:managedcluster:" + name}, &rbacv1.ClusterRoleBinding{}))
	var work rbacv1.RoleBinding
	require.NoError(t, plane.Client.Get(t.Context(), binding(name, "work"), &work))
	assert.False(t, work.DeletionTimestamp.IsZero())
	agent := agentClient(t, name)
	require.NoError(t, agent.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "kept"}, &workv1.ManifestWork{}))

	require.NoError(t, plane.Client.Delete(t.Context(), &workv1.ManifestWork{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "kept"},
	}))
	gone(t, &rbacv1.RoleBinding{}, binding(name, "work"))

	accept(t, name, true)
	expectCondition(t, name, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue, "HubClusterAdminAccepted")
	require.NoError(t, plane.Client.Get(t.Context(), binding(name, "work"), &work))
}

// Shows: registration/deletion-order
func TestADeletedClusterGoesAddOnsFirstThenWorksThenAccess(t *testing.T) {
	t.Parallel()
	const name = "leaving"
	createCluster(t, name, true)
	expectCondition(t, name, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue, "HubClusterAdminAccepted")
	hold := []string{"example.com/hold"}
	require.NoError(t, plane.Client.Create(t.Context(), &addonv1alpha1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "slow", Finalizers: hold},
	}))
	createWork(t, name, "of-addon", map[string]string{names.LabelAddonName: "slow"}, hold...)
	createWork(t, name, "foreign", nil, hold...)

	require.NoError(t, plane.Client.Delete(t.Context(), getCluster(t, name)))
	expectCondition(t, name, clusterv1.ManagedClusterConditionDeleting, metav1.ConditionFalse, "ResourceRemaining")
	suite.Eventually(t, func() error {
		message := meta.FindStatusCondition(getCluster(t, name).Status.Conditions,
			clusterv1.ManagedClusterConditionDeleting).Message
		if !strings.Contains(message, "1 ManagedClusterAddOn (slow kept by example.com/hold), "+
			"then 2 ManifestWorks (foreign, of-addon)") {
			return errors.New(message)
		}
		return nil
	})
	var work workv1.ManifestWork
	require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "foreign"}, &work))
	assert.True(t, work.DeletionTimestamp.IsZero(), "works wait for add-ons")

	release(t, &addonv1alpha1.ManagedClusterAddOn{}, client.ObjectKey{Namespace: name, Name: "slow"})
	suite.Eventually(t, func() error {
		err := plane.Client.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "foreign"}, &work)
		return errors.Join(err, equal(false, work.DeletionTimestamp.IsZero()))
	})
	require.NoError(t, plane.Client.Get(t.Context(), binding(name, "work"), &rbacv1.RoleBinding{}),
		"the agent keeps its access while works are left")
	release(t, &workv1.ManifestWork{}, client.ObjectKey{Namespace: name, Name: "foreign"})
	release(t, &workv1.ManifestWork{}, client.ObjectKey{Namespace: name, Name: "of-addon"})
	gone(t, &clusterv1.ManagedCluster{}, client.ObjectKey{Name: name})
	gone(t, &rbacv1.RoleBinding{}, binding(name, "work"))
	gone(t, &rbacv1.ClusterRole{}, client.ObjectKey{Name: "open-cluster-management:managedcluster:" + name})
	gone(t, &rbacv1.ClusterRoleBinding{}, client.ObjectKey{Name: "open-cluster-management:managedcluster:" + name})
	require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKey{Name: name}, &corev1.Namespace{}),
		"the namespace is kept")
}

// Shows: registration/lease-duration-followed
func TestASilentClusterAndItsAddOnsBecomeUnknown(t *testing.T) {
	t.Parallel()
	const name = "silent"
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cluster.Spec.HubAcceptsClient, cluster.Spec.LeaseDurationSeconds = true, 1
	eventuallyCreate(t, plane.Client, cluster)
	expectCondition(t, name, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue, "HubClusterAdminAccepted")
	require.NoError(t, plane.Client.Create(t.Context(), &addonv1alpha1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "early"},
	}))
	created := getLease(t, name).Spec.RenewTime.Time
	expectCondition(t, name, clusterv1.ManagedClusterConditionAvailable, metav1.ConditionUnknown,
		"ManagedClusterLeaseUpdateStopped")
	changed := meta.FindStatusCondition(getCluster(t, name).Status.Conditions,
		clusterv1.ManagedClusterConditionAvailable).LastTransitionTime.Time
	// Five times the duration, in whole seconds; with the default duration it would be five minutes.
	assert.GreaterOrEqual(t, changed.Sub(created), 4*time.Second)
	assert.Less(t, changed.Sub(created), time.Minute)
	expectAddonUnknown(t, name, "early")

	require.NoError(t, plane.Client.Create(t.Context(), &addonv1alpha1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "late"},
	}))
	expectAddonUnknown(t, name, "late")
	suite.Eventually(t, func() error {
		labels := getCluster(t, name).Labels
		return equal("unreachable", labels["feature.open-cluster-management.io/addon-late"])
	})
}

func TestALeaseWithoutLabelOrRenewTimeDoesNoHarm(t *testing.T) {
	t.Parallel()
	const name = "odd-lease"
	require.NoError(t, plane.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{names.LabelOCMCluster: name},
	}}))
	require.NoError(t, plane.Client.Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: names.LeaseCluster},
	}))
	createCluster(t, name, true)
	expectCondition(t, name, clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue, "HubClusterAdminAccepted")
	expectCondition(t, name, clusterv1.ManagedClusterConditionAvailable, metav1.ConditionUnknown,
		"ManagedClusterLeaseUpdateStopped")
	assert.Equal(t, name, getLease(t, name).Labels[names.LabelClusterName])
}

func bootstrapClient(t *testing.T) client.Client {
	t.Helper()
	c := plane.Account(t, names.NamespaceBootstrap, names.ServiceAccountBootstrap)
	return c
}

func agentClient(t *testing.T, cluster string) client.Client {
	t.Helper()
	c := plane.As(t, csr.ClusterUser(cluster, "agent"), csr.ClusterGroup(cluster), csr.GroupManagedClusters)
	return c
}

// eventuallyCreate creates an object as soon as its kind is served.
func eventuallyCreate(t *testing.T, c client.Client, o client.Object) {
	t.Helper()
	suite.Eventually(t, func() error {
		err := c.Create(t.Context(), o)
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

func createCluster(t *testing.T, name string, accepted bool) {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cluster.Spec.HubAcceptsClient = accepted
	eventuallyCreate(t, plane.Client, cluster)
}

func accept(t *testing.T, name string, yes bool) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"hubAcceptsClient":%t}}`, yes)
	require.NoError(t, plane.Client.Patch(t.Context(), getCluster(t, name),
		client.RawPatch("application/merge-patch+json", patch)))
}

func getCluster(t *testing.T, name string) *clusterv1.ManagedCluster {
	t.Helper()
	var cluster clusterv1.ManagedCluster
	require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKey{Name: name}, &cluster))
	return &cluster
}

func getLease(t *testing.T, cluster string) *coordinationv1.Lease {
	t.Helper()
	var l coordinationv1.Lease
	require.NoError(t, plane.Client.Get(t.Context(), leaseKey(cluster), &l))
	return &l
}

func createWork(t *testing.T, namespace, name string, labels map[string]string, finalizers ...string) {
	t.Helper()
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: labels, Finalizers: finalizers,
	}}
	work.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{
		Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}}`),
	}}}
	require.NoError(t, plane.Client.Create(t.Context(), work))
}

func expectCondition(t *testing.T, cluster, kind string, status metav1.ConditionStatus, reason string) {
	t.Helper()
	suite.Eventually(t, func() error {
		have := getCluster(t, cluster).Status.Conditions
		if c := meta.FindStatusCondition(have, kind); c != nil && c.Status == status && c.Reason == reason {
			return nil
		}
		return fmt.Errorf("%s is not %s/%s: %+v", kind, status, reason, have)
	})
}

func expectAddonUnknown(t *testing.T, cluster, addon string) {
	t.Helper()
	suite.Eventually(t, func() error {
		var have addonv1alpha1.ManagedClusterAddOn
		err := plane.Client.Get(t.Context(), client.ObjectKey{Namespace: cluster, Name: addon}, &have)
		c := meta.FindStatusCondition(have.Status.Conditions, "Available")
		if err == nil && (c == nil || c.Status != metav1.ConditionUnknown || c.Reason != "ManagedClusterLeaseUpdateStopped" ||
			c.Message != "Registration agent stopped updating its lease.") {
			return fmt.Errorf("%+v", have.Status.Conditions)
		}
		return err
	})
}

// release takes the finalizers off an object.
func release(t *testing.T, o client.Object, key client.ObjectKey) {
	t.Helper()
	require.NoError(t, plane.Client.Get(t.Context(), key, o))
	require.NoError(t, plane.Client.Patch(t.Context(), o,
		client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))
}

func gone(t *testing.T, o client.Object, key client.ObjectKey) {
	t.Helper()
	suite.Eventually(t, func() error {
		err := plane.Client.Get(t.Context(), key, o)
		if err == nil {
			return fmt.Errorf("%T %s is still there", o, key)
		}
		return client.IgnoreNotFound(err)
	})
}

func binding(cluster, kind string) client.ObjectKey {
	return client.ObjectKey{Namespace: cluster, Name: "open-cluster-management:managedcluster:" + cluster + ":" + kind}
}

func leaseKey(cluster string) client.ObjectKey {
	return client.ObjectKey{Namespace: cluster, Name: names.LeaseCluster}
}

func equal[T comparable](want, have T) error {
	if want != have {
		return fmt.Errorf("want %v, have %v", want, have)
	}
	return nil
}
