package attacks_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// serverTime returns the time that the API server gives to an object of now, in full seconds.
func serverTime(ctx context.Context) (time.Time, error) {
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "time-"}}
	err := shared.admin.Create(ctx, o, client.DryRunAll)
	return o.CreationTimestamp.Time, err
}

// awaitLaterTimes waits until the times that are written differ from those before, also if two clocks round them.
func awaitLaterTimes(t *testing.T) {
	t.Helper()
	before, err := serverTime(t.Context())
	require.NoError(t, err)
	suite.Eventually(t, func() error {
		now, err := serverTime(t.Context())
		if err == nil && now.Sub(before) < 2*time.Second {
			err = fmt.Errorf("the API server writes %s, which is too close to %s", now, before)
		}
		return err
	})
}

// requestOf is a certificate request as an agent sends it.
func requestOf(t *testing.T, r csr.Request) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := csr.NewKey()
	require.NoError(t, err)
	built, err := r.Build(key)
	require.NoError(t, err)
	return built
}

// deniedWithin waits until an agent may ask for no certificate.
func deniedWithin(t *testing.T, as who, name string, limit time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	return poll(ctx, func(ctx context.Context) error {
		err := shared.clients[as].Create(ctx, requestOf(t, csr.ForCluster(name, agentName)), client.DryRunAll)
		if apierrors.IsForbidden(err) {
			return nil
		}
		return fmt.Errorf("the denied agent still asks for certificates: %w", err)
	})
}

// strip has an agent remove the finalizers of its cluster, and write its cluster, as fast as it can, until the function
// is called. It returns when the API server has answered many of these writes.
func strip(t *testing.T, name string, as who) func() {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var all sync.WaitGroup
	var answered atomic.Int64
	stop := func() { cancel(); all.Wait() }
	for i := range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				c := newCluster(name)
				if err := shared.clients[as].Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
					continue
				}
				if i%2 == 0 {
					c.Finalizers = nil
				}
				c.Annotations["agent.example/n"] = fmt.Sprint(time.Now().UnixNano())
				_ = shared.clients[as].Update(ctx, c)
				answered.Add(1)
			}
		})
	}
	t.Cleanup(stop)
	suite.Eventually(t, suite.True("the agent to have written its cluster 100 times", func() bool {
		return answered.Load() >= 100
	}))
	return stop
}

// Shows: security/denial-comes-first
func TestAnAgentCannotKeepItsRightsByWritingItsCluster(t *testing.T) {
	const name = "resists"
	as := who("the agent of " + name)
	require.NoError(t, shared.join(t.Context(), name, as))
	deleteAfterwards(t, newCluster(name))
	stop := strip(t, name, as)
	defer stop()
	require.NoError(t, shared.accept(t.Context(), name, false))
	assert.NoError(t, deniedWithin(t, as, name, 10*time.Second))
}

// Shows: security/full-cluster
func TestAnAgentCannotFillItsClusterUp(t *testing.T) {
	own := &clusterv1.ManagedCluster{ObjectMeta: in("", "cluster10")}
	edit := func(change func(*clusterv1.ManagedCluster)) attempt { return update(own, change) }
	big := make([]byte, 1_170_000)
	for i := range big {
		big[i] = 'x'
	}
	many := make([]clusterv1.ClientConfig, 9)
	for i := range many {
		many[i].URL = fmt.Sprintf("https://own:%d", 6443+i)
	}
	table := map[string]attempt{
		"by a bundle": edit(func(c *clusterv1.ManagedCluster) {
			c.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: "https://own:6443", CABundle: big}}
		}),
		"by addresses":     edit(func(c *clusterv1.ManagedCluster) { c.Spec.ManagedClusterClientConfigs = many }),
		"by an annotation": edit(func(c *clusterv1.ManagedCluster) { c.Annotations["x"] = string(big[:200_000]) }),
		"by labels": edit(func(c *clusterv1.ManagedCluster) {
			for i := range 33 {
				c.Labels[fmt.Sprint("agent.open-cluster-management.io/x", i)] = "y"
			}
		}),
		"by a finalizer": edit(func(c *clusterv1.ManagedCluster) {
			c.Finalizers = append(c.Finalizers, "attacker.example/stays")
		}),
		"or take the finalizer away": edit(func(c *clusterv1.ManagedCluster) { c.Finalizers = nil }),
	}
	for sentence, try := range table {
		t.Run(sentence, func(t *testing.T) {
			err := try(t.Context(), client.NewDryRunClient(shared.clients[agent10]))
			assert.ErrorContains(t, err, "ValidatingAdmissionPolicy '"+policyAgentClusters)
		})
	}
	created := newCluster("with-finalizer")
	created.Finalizers = []string{"attacker.example/stays"}
	for _, as := range []who{bootstrap, trusted} {
		err := create(created.DeepCopy())(t.Context(), client.NewDryRunClient(shared.clients[as]))
		require.Error(t, err)
		assert.Regexp(t, policyAgentClusters+"|creator-finalizers", err.Error(), "either answers first")
	}
	require.NoError(t, edit(func(c *clusterv1.ManagedCluster) {
		c.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: "https://own:6443", CABundle: big[:16000]}}
		c.Annotations["agent.example/x"] = "y"
	})(t.Context(), client.NewDryRunClient(shared.clients[agent10])), "what agents write has room")
}

