package admission_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
)

const (
	clusters = "managedclusters.spokelet.io"
	taints   = "managedcluster-taints.spokelet.io"
)

// Shows: registration/admission
func TestAClusterInNoSetJoinsTheDefaultOne(t *testing.T) {
	t.Parallel()
	create(t, named("set-none"))
	create(t, inSet("set-other", "other"))
	create(t, inSet("set-empty", ""))
	in := func(set string) func(*clusterv1.ManagedCluster) bool {
		return func(c *clusterv1.ManagedCluster) bool { return c.Labels[setLabel] == set && len(c.Finalizers) > 0 }
	}
	becomes(t, "set-none", in("default"))
	becomes(t, "set-other", in("other"))
	becomes(t, "set-empty", in("default"))

	require.NoError(t, change(t, plane.Client, "set-other", func(c *clusterv1.ManagedCluster) { delete(c.Labels, setLabel) }))
	becomes(t, "set-other", in("default"))
}

// Shows: registration/admission
func TestTaintsAreStamped(t *testing.T) {
	t.Parallel()
	invented := metav1.NewTime(time.Unix(1000, 0))
	tainted := named("stamped")
	tainted.Spec.Taints = []clusterv1.Taint{
		{Key: "a", Effect: clusterv1.TaintEffectNoSelect},
		{Key: "b", Effect: clusterv1.TaintEffectNoSelect, TimeAdded: invented},
	}
	create(t, tainted)
	created := tainted.CreationTimestamp
	stamped := func(c *clusterv1.ManagedCluster) bool {
		for _, taint := range c.Spec.Taints {
			if taint.TimeAdded.Time.Before(created.Time) || taint.TimeAdded.After(time.Now()) {
				return false
			}
		}
		return len(c.Spec.Taints) >= 2
	}
	becomes(t, "stamped", stamped)

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
		"nor that of another effect": func(c *clusterv1.ManagedCluster) {
			c.Spec.Taints[0].Effect, c.Spec.Taints[0].TimeAdded = clusterv1.TaintEffectPreferNoSelect, invented
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			invalid(t, change(t, plane.Client, "stamped", edit), taints, "is set by the hub")
		})
	}
	for sentence, edit := range map[string]func(*clusterv1.ManagedCluster){
		"it can be left as it is":         func(c *clusterv1.ManagedCluster) { c.Spec.LeaseDurationSeconds = 61 },
		"also where the value changes":    func(c *clusterv1.ManagedCluster) { c.Spec.Taints[1].Value = "v" },
		"also where the taints are moved": func(c *clusterv1.ManagedCluster) { t := c.Spec.Taints; t[0], t[1] = t[1], t[0] },
		"it can be left out": func(c *clusterv1.ManagedCluster) {
			c.Spec.Taints[0].TimeAdded = metav1.Time{}
			c.Spec.Taints = append(c.Spec.Taints, clusterv1.Taint{Key: "c", Effect: clusterv1.TaintEffectNoSelect})
		},
		"a taint can be taken off": func(c *clusterv1.ManagedCluster) { c.Spec.Taints = c.Spec.Taints[1:] },
	} {
		t.Run(sentence, func(t *testing.T) {
			require.NoError(t, change(t, plane.Client, "stamped", edit))
			becomes(t, "stamped", stamped)
		})
	}
}

// Shows: registration/admission, registration/admission-decided
func TestClustersThatCannotBeAreRefused(t *testing.T) {
	t.Parallel()
	config := func(urls ...string) (configs []clusterv1.ClientConfig) {
		for _, url := range urls {
			configs = append(configs, clusterv1.ClientConfig{URL: url})
		}
		return configs
	}
	for sentence, tc := range map[string]struct {
		name string
		urls []string
		says string
	}{
		"W-33 a name that no namespace can have, without client configs": {"bad.name", nil, `"bad.name" cannot be the name of the namespace`},
		"W-08 the name of the group of all clusters":                     {"managed-clusters", nil, "reserved"},
		"the name of a shared ClusterRole":                               {"work", nil, "reserved"},
		"a namespace of the hub":                                         {"kube-system", nil, "reserved"},
		"an address without https":                                       {"plain", []string{"https://ok", "http://x"}, `"http://x"`},
		"an address without a server":                                    {"nowhere", []string{"https://"}, `"https://"`},
		"an address with a port and no server":                           {"port-only", []string{"https://:6443"}, `"https://:6443"`},
		"what is no address":                                             {"no-url", []string{"one:6443"}, `"one:6443"`},
		"all addresses at once":                                          {"both-bad", []string{"ftp://x", "http://y"}, `"ftp://x", "http://y"`},
	} {
		t.Run(sentence, func(t *testing.T) {
			cluster := named(tc.name)
			cluster.Spec.ManagedClusterClientConfigs = config(tc.urls...)
			invalid(t, plane.Client.Create(t.Context(), cluster), clusters, tc.says)
		})
	}

	cluster := named("addresses")
	cluster.Spec.ManagedClusterClientConfigs = config("https://one:6443", "https://[2001:db8::1]/path")
	create(t, cluster)
	invalid(t, change(t, plane.Client, "addresses", func(c *clusterv1.ManagedCluster) {
		c.Spec.ManagedClusterClientConfigs = config("https://one:6443", "tcp://two")
	}), clusters, `"tcp://two"`)
}

