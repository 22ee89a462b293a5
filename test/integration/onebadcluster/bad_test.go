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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/badagent"
	"github.com/spokelet/spokelet/test/suite"
)

const (
	// storm is how often the agent does the same thing, as fast as the API server answers.
	storm = 150
	// refusals is how often it is refused.
	refusals = 50
	// quiet is how long the hub manager writes nothing before it counts as done.
	quiet = 700 * time.Millisecond
)

// borne holds what the hub manager bears of a misdeed.
type borne struct {
	// writes is how many writes of the hub manager about the bad cluster one attempt may cost.
	writes int
	// says waits for what the status of the cluster or its add-on says about it.
	says []func(t *testing.T, a badagent.Agent)
}

// bears returns what the hub manager bears, by the name of the misdeed; all others are refused.
func bears() map[string]borne {
	return map[string]borne{
		"claims that change with each write":  {says: tells("ManagedCluster %s was written more than")},
		"huge feedback that changes":          {says: tells("ManifestWork addon-hello-deploy-0 was written more than")},
		"conditions of the cluster that flip": {writes: 2, says: tells("conditions of ManagedCluster %s changed")},
		"conditions of an add-on that flip":   {writes: 2, says: tells("conditions of ManagedClusterAddOn hello changed")},
		"a work that is applied and not, by turns": {
			writes: 2, says: append(tells("conditions of ManifestWork addon-hello-deploy-0 changed"), waitsForTheWork),
		},
		"leases from the future":         {writes: 1, says: []func(*testing.T, badagent.Agent){clockIsTold}},
		"certificate requests in a loop": {writes: 1, says: tells("certificates of the agent were requested")},
	}
}

// Shows: hub/one-bad-cluster, hub/one-bad-cluster-told, invariants/one-writer
func TestNoAgentCostsOtherClustersAWrite(t *testing.T) {
	require.NoError(t, plane.Apply(t.Context(), badagent.Manifests()))
	for i := range others {
		enable(t, other(i))
	}
	alone := repair(t, other(0))
	require.Positive(t, alone)
	for i, m := range badagent.Misdeeds() {
		t.Run(m.Name, func(t *testing.T) {
			a, bears := newAgent(t, fmt.Sprint(bad, i)), bears()[m.Name]
			others, own := suite.Quiet(t, quiet, sent.ofOthers), sent.of(a.Cluster)
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- misbehave(ctx, a, m) }()
			again := repair(t, other(1))
			assert.LessOrEqual(t, again, 2*alone, "another cluster is repaired with as few writes as before")
			require.NoError(t, <-done)
			stop()
			suite.Quiet(t, quiet, func() int { return sent.of(a.Cluster) })
			assert.LessOrEqual(t, sent.ofOthers()-others, 2*alone, "nothing but the repair was written about others")
			assert.LessOrEqual(t, sent.of(a.Cluster)-own, 10+bears.writes*storm)
			assert.Equal(t, m.Refused, bears.says == nil, "what is not refused is told")
			for _, says := range bears.says {
				says(t, a)
			}
		})
	}
	for i := range others {
		o := badagent.Agent{Cluster: other(i)}.ManagedCluster()
		require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o))
		assert.Nil(t, meta.FindStatusCondition(o.Status.Conditions, names.ConditionAgentQuiet), "nothing is told about others")
	}
}

// misbehave does the same thing again and again, and reports an answer that was not expected.
func misbehave(ctx context.Context, a badagent.Agent, m badagent.Misdeed) error {
	attempts := storm
	if m.Refused {
		attempts = refusals
	}
	for n := range attempts {
		err := m.Does(ctx, a, n)
		if apierrors.IsConflict(err) {
			continue // The hub manager was faster.
		}
		if refused := apierrors.IsForbidden(err) || apierrors.IsInvalid(err); refused != m.Refused {
			return fmt.Errorf("attempt %d: %w", n, errors.Join(err, errors.New("the answer is another one")))
		}
	}
	return nil
}

// tells waits until condition AgentQuiet has a text.
func tells(text string) []func(*testing.T, badagent.Agent) {
	return []func(*testing.T, badagent.Agent){func(t *testing.T, a badagent.Agent) {
		t.Helper()
		want := strings.ReplaceAll(text, "%s", a.Cluster)
		suite.Eventually(t, func() error {
			o := a.ManagedCluster()
			err := plane.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o)
			c := meta.FindStatusCondition(o.Status.Conditions, names.ConditionAgentQuiet)
			if err == nil && (c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, want)) {
				err = fmt.Errorf("the condition does not say that %s, and is %+v", want, c)
			}
			return err
		})
	}}
}

func waitsForTheWork(t *testing.T, a badagent.Agent) {
	t.Helper()
	suite.Eventually(t, func() error {
		o := &addonv1alpha1.ManagedClusterAddOn{}
		err := plane.Client.Get(t.Context(), client.ObjectKey{Namespace: a.Cluster, Name: badagent.AddOn}, o)
		c := meta.FindStatusCondition(o.Status.Conditions, addonv1alpha1.ManagedClusterAddOnConditionProgressing)
		if err == nil && (c == nil || c.Reason != "WaitingForManifestApplied") {
			err = fmt.Errorf("the add-on waits for a work that is not answered, and is not %+v", c)
		}
		return err
	})
}

func clockIsTold(t *testing.T, a badagent.Agent) {
	t.Helper()
	suite.Eventually(t, func() error {
		o := a.ManagedCluster()
		err := plane.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o)
		if err == nil && !meta.IsStatusConditionFalse(o.Status.Conditions, clusterv1.ManagedClusterConditionClockSynced) {
			err = fmt.Errorf("the clock is not told: %+v", o.Status.Conditions)
		}
		return err
	})
}