// awaitRecord waits until the hub has written on the namespace of a cluster that the cluster is denied.
func awaitRecord(t *testing.T, name string) {
	t.Helper()
	suite.Eventually(t, func() error {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := get(namespace)(t.Context(), shared.admin); err != nil {
			return err
		}
		if namespace.Annotations[names.AnnotationDeniedOn] == "" {
			return fmt.Errorf("the denial is not recorded: %v", namespace.Annotations)
		}
		return nil
	})
}

// denyAndDelete denies a cluster, deletes it, before or after the denial is recorded, and creates it again with a
// request of the trusted user; it reports whether it is accepted without a person.
func denyAndDelete(t *testing.T, name string, recorded bool) error {
	t.Helper()
	require.NoError(t, shared.accept(t.Context(), name, false))
	if recorded {
		awaitRecord(t, name)
	}
	require.NoError(t, client.IgnoreNotFound(shared.admin.Delete(t.Context(), newCluster(name))))
	require.NoError(t, poll(t.Context(), func(ctx context.Context) error {
		err := get(newCluster(name))(ctx, shared.admin)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("still there: %w", err)
	}))
	awaitLaterTimes(t)
	again := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	require.NoError(t, shared.clients[trusted].Create(t.Context(), again))
	deleteAfterwards(t, again)
	require.NoError(t, shared.clients[trusted].Create(t.Context(), requestOf(t, csr.ForCluster(name, agentName))))
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	return poll(ctx, func(ctx context.Context) error {
		if err := get(again)(ctx, shared.admin); err != nil {
			return err
		}
		if !again.Spec.HubAcceptsClient {
			return fmt.Errorf("not accepted: %v", again.Annotations)
		}
		return nil
	})
}

// Shows: security/denial-remembered
func TestAnAgentCannotHaveItsDenialForgotten(t *testing.T) {
	for sentence, tc := range map[string]struct {
		name            string
		recorded, strip bool
	}{
		"the agent does nothing":                       {"returns-a", false, false},
		"the agent writes":                             {"returns-b", false, true},
		"the agent writes, and the denial is recorded": {"returns-c", true, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			as := who("the agent of " + tc.name)
			require.NoError(t, shared.join(t.Context(), tc.name, as))
			stop := func() {}
			if tc.strip {
				stop = strip(t, tc.name, as)
			}
			err := denyAndDelete(t, tc.name, tc.recorded)
			stop()
			assert.Error(t, err, "a denied cluster is accepted again without a person")
		})
	}
}

