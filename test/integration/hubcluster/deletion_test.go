package hubcluster_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// Shows: registration/deletion-order
func TestADeletedClusterGoesByCleanUpPriority(t *testing.T) {
	t.Parallel()
	const name = "priority"
	createQuick(t, name, 60)
	hold := []string{"example.com/hold"}
	for addon, priority := range map[string]string{"addon1": "", "addon2": "10"} {
		createAddOnIn(t, name, addon, priority, hold...)
	}
	for work, priority := range map[string]string{"work1": "0", "work2": "100", "work3": "10"} {
		createWork(t, name, work, nil, hold...)
		prioritize(t, &workv1.ManifestWork{}, name, work, priority)
	}
	require.NoError(t, plane.Client.Delete(t.Context(), getCluster(t, name)))
	going := []client.Object{
		&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "addon1"}},
		&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "addon2"}},
		&workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "work1"}},
		&workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "work3"}},
		&workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "work2"}},
	}
	for i, next := range going {
		suite.Eventually(t, func() error {
			err := plane.Client.Get(t.Context(), client.ObjectKeyFromObject(next), next)
			return errors.Join(err, equal(false, next.GetDeletionTimestamp().IsZero()))
		})
		expectCondition(t, name, clusterv1.ManagedClusterConditionDeleting, metav1.ConditionFalse, "ResourceRemaining")
		for _, later := range going[i+1:] {
			require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKeyFromObject(later), later))
			assert.True(t, later.GetDeletionTimestamp().IsZero(), "%s goes after %s", later.GetName(), next.GetName())
		}
		release(t, next, client.ObjectKeyFromObject(next))
	}
	gone(t, &clusterv1.ManagedCluster{}, client.ObjectKey{Name: name})
	require.NoError(t, traces(t, name))
}

// Shows: registration/vanished-cluster
func TestAClusterThatVanishedIsCleanedUpToo(t *testing.T) {
	t.Parallel()
	const name, other = "vanished", "vanished-other"
	createQuick(t, name, 60)
	createQuick(t, other, 60)
	hold := []string{"example.com/hold"}
	createAddOnIn(t, name, "addon1", "", hold...)
	createAddOnIn(t, other, "addon1", "")
	createWork(t, name, "work1", nil, hold...)
	createWork(t, other, "work1", nil)
	request(t, agentClient(t, name), name, nil)

	vanish(t, name)
	addon, work := &addonv1alpha1.ManagedClusterAddOn{}, &workv1.ManifestWork{}
	suite.Eventually(t, func() error {
		err := plane.Client.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "addon1"}, addon)
		return errors.Join(err, equal(false, addon.DeletionTimestamp.IsZero()))
	})
	gone(t, &rbacv1.ClusterRoleBinding{}, client.ObjectKey{Name: "open-cluster-management:managedcluster:" + name})
	require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "work1"}, work))
	assert.True(t, work.DeletionTimestamp.IsZero(), "works wait for add-ons")
	release(t, addon, client.ObjectKey{Namespace: name, Name: "addon1"})
	suite.Eventually(t, func() error {
		err := plane.Client.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "work1"}, work)
		return errors.Join(err, equal(false, work.DeletionTimestamp.IsZero()))
	})
	agent := agentClient(t, name)
	require.NoError(t, agent.Get(t.Context(), client.ObjectKeyFromObject(work), work), "the agent may clean up")
	release(t, work, client.ObjectKey{Namespace: name, Name: "work1"})
	suite.Eventually(t, func() error { return traces(t, name) })

	require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKey{Namespace: other, Name: "work1"}, work))
	require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKey{Namespace: other, Name: "addon1"}, addon))
	assert.True(t, work.DeletionTimestamp.IsZero())
	assert.True(t, addon.DeletionTimestamp.IsZero())
}

func TestANamespaceThatIsPreparedForAClusterIsLeftAlone(t *testing.T) {
	t.Parallel()
	const name = "prepared"
	require.NoError(t, plane.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	createWork(t, name, "early", nil)
	createAddOnIn(t, name, "early", "")
	suite.Consistently(t, time.Second, func() error {
		return errors.Join(
			plane.Client.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "early"}, &workv1.ManifestWork{}),
			plane.Client.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "early"}, &addonv1alpha1.ManagedClusterAddOn{}),
		)
	})
	createCluster(t, name, false)
	suite.Eventually(t, func() error { return equal(1, len(getCluster(t, name).Finalizers)) })
	asked := request(t, bootstrapClient(t), name, nil)
	require.NoError(t, plane.Client.Delete(t.Context(), getCluster(t, name)))
	gone(t, &clusterv1.ManagedCluster{}, client.ObjectKey{Name: name})
	gone(t, &certificatesv1.CertificateSigningRequest{}, client.ObjectKeyFromObject(asked))
	require.NoError(t, traces(t, name), "a cluster that nobody accepted takes with it what it had, too")
}

