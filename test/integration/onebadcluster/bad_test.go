package onebadcluster_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/lease"
	"github.com/spokelet/spokelet/test/suite"
)

const (
	// storm is how often the agent does the same thing, as fast as the API server answers.
	storm = 50
	// quiet is how long the hub manager writes nothing before it counts as done.
	quiet = 700 * time.Millisecond
)

// misdeed is one way in which an agent misbehaves.
type misdeed struct {
	// does is done again and again, with the number of the attempt.
	does func(ctx context.Context, agent client.Client, n int) error
	// refused reports whether the API server refuses it. What it does not refuse, the hub manager bears.
	refused bool
	// writes is how many writes of the hub manager about the bad cluster one attempt may cost.
	writes int
	// says waits for what the status of the cluster or its add-on says about it; nil for nothing.
	says func(t *testing.T)
}

// Shows: hub/one-bad-cluster
func TestNoAgentCostsOtherClustersAWrite(t *testing.T) {
	agent := enableAll(t)
	alone := repair(t, other(0))
	require.Positive(t, alone)
	for sentence, m := range misdeeds() {
		t.Run(sentence, func(t *testing.T) {
			others, own := suite.Quiet(t, quiet, sent.ofOthers), sent.of(bad)
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- misbehave(ctx, agent, m) }()
			again := repair(t, other(1))
			assert.LessOrEqual(t, again, 2*alone, "another cluster is repaired with as few writes as before")
			require.NoError(t, <-done)
			stop()
			suite.Quiet(t, quiet, func() int { return sent.of(bad) })
			assert.LessOrEqual(t, sent.ofOthers()-others, 2*alone, "nothing but the repair was written about others")
			assert.LessOrEqual(t, sent.of(bad)-own, 10+m.writes*storm)
			if m.says != nil {
				m.says(t)
			}
		})
	}
}

// misbehave does the same thing again and again, and reports an answer that was not expected.
func misbehave(ctx context.Context, agent client.Client, m misdeed) error {
	for n := range storm {
		err := m.does(ctx, agent, n)
		if apierrors.IsConflict(err) {
			continue // The hub manager was faster.
		}
		if refused := apierrors.IsForbidden(err) || apierrors.IsInvalid(err); refused != m.refused {
			return fmt.Errorf("attempt %d: %w", n, errors.Join(err, errors.New("the answer is another one")))
		}
	}
	return nil
}