// Shows: security/times-of-taints
func TestAnAgentCannotRestartTheTimeOfATaint(t *testing.T) {
	own := &clusterv1.ManagedCluster{ObjectMeta: in("", "cluster10")}
	require.NoError(t, update(own, func(c *clusterv1.ManagedCluster) {
		c.Spec.Taints = append(c.Spec.Taints, clusterv1.Taint{Key: "evict", Effect: clusterv1.TaintEffectNoSelect})
	})(t.Context(), shared.admin))
	find := func() (clusterv1.Taint, error) {
		fresh := own.DeepCopy()
		if err := shared.admin.Get(t.Context(), client.ObjectKeyFromObject(own), fresh); err != nil {
			return clusterv1.Taint{}, err
		}
		for _, taint := range fresh.Spec.Taints {
			if taint.Key == "evict" && !taint.TimeAdded.IsZero() {
				return taint, nil
			}
		}
		return clusterv1.Taint{}, fmt.Errorf("the taint has no time yet: %v", fresh.Spec.Taints)
	}
	var before clusterv1.Taint
	require.NoError(t, poll(t.Context(), func(context.Context) (err error) { before, err = find(); return err }))
	t.Cleanup(func() {
		_ = update(own, func(c *clusterv1.ManagedCluster) {
			c.Spec.Taints = slices.DeleteFunc(c.Spec.Taints, func(t clusterv1.Taint) bool { return t.Key == "evict" })
		})(context.WithoutCancel(t.Context()), shared.admin)
	})
	awaitLaterTimes(t)
	err := withoutTimes(own)(t.Context(), shared.clients[agent10])
	var after clusterv1.Taint
	require.NoError(t, poll(t.Context(), func(context.Context) (err error) { after, err = find(); return err }))
	require.Error(t, err, "the agent takes the time of a taint away")
	assert.Equal(t, before.TimeAdded, after.TimeAdded, "tolerationSeconds count from later, as often as the agent likes")
}

// withoutTimes takes the times of the taints of a cluster away.
func withoutTimes(own *clusterv1.ManagedCluster) attempt {
	return update(own, func(c *clusterv1.ManagedCluster) {
		for i := range c.Spec.Taints {
			c.Spec.Taints[i].TimeAdded = metav1.Time{}
		}
	})
}

// Shows: security/other-group
func TestAnAgentCannotDoMoreInTheGroupOfACloudProvider(t *testing.T) {
	config, err := shared.plane.User("arn:aws:iam::1:role/agent", csr.ClusterGroupIAM("cluster10"))
	require.NoError(t, err)
	c, err := client.New(config, client.Options{Scheme: shared.scheme, Mapper: shared.admin.RESTMapper()})
	require.NoError(t, err)
	own := &clusterv1.ManagedCluster{ObjectMeta: in("", "cluster10")}
	work := &workv1.ManifestWork{ObjectMeta: in("cluster10", "addon-hello-deploy-0")}
	require.NoError(t, poll(t.Context(), func(ctx context.Context) error { return get(work.DeepCopy())(ctx, c) }))
	require.NoError(t, update(own, func(c *clusterv1.ManagedCluster) {
		c.Spec.Taints = append(c.Spec.Taints, clusterv1.Taint{Key: "iam", Effect: clusterv1.TaintEffectNoSelect})
	})(t.Context(), shared.admin))
	t.Cleanup(func() {
		_ = update(own, func(c *clusterv1.ManagedCluster) { c.Spec.Taints = nil })(context.WithoutCancel(t.Context()), shared.admin)
	})
	foreign := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: "5f0e5b2e-0000-4000-8000-000000000000"}
	long := make([]byte, 100<<10)
	for i := range long {
		long[i] = 'x'
	}
	for sentence, try := range map[string]attempt{
		"labels its cluster":                       update(own, func(c *clusterv1.ManagedCluster) { c.Labels["vip"] = "true" }),
		"removes a taint":                          update(own, func(c *clusterv1.ManagedCluster) { c.Spec.Taints = nil }),
		"changes the spec of a work":               update(work, func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = nil }),
		"gives a work to an owner":                 update(work, func(w *workv1.ManifestWork) { w.OwnerReferences = append(w.OwnerReferences, foreign) }),
		"gives its cluster an owner":               update(own, func(c *clusterv1.ManagedCluster) { c.OwnerReferences = append(c.OwnerReferences, foreign) }),
		"reports a resource with a name of 100 KB": changeStatus(own.DeepCopy(), `{"status":{"capacity":{"`+string(long)+`":"1"}}}`),
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Error(t, try(t.Context(), client.NewDryRunClient(c)), "the attack passes")
		})
	}
}

// Shows: security/empty-marks
func TestACreatorCannotMarkAClusterWithAnEmptyAnnotation(t *testing.T) {
	for _, mark := range []string{names.AnnotationAcceptedOn, names.AnnotationKeepUnaccepted} {
		for _, as := range []who{bootstrap, trusted} {
			try := create(&clusterv1.ManagedCluster{ObjectMeta: withAnnotation(in("", "empty-mark"), mark, "")})
			assert.True(t, apierrors.IsForbidden(try(t.Context(), client.NewDryRunClient(shared.clients[as]))), "%s: %s", as, mark)
		}
	}
}