func TestTheCertificateRequestsOfAClusterGoWithItAndNoOther(t *testing.T) {
	t.Parallel()
	const name, other = "asking", "asking-other"
	createQuick(t, name, 60)
	createQuick(t, other, 60)
	ours, theirs := agentClient(t, name), agentClient(t, other)
	forged := func(r *certificatesv1.CertificateSigningRequest) { r.Labels[names.LabelClusterName] = name }
	own := []*certificatesv1.CertificateSigningRequest{
		request(t, bootstrapClient(t), name, nil), request(t, ours, name, nil),
		request(t, ours, name, func(r *certificatesv1.CertificateSigningRequest) { r.Labels[names.LabelAddonName] = "none" }),
		request(t, bootstrapClient(t), other, forged),
	}
	kept := []*certificatesv1.CertificateSigningRequest{
		request(t, theirs, other, nil), request(t, bootstrapClient(t), other, nil),
		relabelled(t, request(t, theirs, other, nil), name),
	}
	issued := request(t, bootstrapClient(t), name, nil)
	approveByHand(t, issued)
	suite.Eventually(t, func() error {
		require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKeyFromObject(issued), issued))
		return equal(true, len(issued.Status.Certificate) > 0)
	})

	require.NoError(t, plane.Client.Delete(t.Context(), getCluster(t, name)))
	gone(t, &clusterv1.ManagedCluster{}, client.ObjectKey{Name: name})
	for _, r := range append(own, issued) {
		gone(t, &certificatesv1.CertificateSigningRequest{}, client.ObjectKeyFromObject(r))
	}
	for _, r := range kept {
		require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKeyFromObject(r), r))
	}
}

// vanish takes a cluster away as a user does who is impatient with its finalizers.
func vanish(t *testing.T, name string) {
	t.Helper()
	cluster := getCluster(t, name)
	require.NoError(t, plane.Client.Delete(t.Context(), cluster))
	require.NoError(t, client.IgnoreNotFound(plane.Client.Patch(t.Context(), cluster,
		client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))))
	gone(t, &clusterv1.ManagedCluster{}, client.ObjectKey{Name: name})
}

// traces says what the hub still holds of a cluster that is gone; nil when that is nothing but the namespace.
func traces(t *testing.T, name string) error {
	t.Helper()
	var left []error
	for key, o := range map[client.ObjectKey]client.Object{
		{Name: "open-cluster-management:managedcluster:" + name}: &rbacv1.ClusterRole{},
		binding(name, "work"):         &rbacv1.RoleBinding{},
		binding(name, "registration"): &rbacv1.RoleBinding{},
		leaseKey(name):                &coordinationv1.Lease{},
		{Name: name}:                  &clusterv1.ManagedCluster{},
	} {
		left = append(left, absent(t, o, key))
	}
	left = append(left, absent(t, &rbacv1.ClusterRoleBinding{},
		client.ObjectKey{Name: "open-cluster-management:managedcluster:" + name}))
	var works workv1.ManifestWorkList
	var addons addonv1alpha1.ManagedClusterAddOnList
	var requests certificatesv1.CertificateSigningRequestList
	require.NoError(t, plane.Client.List(t.Context(), &works, client.InNamespace(name)))
	require.NoError(t, plane.Client.List(t.Context(), &addons, client.InNamespace(name)))
	require.NoError(t, plane.Client.List(t.Context(), &requests, client.MatchingLabels{names.LabelClusterName: name}))
	return errors.Join(append(left, equal(0, len(works.Items)), equal(0, len(addons.Items)),
		equal(0, len(requests.Items)))...)
}

func absent(t *testing.T, o client.Object, key client.ObjectKey) error {
	t.Helper()
	if err := plane.Client.Get(t.Context(), key, o); err != nil {
		return client.IgnoreNotFound(err)
	}
	return fmt.Errorf("there is %T %s", o, key)
}

func createAddOnIn(t *testing.T, cluster, name, priority string, finalizers ...string) {
	t.Helper()
	addon := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Namespace: cluster, Name: name, Finalizers: finalizers,
	}}
	if priority != "" {
		addon.Annotations = map[string]string{clusterv1.CleanupPriorityAnnotationKey: priority}
	}
	require.NoError(t, plane.Client.Create(t.Context(), addon))
}

func prioritize(t *testing.T, o client.Object, namespace, name, priority string) {
	t.Helper()
	require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o))
	patch(t, o, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, clusterv1.CleanupPriorityAnnotationKey, priority))
}
