package admission_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/webhook"
	"github.com/spokelet/spokelet/internal/names"
)

// setLabel puts a cluster into a set.
const setLabel = "cluster.open-cluster-management.io/clusterset"

func named(name string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func inSet(name, set string) *clusterv1.ManagedCluster {
	cluster := named(name)
	cluster.Labels = map[string]string{setLabel: set}
	return cluster
}

// user returns a client of a user who may create and change any ManagedCluster, and has the given rights besides.
func user(t *testing.T, name string, rules ...rbacv1.PolicyRule) client.Client {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "test:" + name}, Rules: append([]rbacv1.PolicyRule{{
		APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclusters"},
		Verbs: []string{"get", "create", "update", "patch", "delete"},
	}}, rules...)}
	require.NoError(t, shared.admin.Create(t.Context(), role))
	require.NoError(t, shared.admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}))
	cfg, err := shared.plane.User(name)
	require.NoError(t, err)
	c, err := newClient(cfg)
	require.NoError(t, err)
	// The authorizer of the API server learns of new roles by a watch.
	eventually(t, func() error { return c.Get(t.Context(), types.NamespacedName{Name: "known"}, named("")) })
	return c
}

// known creates the cluster that user looks for.
func known(t *testing.T) {
	t.Helper()
	require.NoError(t, client.IgnoreAlreadyExists(shared.admin.Create(t.Context(), named("known"))))
}

func join(sets ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclustersets/join"},
		ResourceNames: sets, Verbs: []string{"create"},
	}
}

func accept(clusters ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{"register.open-cluster-management.io"}, Resources: []string{"managedclusters/accept"},
		ResourceNames: clusters, Verbs: []string{"update"},
	}
}

// remove deletes a cluster at the end of a test.
func remove(t *testing.T, cluster *clusterv1.ManagedCluster) {
	t.Helper()
	t.Cleanup(func() {
		require.NoError(t, client.IgnoreNotFound(shared.admin.Delete(context.WithoutCancel(t.Context()), cluster)))
	})
}

// change changes a cluster until nobody else was faster, and returns how the last try ended.
func change(t *testing.T, c client.Client, name string, edit func(*clusterv1.ManagedCluster)) error {
	t.Helper()
	var last error
	eventually(t, func() error {
		var cluster clusterv1.ManagedCluster
		require.NoError(t, shared.admin.Get(t.Context(), types.NamespacedName{Name: name}, &cluster))
		edit(&cluster)
		last = c.Update(t.Context(), &cluster)
		if apierrors.IsConflict(last) {
			return last
		}
		return nil
	})
	return last
}

func read(t *testing.T, name string) *clusterv1.ManagedCluster {
	t.Helper()
	var cluster clusterv1.ManagedCluster
	require.NoError(t, shared.admin.Get(t.Context(), types.NamespacedName{Name: name}, &cluster))
	return &cluster
}

// Row: test/e2e/registration_webhook_test.go:44-616
func TestAClusterInNoSetJoinsTheDefaultOne(t *testing.T) {
	fresh, elsewhere, emptied := named("set-none"), inSet("set-other", "other"), inSet("set-empty", "")
	for _, cluster := range []*clusterv1.ManagedCluster{fresh, elsewhere, emptied} {
		require.NoError(t, shared.admin.Create(t.Context(), cluster))
		remove(t, cluster)
	}
	assert.Equal(t, "default", fresh.Labels[setLabel])
	assert.Equal(t, "other", elsewhere.Labels[setLabel])
	assert.Equal(t, "default", emptied.Labels[setLabel])

	require.NoError(t, change(t, shared.admin, "set-other", func(c *clusterv1.ManagedCluster) { delete(c.Labels, setLabel) }))
	assert.Equal(t, "default", read(t, "set-other").Labels[setLabel], "whoever leaves a set joins the default one")
}