// TestThePolicyAndTheReconcilerRefuseTheSameNames asks both, so that they cannot drift.
func TestThePolicyAndTheReconcilerRefuseTheSameNames(t *testing.T) {
	t.Parallel()
	all := append(names.ReservedClusters(),
		"c", "c1", "1", "0c", "a-b", "a--b", strings.Repeat("c", 63), strings.Repeat("c", 64), strings.Repeat("c", 253),
		"managed-clusters-2", "worker", "registration2", "kube-system-1", "open-cluster-management-agent", "default",
		"openshift", "openshift-gitops", "openshifted", "kube-x", "kubernetes", "defaults", "local-cluster",
		"a.b", "a.b.c", "1.2", "a-", "-a", "A", "a_b", "ä", "a b", "work.", "system:masters",
	)
	for _, name := range all {
		t.Run(name, func(t *testing.T) {
			err := plane.Client.Create(t.Context(), named(name), client.DryRunAll)
			if names.CheckNewCluster(name) == nil {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
		})
	}
}

// Shows: registration/admission, registration/admission-decided
func TestToAcceptAClusterTakesARight(t *testing.T) {
	t.Parallel()
	plain := user(t, "plain", join("default"))
	acceptor := user(t, "acceptor", join("default"), accept("accept-me"))

	eager := named("accept-eager")
	eager.Spec.HubAcceptsClient = true
	forbidden(t, plain.Create(t.Context(), eager), clusters, `user "plain" may not accept cluster accept-eager`,
		"resources: [managedclusters/accept], resourceNames: [accept-eager], verbs: [update]")

	for _, name := range []string{"accept-me", "accept-other"} {
		cluster := named(name)
		require.NoError(t, plain.Create(t.Context(), cluster))
		remove(t, cluster)
	}
	acceptIt := func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = true }
	forbidden(t, change(t, plain, "accept-me", acceptIt), clusters, "may not accept cluster accept-me")
	forbidden(t, change(t, acceptor, "accept-other", acceptIt), clusters, "may not accept cluster accept-other")
	require.NoError(t, change(t, acceptor, "accept-me", acceptIt))
	require.NoError(t, change(t, plain, "accept-me", func(c *clusterv1.ManagedCluster) {
		c.Spec.LeaseDurationSeconds = 61
	}), "what is accepted can be changed by others")
	require.NoError(t, change(t, plain, "accept-me", func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false }),
		"to deny takes no right")
	forbidden(t, change(t, plain, "accept-me", acceptIt), clusters, "may not accept cluster accept-me")
}

// Shows: registration/admission
func TestAClusterWhoseNamespaceIsGoingSaysSo(t *testing.T) {
	t.Parallel()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "going"}}
	require.NoError(t, plane.Client.Create(t.Context(), namespace))
	// Something in it keeps it from being gone.
	keeper := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "going", Name: "keeper", Finalizers: []string{"test.example.com/keep"},
	}}
	require.NoError(t, plane.Client.Create(t.Context(), keeper))
	require.NoError(t, plane.Client.Delete(t.Context(), namespace))
	create(t, named("going"))
	require.NoError(t, change(t, plane.Client, "going", func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = true }))
	condition := func(c *clusterv1.ManagedCluster) metav1.Condition {
		found := meta.FindStatusCondition(c.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted)
		if found == nil {
			return metav1.Condition{}
		}
		return *found
	}
	becomes(t, "going", func(c *clusterv1.ManagedCluster) bool {
		return condition(c).Status == metav1.ConditionFalse && strings.Contains(condition(c).Message,
			"namespace going is being deleted, so the cluster cannot be accepted yet")
	})
	keeper.Finalizers = nil
	require.NoError(t, plane.Client.Update(t.Context(), keeper))
	becomes(t, "going", func(c *clusterv1.ManagedCluster) bool { return condition(c).Status == metav1.ConditionTrue })
}

