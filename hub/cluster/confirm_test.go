package cluster

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/hub/cluster/meter"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/lease"
)

// A cluster was denied and deleted; its denial is recorded on its namespace. Its agent creates it again, with a request
// of a trusted user. A hub manager starts whose cache of namespaces does not have the record yet.
//
// Shows: registration/accepted-when-confirmed
func TestADeniedClusterIsNotAcceptedByACacheThatLacksTheRecord(t *testing.T) {
	cluster := newCluster(func(c *clusterv1.ManagedCluster) { c.UID = "again" })
	request := requestFor(t, "c1", trusted)
	for sentence, cached := range map[string][]client.Object{
		"the cache has the record":              {recorded(ownNamespace())},
		"the namespace is as it was before":     {ownNamespace()},
		"the namespace is not in the cache yet": nil,
	} {
		t.Run(sentence, func(t *testing.T) {
			cache := hubWith(t, slices.Concat([]client.Object{cluster, request}, cached)...)
			pass(t, cache, hubWith(t, cluster, request, recorded(ownNamespace())))
			assert.False(t, read(t, cache, cluster).Spec.HubAcceptsClient, "it is accepted without a person")
		})
	}
}

// A person denied the request of a new cluster; the cache has the request as it was before.
//
// Shows: registration/accepted-when-confirmed
func TestAClusterWhoseRequestWasDeniedIsNotAcceptedByACacheThatIsBehind(t *testing.T) {
	cluster, request := newCluster(nil), requestFor(t, "c1", trusted)
	denial := request.DeepCopy()
	ended(certificatesv1.CertificateDenied)(denial)
	for sentence, tc := range map[string]struct {
		cached *certificatesv1.CertificateSigningRequest
		live   []client.Object
		want   bool
	}{
		"the cache has the denial":   {denial, []client.Object{denial}, false},
		"the cache does not":         {request, []client.Object{denial}, false},
		"the request is gone by now": {request, nil, false},
		"nobody denied it":           {request, []client.Object{request}, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			cache := hubWith(t, cluster, tc.cached)
			pass(t, cache, hubWith(t, append(tc.live, cluster)...))
			assert.Equal(t, tc.want, read(t, cache, cluster).Spec.HubAcceptsClient)
		})
	}
}

// A person accepted the denied cluster, which removed the record, and deleted it later. It is created again. A cache
// that still has the record denies a cluster that nobody denies.
//
// Shows: registration/accepted-when-confirmed
func TestAClusterIsNotDeniedByARecordThatOnlyTheCacheHas(t *testing.T) {
	cluster, request := newCluster(nil), requestFor(t, "c1", trusted)
	cache := hubWith(t, cluster, request, recorded(ownNamespace()))
	pass(t, cache, hubWith(t, cluster, request, ownNamespace()))
	assert.Empty(t, read(t, cache, cluster).Annotations[names.AnnotationAcceptedOn], "it waits for a person for ever")
}

// A user approved the certificate request of a cluster, or prepared its namespace; the cache has neither yet.
//
// Shows: security/unaccepted-clusters-end
func TestAClusterThatAPersonTouchedIsNotRemovedByACacheThatIsBehind(t *testing.T) {
	cluster := newCluster(func(c *clusterv1.ManagedCluster) {
		c.CreationTimestamp = metav1.NewTime(noon().Add(-48 * time.Hour))
	})
	approved := requestFor(t, "c1", "somebody", ended(certificatesv1.CertificateApproved))
	for sentence, tc := range map[string]struct {
		cached, live []client.Object
		removed      bool
	}{
		"nobody touched it":              {nil, nil, true},
		"the cache has the request":      {[]client.Object{approved}, []client.Object{approved}, false},
		"the cache has the namespace":    {[]client.Object{ownNamespace()}, []client.Object{ownNamespace()}, false},
		"the cache lacks the request":    {nil, []client.Object{approved}, false},
		"the cache lacks one that waits": {nil, []client.Object{requestFor(t, "c1", "somebody")}, false},
		"the cache lacks the namespace":  {nil, []client.Object{ownNamespace()}, false},
		"there is a request that was denied": {nil, []client.Object{
			requestFor(t, "c1", "somebody", ended(certificatesv1.CertificateDenied)),
		}, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			cache := hubWith(t, append(tc.cached, cluster)...)
			r := reconcilerOf(cache, hubWith(t, append(tc.live, cluster)...))
			r.UnacceptedLife = 24 * time.Hour
			for range 3 { // Finalizers and labels come first.
				_, err := r.Reconcile(t.Context(), requestOf("c1"))
				require.NoError(t, err)
			}
			assert.Equal(t, tc.removed, read(t, cache, cluster).DeletionTimestamp != nil)
		})
	}
}

