package hubcluster_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// action holds what may happen to a cluster. Accepting or denying one that does not exist creates it so.
type action string

const (
	toAccept action = "accept"
	toDeny   action = "deny"
	toDelete action = "delete"
	toVanish action = "vanish"
)

// walker is a cluster to which things happen, and what the hub must hold of it by now.
type walker struct {
	name string
	path []action
	// busy clusters get an add-on and a ManifestWork as soon as they are accepted.
	busy bool

	exists, accepted, wasAccepted bool
	// full says that the add-on and the ManifestWork are there.
	full bool
	// stray says that certificate requests may be left of a cluster that vanished before anybody accepted it: nothing is
	// left by which the hub could know that it existed.
	stray bool
}

// Shows: registration/acceptance-states, registration/clean-up-decided
func TestWhatTheHubHoldsIsWhatTheStateOfAClusterSaysInEveryOrder(t *testing.T) {
	t.Parallel()
	bootstrap := bootstrapClient(t)
	neighbour := settleNeighbour(t, bootstrap)
	before := neighbourVersions(t)
	walkers := paths()
	for i := range slices.MaxFunc(walkers, func(a, b *walker) int { return len(a.path) - len(b.path) }).path {
		for _, w := range walkers {
			if i < len(w.path) {
				w.step(t, bootstrap, w.path[i])
			}
		}
		suite.Eventually(t, func() error { return check(t, walkers) })
		for _, w := range walkers {
			w.fill(t)
		}
	}
	assert.Equal(t, before, neighbourVersions(t), "nothing of the neighbour was touched")
	require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKeyFromObject(neighbour), neighbour),
		"what the neighbour asked for stays, whatever its label says")
}

// paths returns all paths of three actions, each on a cluster with and on one without add-on and work, and some long
// ones, always the same.
func paths() []*walker {
	all := []action{toAccept, toDeny, toDelete, toVanish}
	var walkers []*walker
	add := func(busy bool, path ...action) {
		walkers = append(walkers, &walker{name: fmt.Sprintf("orders%d", len(walkers)+1), path: path, busy: busy})
	}
	for _, first := range all[:2] {
		for _, second := range all {
			for _, third := range all {
				add(false, first, second, third)
				add(true, first, second, third)
			}
		}
	}
	random := rand.New(rand.NewPCG(3, 14)) // the same walk each time
	for i := range 12 {
		var path []action
		for range 8 {
			path = append(path, all[random.IntN(len(all))])
		}
		add(i%2 == 0, path...)
	}
	return walkers
}

// step lets one thing happen to the cluster.
func (w *walker) step(t *testing.T, bootstrap client.Client, a action) {
	t.Helper()
	switch {
	case (a == toAccept || a == toDeny) && !w.exists:
		createCluster(t, w.name, a == toAccept)
		request(t, bootstrap, w.name, nil)
		w.exists, w.wasAccepted = true, false
	case a == toAccept || a == toDeny:
		accept(t, w.name, a == toAccept)
	case !w.exists:
		return
	case a == toDelete:
		require.NoError(t, plane.Client.Delete(t.Context(), getCluster(t, w.name)))
		w.exists, w.full = false, false
	case a == toVanish:
		vanish(t, w.name)
		w.stray = w.stray || !w.wasAccepted
		w.exists, w.full = false, false
	}
	w.accepted = a == toAccept
	w.wasAccepted = w.wasAccepted || w.accepted
}

// fill gives a busy cluster its add-on and its work.
func (w *walker) fill(t *testing.T) {
	t.Helper()
	if !w.busy || !w.exists || !w.accepted || w.full {
		return
	}
	createAddOnIn(t, w.name, "addon", "")
	createWork(t, w.name, "work", nil)
	w.full = true
}