// Row: test/e2e/registration_webhook_test.go:44-616
func TestTaintsAreStamped(t *testing.T) {
	start := time.Now().Add(-time.Second)
	tainted := named("stamped")
	invented := metav1.NewTime(time.Unix(1000, 0))
	tainted.Spec.Taints = []clusterv1.Taint{
		{Key: "a", Effect: clusterv1.TaintEffectNoSelect},
		{Key: "b", Effect: clusterv1.TaintEffectNoSelect, TimeAdded: invented},
	}
	require.NoError(t, shared.admin.Create(t.Context(), tainted))
	remove(t, tainted)
	for _, taint := range tainted.Spec.Taints {
		assert.WithinRange(t, taint.TimeAdded.Time, start.Truncate(time.Second), time.Now(), "taint %s", taint.Key)
	}
	first := read(t, "stamped").Spec.Taints[0].TimeAdded

	for sentence, edit := range map[string]func(*clusterv1.ManagedCluster){
		"the time of a taint cannot be changed": func(c *clusterv1.ManagedCluster) { c.Spec.Taints[0].TimeAdded = invented },
		"nor can that of a new taint be chosen": func(c *clusterv1.ManagedCluster) {
			c.Spec.Taints = append(c.Spec.Taints, clusterv1.Taint{
				Key: "c", Effect: clusterv1.TaintEffectNoSelect, TimeAdded: invented,
			})
		},
		"nor that of a taint with another value": func(c *clusterv1.ManagedCluster) {
			c.Spec.Taints[0].Value, c.Spec.Taints[0].TimeAdded = "v", invented
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := change(t, shared.admin, "stamped", edit)
			require.True(t, apierrors.IsBadRequest(err), "%v", err)
			require.ErrorContains(t, err, "is set by the hub")
		})
	}

	require.NoError(t, change(t, shared.admin, "stamped", func(c *clusterv1.ManagedCluster) {
		c.Spec.Taints[0].TimeAdded = metav1.Time{}
		c.Spec.Taints = append(c.Spec.Taints, clusterv1.Taint{Key: "c", Effect: clusterv1.TaintEffectNoSelect})
	}))
	after := read(t, "stamped").Spec.Taints
	// The hub manager adds a taint of its own.
	require.GreaterOrEqual(t, len(after), 3)
	assert.True(t, first.Time.Equal(after[0].TimeAdded.Time), "a time that is left out stays")
	for _, taint := range after {
		assert.WithinRange(t, taint.TimeAdded.Time, start.Truncate(time.Second), time.Now(), "taint %s", taint.Key)
	}
}

// Row: test/e2e/registration_webhook_test.go:44-616
func TestClustersThatCannotBeAreRefused(t *testing.T) {
	config := func(urls ...string) (configs []clusterv1.ClientConfig) {
		for _, url := range urls {
			configs = append(configs, clusterv1.ClientConfig{URL: url})
		}
		return configs
	}
	for sentence, tc := range map[string]struct {
		name string
		urls []string
		says []string
	}{
		"W-33 a name that no namespace can have, without client configs": {"bad.name", nil, []string{"name of the namespace"}},
		"W-08 the name of the group of all clusters":                     {"managed-clusters", nil, []string{"reserved"}},
		"the name of a shared ClusterRole":                               {"work", nil, []string{"reserved"}},
		"a namespace of the hub":                                         {"kube-system", nil, []string{"reserved"}},
		"an address without https":                                       {"plain", []string{"https://ok", "http://x"}, []string{"[1].url", "no https address"}},
		"an address without a server":                                    {"nowhere", []string{"https://"}, []string{"[0].url"}},
		"all problems at once":                                           {"bad.url", []string{"ftp://x", "http://y"}, []string{"name of the namespace", "[0].url", "[1].url"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			cluster := named(tc.name)
			cluster.Spec.ManagedClusterClientConfigs = config(tc.urls...)
			err := shared.admin.Create(t.Context(), cluster)
			require.True(t, apierrors.IsBadRequest(err), "%v", err)
			for _, says := range tc.says {
				require.ErrorContains(t, err, says)
			}
		})
	}

	cluster := named("addresses")
	cluster.Spec.ManagedClusterClientConfigs = config("https://one:6443")
	require.NoError(t, shared.admin.Create(t.Context(), cluster))
	remove(t, cluster)
	err := change(t, shared.admin, "addresses", func(c *clusterv1.ManagedCluster) {
		c.Spec.ManagedClusterClientConfigs = config("https://one:6443", "tcp://two")
	})
	require.True(t, apierrors.IsBadRequest(err), "%v", err)
}