// Shows: registration/admission, registration/admission-decided
func TestToMoveAClusterTakesTheRightToBothSets(t *testing.T) {
	t.Parallel()
	one := user(t, "joins-one", join("one"))
	both := user(t, "joins-both", join("one", "two"))
	all := user(t, "joins-all", join())

	forbidden(t, one.Create(t.Context(), inSet("move", "two")), clusters, "ManagedClusterSet two", "verbs: [create]")
	cluster := inSet("move", "one")
	require.NoError(t, one.Create(t.Context(), cluster))
	remove(t, cluster)

	to := func(set string) func(*clusterv1.ManagedCluster) {
		return func(c *clusterv1.ManagedCluster) { c.Labels[setLabel] = set }
	}
	forbidden(t, change(t, one, "move", to("two")), clusters, "ManagedClusterSet one or two (label")
	require.NoError(t, change(t, both, "move", to("two")))
	forbidden(t, change(t, one, "move", to("one")), clusters, "ManagedClusterSet two or one (label")
	forbidden(t, change(t, one, "move", to("three")), clusters, "ManagedClusterSet two or three", "resourceNames: [two, three]")
	forbidden(t, change(t, one, "move", func(c *clusterv1.ManagedCluster) { delete(c.Labels, setLabel) }), clusters,
		"ManagedClusterSet two (label")
	require.NoError(t, change(t, all, "move", to("three")))
	require.NoError(t, change(t, one, "move", func(c *clusterv1.ManagedCluster) {
		c.Annotations = map[string]string{"a": "b"}
	}), "who does not move it needs no right to its set")
}

func TestTheBootstrapIdentityMayCreateAClusterAndNothingMore(t *testing.T) {
	t.Parallel()
	c := bootstrap(t)
	for name, cluster := range map[string]*clusterv1.ManagedCluster{
		"bootstrapped": named("bootstrapped"), "bootstrapped-default": inSet("bootstrapped-default", "default"),
	} {
		require.NoError(t, c.Create(t.Context(), cluster))
		remove(t, cluster)
		becomes(t, name, func(c *clusterv1.ManagedCluster) bool { return c.Labels[setLabel] == "default" })
	}
	forbidden(t, c.Create(t.Context(), inSet("bootstrapped-2", "other")), clusters, "ManagedClusterSet other")
	eager := named("bootstrapped-3")
	eager.Spec.HubAcceptsClient = true
	forbidden(t, c.Create(t.Context(), eager), clusters, "may not accept cluster bootstrapped-3")
	marked := named("bootstrapped-4")
	marked.Annotations = map[string]string{names.AnnotationAcceptedOn: "2026-01-01T00:00:00Z"}
	forbidden(t, c.Create(t.Context(), marked), clusters, "may not change annotation "+names.AnnotationAcceptedOn)
	marked.Annotations = map[string]string{names.AnnotationAutoAcceptedOn: "2026-01-01T00:00:00Z"}
	require.NoError(t, c.Create(t.Context(), marked, client.DryRunAll), "that a person must accept a cluster anyone may say")
}

// TestThePoliciesHoldWithoutTheHubManager ends the hub manager: what takes a right takes it all the same, and nothing
// waits for an answer.
func TestThePoliciesHoldWithoutTheHubManager(t *testing.T) {
	cluster := named("alone")
	cluster.Spec.HubAcceptsClient = true
	create(t, cluster)
	becomes(t, "alone", func(c *clusterv1.ManagedCluster) bool { return len(c.Finalizers) > 0 })
	manager.Stop()
	t.Cleanup(func() { manager.Start() })

	require.NoError(t, change(t, plane.Client, "alone", func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false }))
	require.NoError(t, change(t, plane.Client, "alone", func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = true }))
	c := bootstrap(t)
	eager := named("alone-2")
	eager.Spec.HubAcceptsClient = true
	forbidden(t, c.Create(t.Context(), eager), clusters, "may not accept cluster alone-2")
	forbidden(t, c.Create(t.Context(), inSet("alone-2", "other")), clusters, "ManagedClusterSet other")
	plain := named("alone-2")
	require.NoError(t, c.Create(t.Context(), plain))
	assert.Empty(t, plain.Labels, "the hub manager puts it into the default set when it is back")
	require.NoError(t, plane.Client.Delete(t.Context(), plain))
}

// TestTheHubManagerMayDoItsOwnWork writes what the reconciler writes, with the rights that are shipped and no
// exception.
func TestTheHubManagerMayDoItsOwnWork(t *testing.T) {
	t.Parallel()
	create(t, named("own-work"))
	becomes(t, "own-work", func(c *clusterv1.ManagedCluster) bool { return c.Labels[setLabel] == "default" })
	own := plane.Account(t, names.NamespaceHub, names.ServiceAccountManager)
	require.NoError(t, change(t, own, "own-work", func(c *clusterv1.ManagedCluster) {
		c.Spec.HubAcceptsClient = true
		c.Annotations = map[string]string{names.AnnotationAcceptedOn: "2026-01-01T00:00:00Z"}
		c.Spec.Taints = append(c.Spec.Taints, clusterv1.Taint{
			Key: "k", Effect: clusterv1.TaintEffectNoSelect, TimeAdded: c.CreationTimestamp,
		})
	}))
	forbidden(t, change(t, own, "own-work", func(c *clusterv1.ManagedCluster) { c.Labels[setLabel] = "other" }), clusters,
		"ManagedClusterSet default or other")
}