// want says what the hub must hold of the cluster, in the words of held.
func (w *walker) want() string {
	var all []string
	add := func(when bool, what ...string) {
		if when {
			all = append(all, what...)
		}
	}
	known := w.exists && w.wasAccepted
	add(w.exists, "cluster", "cluster unreachable")
	add(known && w.accepted, "accepted", "role 4", "registration", "work access")
	add(known && !w.accepted, "denied", "role 1")
	add(known && !w.accepted && w.full, "work access going")
	add(known, "binding", "lease")
	add(w.full, "addon", "work")
	add(w.exists && !w.stray, "request")
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// check compares what the hub holds of each cluster with what it must hold.
func check(t *testing.T, walkers []*walker) error {
	t.Helper()
	held := holdings(t)
	var wrong []error
	for _, w := range walkers {
		have := held[w.name]
		have = slices.DeleteFunc(have, func(what string) bool { return what == "request" && w.stray })
		slices.Sort(have)
		if text := strings.Join(slices.Compact(have), ", "); text != w.want() {
			wrong = append(wrong, fmt.Errorf("%s %v (busy %t): want [%s], have [%s]", w.name, w.path, w.busy, w.want(), text))
		}
	}
	return errors.Join(wrong...)
}

// holdings lists what the hub holds of every cluster whose name starts with "orders" and a number.
func holdings(t *testing.T) map[string][]string {
	t.Helper()
	held := map[string][]string{}
	add := func(cluster, what string) { held[cluster] = append(held[cluster], what) }
	const prefix = "open-cluster-management:managedcluster:"

	for _, c := range list[clusterv1.ManagedClusterList](t).Items {
		describeCluster(&c, add)
	}
	for _, role := range list[rbacv1.ClusterRoleList](t).Items {
		add(strings.TrimPrefix(role.Name, prefix), fmt.Sprintf("role %d", len(role.Rules)))
	}
	for _, binding := range list[rbacv1.ClusterRoleBindingList](t).Items {
		add(strings.TrimPrefix(binding.Name, prefix), "binding")
	}
	for _, binding := range list[rbacv1.RoleBindingList](t).Items {
		kind := strings.TrimPrefix(binding.Name, prefix+binding.Namespace+":")
		switch {
		case kind == "registration":
			add(binding.Namespace, kind)
		case !binding.DeletionTimestamp.IsZero():
			add(binding.Namespace, kind+" access going")
		default:
			add(binding.Namespace, kind+" access")
		}
	}
	for _, l := range list[coordinationv1.LeaseList](t).Items {
		add(l.Namespace, "lease")
	}
	for _, addon := range list[addonv1alpha1.ManagedClusterAddOnList](t).Items {
		add(addon.Namespace, addon.Name)
	}
	for _, work := range list[workv1.ManifestWorkList](t).Items {
		add(work.Namespace, work.Name)
	}
	for _, r := range list[certificatesv1.CertificateSigningRequestList](t).Items {
		if !strings.HasSuffix(r.Spec.Username, ":orders:agent") {
			add(r.Labels[names.LabelClusterName], "request")
		}
	}
	return held
}

// describeCluster says how a ManagedCluster stands.
func describeCluster(c *clusterv1.ManagedCluster, add func(cluster, what string)) {
	if !slices.Contains(c.Finalizers, names.FinalizerCluster) {
		add(c.Name, "no finalizer")
	}
	add(c.Name, "cluster")
	if len(c.Spec.Taints) == 1 && c.Spec.Taints[0].Key == clusterv1.ManagedClusterTaintUnreachable {
		add(c.Name, "cluster unreachable")
	}
	accepted := meta.FindStatusCondition(c.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted)
	switch {
	case accepted == nil:
	case accepted.Status == metav1.ConditionTrue:
		add(c.Name, "accepted")
	case accepted.Reason == "HubClusterAdminDenied":
		add(c.Name, "denied")
	default:
		add(c.Name, accepted.Message)
	}
}

// list lists all objects of a kind.
func list[L any, P interface {
	*L
	client.ObjectList
}](t *testing.T) L {
	t.Helper()
	var all L
	require.NoError(t, plane.Client.List(t.Context(), P(&all)))
	return all
}

// settleNeighbour creates a cluster whose name starts those of all others here, and returns a certificate request of
// its agent that carries the label of one of them, as an agent could leave it before a policy refused that.
func settleNeighbour(t *testing.T, bootstrap client.Client) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	const name = "orders"
	createQuick(t, name, 3600)
	createAddOnIn(t, name, "addon", "")
	createWork(t, name, "work", nil)
	request(t, bootstrap, name, nil)
	expectClock(t, name, metav1.ConditionTrue, "ManagedClusterClockSynced")
	expectTaint(t, name, clusterv1.ManagedClusterTaintUnreachable)
	asked := relabelled(t, request(t, agentClient(t, name), name, nil), "orders1")
	suite.Quiet(t, time.Second, func() string { return fmt.Sprint(neighbourVersions(t)) })
	return asked
}

// neighbourVersions returns the resourceVersions of what the hub holds of the neighbour.
func neighbourVersions(t *testing.T) map[string]string {
	t.Helper()
	const name = "orders"
	access := client.ObjectKey{Name: "open-cluster-management:managedcluster:" + name}
	versions := map[string]string{}
	for _, o := range []struct {
		object client.Object
		key    client.ObjectKey
	}{
		{&clusterv1.ManagedCluster{}, client.ObjectKey{Name: name}},
		{&corev1.Namespace{}, client.ObjectKey{Name: name}},
		{&rbacv1.ClusterRole{}, access},
		{&rbacv1.ClusterRoleBinding{}, access},
		{&rbacv1.RoleBinding{}, binding(name, "work")},
		{&rbacv1.RoleBinding{}, binding(name, "registration")},
		{&coordinationv1.Lease{}, leaseKey(name)},
		{&addonv1alpha1.ManagedClusterAddOn{}, client.ObjectKey{Namespace: name, Name: "addon"}},
		{&workv1.ManifestWork{}, client.ObjectKey{Namespace: name, Name: "work"}},
	} {
		err := plane.Client.Get(t.Context(), o.key, o.object)
		require.False(t, apierrors.IsNotFound(err), "%T %s is gone", o.object, o.key)
		require.NoError(t, err)
		versions[fmt.Sprintf("%T %s", o.object, o.key)] = o.object.GetResourceVersion()
	}
	return versions
}
