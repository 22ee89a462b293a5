package configure

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/policies"
)

// pausing is a hub where add-on hello is paused, or its policy cannot be decoded.
type pausing struct {
	client.Reader
	bad bool
}

func (p pausing) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if p.bad {
		return &decode.Error{Bad: decode.Bad{Cause: "bad"}}
	}
	if policy, is := into.(*policies.AddOnPolicy); is {
		policy.Name, policy.Spec.Paused = "hello", &policies.Pause{}
	}
	return nil
}

func (pausing) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// What a ManagedClusterAddOn names itself is the decision of who writes that.
func TestAConfigurationOfItsOwnTakesEffectWhilePaused(t *testing.T) {
	s := newSelected(t, "default", nil)
	s.c.Gates = &gate.Reader{Client: pausing{}}
	s.addOn.Spec.Configs = []addonv1beta1.AddOnConfig{fixture.DeploymentConfig("high")}
	configs, said, _ := s.pass(t)
	assert.Contains(t, configs, "high", said)
}

// "Repairs, credentials, health and removals go on at any time": what has its content needs no gate.
func TestAPolicyThatCannotBeDecodedStopsNoRemoval(t *testing.T) {
	s := newSelected(t, "low", nil) // it is to have "default"
	s.c.Gates = &gate.Reader{Client: pausing{bad: true}}
	now := metav1.NewTime(s.clock.Now())
	_, err := s.c.Configure(t.Context(), s.addOn)
	require.NoError(t, err, "it keeps what it has, and is repaired")
	s.addOn.DeletionTimestamp = &now
	_, err = s.c.Configure(t.Context(), s.addOn)
	require.NoError(t, err, "it is deleted with what it has")
}