// Row: test/e2e/registration_webhook_test.go:44-616
func TestToAcceptAClusterTakesARight(t *testing.T) {
	known(t)
	plain := user(t, "plain", join("default"))
	acceptor := user(t, "acceptor", join("default"), accept("accept-me"))

	eager := named("accept-eager")
	eager.Spec.HubAcceptsClient = true
	err := plain.Create(t.Context(), eager)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, "managedclusters/accept")

	for _, name := range []string{"accept-me", "accept-other"} {
		cluster := named(name)
		require.NoError(t, plain.Create(t.Context(), cluster))
		remove(t, cluster)
	}
	acceptIt := func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = true }
	require.True(t, apierrors.IsForbidden(change(t, plain, "accept-me", acceptIt)), "without the right nobody accepts")
	require.True(t, apierrors.IsForbidden(change(t, acceptor, "accept-other", acceptIt)), "the right is for one cluster")
	require.NoError(t, change(t, acceptor, "accept-me", acceptIt))
	require.NoError(t, change(t, plain, "accept-me", func(c *clusterv1.ManagedCluster) {
		c.Annotations = map[string]string{"a": "b"}
	}), "what is accepted can be changed by others")
	require.NoError(t, change(t, plain, "accept-me", func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false }),
		"to deny takes no right")
}

// Row: test/e2e/registration_webhook_test.go:44-616
func TestAClusterIsNotAcceptedIntoANamespaceThatIsGoing(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "going"}}
	require.NoError(t, shared.admin.Create(t.Context(), namespace))
	// Something in it keeps it from being gone.
	keeper := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "going", Name: "keeper", Finalizers: []string{"test.example.com/keep"},
	}}
	require.NoError(t, shared.admin.Create(t.Context(), keeper))
	require.NoError(t, shared.admin.Delete(t.Context(), namespace))
	cluster := named("going")
	require.NoError(t, shared.admin.Create(t.Context(), cluster))
	remove(t, cluster)
	acceptIt := func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = true }
	err := change(t, shared.admin, "going", acceptIt)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, "is being deleted")

	keeper.Finalizers = nil
	require.NoError(t, shared.admin.Update(t.Context(), keeper))
	eventually(t, func() error { return change(t, shared.admin, "going", acceptIt) })
}

// Row: test/e2e/registration_webhook_test.go:44-616
func TestToMoveAClusterTakesTheRightToBothSets(t *testing.T) {
	known(t)
	one := user(t, "joins-one", join("one"))
	both := user(t, "joins-both", join("one", "two"))
	all := user(t, "joins-all", join())

	require.True(t, apierrors.IsForbidden(one.Create(t.Context(), inSet("move", "two"))))
	err := one.Create(t.Context(), named("move"))
	require.True(t, apierrors.IsForbidden(err), "also for the default set: %v", err)
	require.ErrorContains(t, err, "managedclustersets/join")
	cluster := inSet("move", "one")
	require.NoError(t, one.Create(t.Context(), cluster))
	remove(t, cluster)

	to := func(set string) func(*clusterv1.ManagedCluster) {
		return func(c *clusterv1.ManagedCluster) { c.Labels[setLabel] = set }
	}
	require.True(t, apierrors.IsForbidden(change(t, one, "move", to("two"))), "the new set is missing")
	require.NoError(t, change(t, both, "move", to("two")))
	require.True(t, apierrors.IsForbidden(change(t, one, "move", to("one"))), "the old set is missing")
	require.NoError(t, change(t, all, "move", to("three")))
	require.NoError(t, change(t, one, "move", func(c *clusterv1.ManagedCluster) {
		c.Annotations = map[string]string{"a": "b"}
	}), "who does not move it needs no right to its set")
	err = change(t, both, "move", func(c *clusterv1.ManagedCluster) {
		c.Labels[setLabel], c.Spec.HubAcceptsClient = "two", true
		c.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: "http://x"}}
	})
	require.Error(t, err)
	for _, says := range []string{"[0].url", "managedclusters/accept", "ManagedClusterSet three"} {
		require.ErrorContains(t, err, says, "everything that is wrong is told at once")
	}
}

func TestTheBootstrapIdentityMayCreateAClusterInTheDefaultSetOnly(t *testing.T) {
	cfg, err := shared.plane.ServiceAccount(t.Context(), names.NamespaceBootstrap, names.ServiceAccountBootstrap)
	require.NoError(t, err)
	bootstrap, err := newClient(cfg)
	require.NoError(t, err)
	cluster := named("bootstrapped")
	require.NoError(t, bootstrap.Create(t.Context(), cluster))
	remove(t, cluster)
	assert.Equal(t, "default", cluster.Labels[setLabel])
	require.True(t, apierrors.IsForbidden(bootstrap.Create(t.Context(), inSet("bootstrapped-2", "other"))))
	eager := named("bootstrapped-3")
	eager.Spec.HubAcceptsClient = true
	require.True(t, apierrors.IsForbidden(bootstrap.Create(t.Context(), eager)))
}