// A hub manager starts with an API server that has no cluster yet.
//
// Shows: registration/shared-roles
func TestTheSharedRolesAreNotDeletedByACacheThatIsBehind(t *testing.T) {
	var roles []client.Object
	for _, role := range sharedRoles() {
		roles = append(roles, role)
	}
	for sentence, tc := range map[string]struct {
		live []client.Object
		stay bool
	}{
		"there is a cluster": {[]client.Object{newCluster(nil)}, true},
		"there is none":      {nil, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			cache := hubWith(t, roles...)
			_, err := reconcilerOf(cache, hubWith(t, tc.live...)).Reconcile(t.Context(), ctrl.Request{})
			require.NoError(t, err)
			for _, role := range roles {
				found, err := reconcile.Get(t.Context(), cache, client.ObjectKeyFromObject(role), &rbacv1.ClusterRole{})
				require.NoError(t, err)
				assert.Equal(t, tc.stay, found != nil, "agents of all clusters have %s", role.GetName())
			}
		})
	}
}

// A cluster is denied, and its namespace says so. Another hub manager starts, whose cache has the cluster and its
// access as they were before.
//
// Shows: registration/denial-kept
func TestTheRecordOfADenialIsNotForgottenByACacheThatIsBehind(t *testing.T) {
	cluster, hub := acceptedOn(t)
	var before []client.Object
	have := renderGrants("c1", true)
	for _, o := range []client.Object{
		cluster, have.role, have.binding, have.registration, have.work,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: roleRegistration}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: roleWork}},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: lease.ClusterLease}},
	} {
		before = append(before, read(t, hub, o))
	}
	earlier := hubWith(t, before...)
	deny(t, hub, cluster)
	require.NotEmpty(t, read(t, hub, ownNamespace()).Annotations[names.AnnotationDeniedOn])

	cache := interceptor.NewClient(hub, interceptor.Funcs{
		Get: func(
			ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption,
		) error {
			if _, namespace := o.(*metav1.PartialObjectMetadata); namespace {
				return c.Get(ctx, key, o, opts...)
			}
			return earlier.Get(ctx, key, o, opts...)
		},
	})
	pass(t, cache, hub)
	assert.NotEmpty(t, read(t, hub, ownNamespace()).Annotations[names.AnnotationDeniedOn], "the record is gone")
}

// A cluster was denied and deleted at once, before the hub manager could record the denial. The cache does not have its
// namespace yet, or has it with the record of an earlier denial that was taken back.
//
// Shows: registration/denial-kept
func TestADeniedClusterGoesOnlyWhenItsDenialIsRecorded(t *testing.T) {
	cluster := newCluster(func(c *clusterv1.ManagedCluster) {
		c.Annotations = map[string]string{names.AnnotationAcceptedOn: "2026-03-01T11:00:00Z"}
		c.Finalizers, c.DeletionTimestamp = []string{names.FinalizerCluster}, deletedAt()
		c.Status.Conditions = []metav1.Condition{
			condition(clusterv1.ManagedClusterConditionDeleting, metav1.ConditionTrue, "NoResource", noon()),
		}
	})
	for sentence, tc := range map[string]struct {
		cached, live []client.Object
		gone         bool
	}{
		"the cache lacks the namespace": {nil, []client.Object{ownNamespace()}, false},
		"the cache has an earlier record": {
			[]client.Object{recorded(ownNamespace())}, []client.Object{ownNamespace()}, false,
		},
		"it is recorded": {
			[]client.Object{recorded(ownNamespace())}, []client.Object{recorded(ownNamespace())}, true,
		},
		"there is no namespace": {nil, nil, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			cache := hubWith(t, append(tc.cached, cluster)...)
			pass(t, cache, hubWith(t, append(tc.live, cluster)...))
			found, err := reconcile.Get(t.Context(), cache, client.ObjectKeyFromObject(cluster), &clusterv1.ManagedCluster{})
			require.NoError(t, err)
			assert.Equal(t, tc.gone, found == nil)
		})
	}
}