func misdeeds() map[string]misdeed {
	return map[string]misdeed{
		"thousands of claims": {refused: true, does: func(ctx context.Context, c client.Client, n int) error {
			return patch(ctx, c, cluster(), true, func(o *clusterv1.ManagedCluster) { o.Status.ClusterClaims = claims(5000, n) })
		}},
		"claims that change with each write": {does: func(ctx context.Context, c client.Client, n int) error {
			return patch(ctx, c, cluster(), true, func(o *clusterv1.ManagedCluster) { o.Status.ClusterClaims = claims(400, n) })
		}},
		"a huge status": {refused: true, does: func(ctx context.Context, c client.Client, n int) error {
			return patch(ctx, c, cluster(), true, func(o *clusterv1.ManagedCluster) {
				for i := range 5 {
					set(&o.Status.Conditions, fmt.Sprintf("Huge%d", i), n, strings.Repeat("x", 30000))
				}
			})
		}},
		"huge feedback that changes": {does: func(ctx context.Context, c client.Client, n int) error {
			return patch(ctx, c, work(), true, func(o *workv1.ManifestWork) { o.Status.ResourceStatus.Manifests = feedback(n) })
		}},
		"conditions of the cluster that flip": {writes: 2, does: func(ctx context.Context, c client.Client, n int) error {
			return patch(ctx, c, cluster(), true, func(o *clusterv1.ManagedCluster) {
				set(&o.Status.Conditions, clusterv1.ManagedClusterConditionAvailable, n, "flips")
			})
		}},
		"conditions of an add-on that flip": {writes: 2, does: func(ctx context.Context, c client.Client, n int) error {
			o := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: bad, Name: addOn}}
			return patch(ctx, c, o, true, func(o *addonv1alpha1.ManagedClusterAddOn) {
				set(&o.Status.Conditions, addonv1alpha1.ManagedClusterAddOnConditionAvailable, n, "flips")
			})
		}},
		"a work that is applied and not, by turns": {writes: 2, does: func(ctx context.Context, c client.Client, n int) error {
			return patch(ctx, c, work(), true, func(o *workv1.ManifestWork) {
				set(&o.Status.Conditions, workv1.WorkApplied, n, "flips")
			})
		}, says: func(t *testing.T) {
			t.Helper()
			suite.Eventually(t, func() error {
				o := &addonv1alpha1.ManagedClusterAddOn{}
				err := plane.Client.Get(t.Context(), client.ObjectKey{Namespace: bad, Name: addOn}, o)
				c := meta.FindStatusCondition(o.Status.Conditions, addonv1alpha1.ManagedClusterAddOnConditionProgressing)
				if err == nil && (c == nil || c.Reason != "WaitingForManifestApplied") {
					err = fmt.Errorf("the add-on waits for a work that is not answered, and is not %+v", c)
				}
				return err
			})
		}},
		"leases from the future": {writes: 1, does: func(ctx context.Context, c client.Client, n int) error {
			o := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: bad, Name: lease.ClusterLease}}
			if err := plane.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
			o.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(time.Duration(n+1) * time.Hour)}
			return c.Update(ctx, o)
		}, says: func(t *testing.T) {
			t.Helper()
			suite.Eventually(t, func() error {
				o := cluster()
				err := plane.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o)
				if err == nil && !meta.IsStatusConditionFalse(o.Status.Conditions, clusterv1.ManagedClusterConditionClockSynced) {
					err = fmt.Errorf("the clock is not told: %+v", o.Status.Conditions)
				}
				return err
			})
		}},
		"certificate requests in a loop": {writes: 1, does: func(ctx context.Context, c client.Client, _ int) error {
			key, err := csr.NewKey()
			if err != nil {
				return err
			}
			request, err := csr.ForCluster(bad, "agent").Build(key)
			if err != nil {
				return err
			}
			return c.Create(ctx, request)
		}},
	}
}

func cluster() *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: bad}}
}

func work() *workv1.ManifestWork {
	return &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: bad, Name: "addon-" + addOn + "-deploy-0"}}
}

// set turns a condition on and off by turns.
func set(conditions *[]metav1.Condition, kind string, n int, message string) {
	status := metav1.ConditionTrue
	if n%2 == 1 {
		status = metav1.ConditionFalse
	}
	meta.SetStatusCondition(conditions, metav1.Condition{Type: kind, Status: status, Reason: "Storm", Message: message})
}

func claims(count, n int) []clusterv1.ManagedClusterClaim {
	all := make([]clusterv1.ManagedClusterClaim, count)
	for i := range all {
		all[i] = clusterv1.ManagedClusterClaim{Name: fmt.Sprintf("claim-%d", i), Value: fmt.Sprint(n)}
	}
	return all
}

// feedback is what an agent feeds back of one object: 100 texts of a kilobyte.
func feedback(n int) []workv1.ManifestCondition {
	var values []workv1.FeedbackValue
	for i := range 100 {
		text := fmt.Sprint(n) + strings.Repeat("x", 1000)
		values = append(values, workv1.FeedbackValue{
			Name: fmt.Sprintf("v%d", i), Value: workv1.FieldValue{Type: workv1.String, String: &text},
		})
	}
	return []workv1.ManifestCondition{{
		ResourceMeta:    workv1.ManifestResourceMeta{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Name: "agent"},
		StatusFeedbacks: workv1.StatusFeedbackResult{Values: values}, Conditions: []metav1.Condition{},
	}}
}