// TestWhatGoesOnWithoutTheWebhook ends the hub manager: what only it can check waits, all else goes on.
func TestWhatGoesOnWithoutTheWebhook(t *testing.T) {
	cluster := named("alone")
	cluster.Spec.HubAcceptsClient = true
	require.NoError(t, shared.admin.Create(t.Context(), cluster))
	remove(t, cluster)
	eventually(t, func() error {
		if len(read(t, "alone").Finalizers) == 0 {
			return errors.New("the hub manager has not seen the cluster yet")
		}
		return nil
	})
	shared.stopHub()
	t.Cleanup(func() {
		startHub(t.Context())
		require.NoError(t, untilServed(context.WithoutCancel(t.Context())))
	})

	for sentence, edit := range map[string]func(*clusterv1.ManagedCluster){
		"labels of the hub": func(c *clusterv1.ManagedCluster) {
			c.Labels["feature.open-cluster-management.io/addon-a"] = "available"
		},
		"finalizers":              func(c *clusterv1.ManagedCluster) { c.Finalizers = append(c.Finalizers, "test.example.com/f") },
		"annotations":             func(c *clusterv1.ManagedCluster) { c.Annotations = map[string]string{"a": "b"} },
		"the lease duration":      func(c *clusterv1.ManagedCluster) { c.Spec.LeaseDurationSeconds = 30 },
		"a cluster can be denied": func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false },
	} {
		t.Run(sentence+" can be changed", func(t *testing.T) {
			require.NoError(t, change(t, shared.admin, "alone", edit))
		})
	}
	require.NoError(t, shared.admin.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "alone"},
	}), "nothing else waits for the webhook")
	err := change(t, shared.admin, "alone", func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = true })
	require.True(t, apierrors.IsInternalError(err), "what must be checked waits: %v", err)
	require.Error(t, shared.admin.Create(t.Context(), named("alone-2")))

	// The hub manager itself is not asked, nor does a cluster that leaves wait.
	cfg, err := shared.plane.ServiceAccount(t.Context(), names.NamespaceHub, names.ServiceAccountManager)
	require.NoError(t, err)
	manager, err := newClient(cfg)
	require.NoError(t, err)
	patch := client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"hubAcceptsClient":true,"taints":[{"key":"a","effect":"NoSelect"}]}}`))
	require.NoError(t, manager.Patch(t.Context(), named("alone"), patch))
	require.NoError(t, shared.admin.Delete(t.Context(), named("alone")))
	require.NoError(t, change(t, shared.admin, "alone", func(c *clusterv1.ManagedCluster) { c.Finalizers = nil }))
}

func TestTheConfigurationsGoWithTheHubManager(t *testing.T) {
	var namespace corev1.Namespace
	require.NoError(t, shared.admin.Get(t.Context(), types.NamespacedName{Name: names.NamespaceHub}, &namespace))
	for _, configuration := range []client.Object{
		&admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{},
	} {
		key := types.NamespacedName{Name: webhook.AdmissionName}
		require.NoError(t, shared.admin.Get(t.Context(), key, configuration))
		require.Len(t, configuration.GetOwnerReferences(), 1)
		assert.Equal(t, namespace.UID, configuration.GetOwnerReferences()[0].UID)
	}
}

// TestAdmissionThatIsTurnedOffKeepsNobodyWaiting starts the hub manager again without its admission: what it had told
// the API server is taken back, so nothing waits for an answer that does not come.
func TestAdmissionThatIsTurnedOffKeepsNobodyWaiting(t *testing.T) {
	shared.stopHub()
	on := shared.config
	shared.config.ClusterAdmission, shared.config.WorkAdmission = false, false
	startHub(t.Context())
	t.Cleanup(func() {
		shared.stopHub()
		shared.config = on
		startHub(t.Context())
		require.NoError(t, untilServed(context.WithoutCancel(t.Context())))
	})
	eventually(t, func() error {
		for name, configuration := range map[string]client.Object{
			webhook.AdmissionName:     &admissionregistrationv1.MutatingWebhookConfiguration{},
			webhook.WorkAdmissionName: &admissionregistrationv1.ValidatingWebhookConfiguration{},
		} {
			err := shared.admin.Get(t.Context(), types.NamespacedName{Name: name}, configuration)
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("configuration %s is there: %w", name, err)
			}
		}
		return nil
	})
	require.NoError(t, shared.admin.Create(t.Context(), named("unchecked"), client.DryRunAll))
}
