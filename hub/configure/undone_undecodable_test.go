package configure

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/policies"
)

// ruling is a hub with a policy of add-on hello.
type ruling struct {
	client.Reader
	policy *policies.AddOnPolicy
	bad    bool
}

func (p *ruling) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if policy, is := into.(*policies.AddOnPolicy); is {
		if p.bad {
			return &decode.Error{Bad: decode.Bad{Cause: "bad"}}
		}
		*policy = *p.policy.DeepCopy()
	}
	return nil
}

func undoSpec() policies.AddOnPolicySpec {
	return policies.AddOnPolicySpec{OnFailure: &policies.OnFailure{Action: policies.ActionUndo}}
}

func (*ruling) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// A cluster returned from "low", which its placement asks for, to "default". Then the policy cannot be decoded for a
// while: the last plan is that of before, which has the cluster among those that have the content (it failed with it).
func TestAPolicyThatCannotBeDecodedGivesNoClusterWhatWasUndone(t *testing.T) {
	low := fixture.DeploymentConfig("low")
	for sentence, bad := range map[string]bool{"control: the policy is known": false, "it cannot be decoded": true} {
		t.Run(sentence, func(t *testing.T) {
			p := placement("low", "c1")
			s := newSelected(t, "default", []string{"low"}, p.placement, p.page)
			cma, err := s.c.AddOns.GetClusterManagementAddOn(t.Context(), "hello")
			require.NoError(t, err)
			cma.Spec.InstallStrategy.Placements[0].RolloutStrategy = clusterv1alpha1.RolloutStrategy{
				Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{},
			}
			require.NoError(t, s.c.Client.Update(t.Context(), addonapi.ClusterManagementAddOnToAlpha(cma)))
			states, err := s.c.Store.States(t.Context(), low)
			require.NoError(t, err)
			gives := []addonv1beta1.ConfigReference{fixture.Desires(low, states[low].Hash)}
			noted := fixture.Condition(names.ConditionRolloutFailed, metav1.ConditionTrue, "Undone", fixture.Noon())
			noted.Message = "undone; the rollout gave " + addonconfig.ContentsOf(gives).String()
			fixture.With(s.addOn, fixture.Condition("Progressing", metav1.ConditionFalse, "Completed", fixture.Noon()), noted)
			// What rollout.Reconciler.Admission says of such a cluster.
			s.c.Admission = func(metav1.Object, []addonv1beta1.ConfigReference) addonconfig.Admission {
				return addonconfig.Admission{Granted: true, Undo: true}
			}
			policy := &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: "hello"}, Spec: undoSpec()}
			r := &ruling{policy: policy, bad: bad}
			s.c.Gates = &gate.Reader{Client: r, AddOns: s.c.AddOns}
			configs, said, _ := s.pass(t)
			assert.Equal(t, []string{"default"}, configs, said)
			if bad {
				assert.Contains(t, said, "bad")
			}
			result, err := s.c.Configure(t.Context(), s.addOn)
			require.NoError(t, err)
			after := s.addOn.DeepCopy()
			result.Record(after, addon.Progress{Now: s.clock.Now()})
			assert.Equal(t, "Undone", meta.FindStatusCondition(after.Status.Conditions, names.ConditionRolloutFailed).Reason)
		})
	}
}