// hubWith is an API server, or a cache, with objects.
func hubWith(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, errors.Join(clusterv1.Install(scheme), corev1.AddToScheme(scheme), rbacv1.AddToScheme(scheme),
		addonv1alpha1.Install(scheme), workv1.Install(scheme), coordinationv1.AddToScheme(scheme),
		certificatesv1.AddToScheme(scheme)))
	b := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&clusterv1.ManagedCluster{}).
		WithIndex(&certificatesv1.CertificateSigningRequest{}, indexRequests, func(o client.Object) []string {
			return []string{o.GetLabels()[names.LabelClusterName]}
		})
	for _, o := range objects {
		copied, _ := o.DeepCopyObject().(client.Object)
		b = b.WithObjects(copied)
	}
	return b.Build()
}

// reconcilerOf is a reconciler that trusts the user trusted.
func reconcilerOf(cache client.Client, live client.Reader) *Reconciler {
	clock := clocktesting.NewFakePassiveClock(noon())
	return &Reconciler{
		Client: cache, Live: live, AddOns: addonapi.Client{Client: cache}, ForeignWorks: nothing{},
		Meter: meter.New(clock), Clock: clock, Trust: approve.Trust{Users: []string{trusted}},
	}
}

// pass reconciles cluster c1 once. A cache that is behind is no error.
func pass(t *testing.T, cache client.Client, live client.Reader) {
	t.Helper()
	_, err := reconcilerOf(cache, live).Reconcile(t.Context(), requestOf("c1"))
	require.NoError(t, err)
}

func requestOf(name string) ctrl.Request { return reconcile.Request("", name)[0] }

// newCluster is cluster c1 as its agent created it a minute ago, after a change.
func newCluster(change func(*clusterv1.ManagedCluster)) *clusterv1.ManagedCluster {
	c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
		Name: "c1", UID: "u", CreationTimestamp: metav1.NewTime(noon().Add(-time.Minute)),
	}}
	if change != nil {
		change(c)
	}
	return c
}

// acceptedOn is a hub with the accepted cluster c1, which has all that it gets.
func acceptedOn(t *testing.T, more ...client.Object) (*clusterv1.ManagedCluster, client.WithWatch) {
	t.Helper()
	cluster := newCluster(func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = true })
	hub := hubWith(t, append(more, cluster, ownNamespace())...)
	for range 3 {
		pass(t, hub, hub)
	}
	return cluster, hub
}

// deny denies a cluster, which the hub manager sees.
func deny(t *testing.T, hub client.WithWatch, cluster *clusterv1.ManagedCluster) {
	t.Helper()
	denied := read(t, hub, cluster)
	denied.Spec.HubAcceptsClient = false
	require.NoError(t, hub.Update(t.Context(), denied))
	for range 3 {
		pass(t, hub, hub)
	}
}

// ownNamespace is the namespace of cluster c1.
func ownNamespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "c1", Labels: map[string]string{names.LabelClusterName: "c1"},
	}}
}

// recorded is a namespace with the record of a denial.
func recorded(namespace *corev1.Namespace) *corev1.Namespace {
	namespace.Annotations = map[string]string{names.AnnotationDeniedOn: "2026-03-01T11:00:00Z"}
	return namespace
}

// read reads an object again.
func read[T client.Object](t *testing.T, from client.Reader, o T) T {
	t.Helper()
	into, _ := o.DeepCopyObject().(T)
	require.NoError(t, from.Get(t.Context(), client.ObjectKeyFromObject(o), into))
	return into
}
