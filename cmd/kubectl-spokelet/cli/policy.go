package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/internal/policies"
)

// addOnPolicies is the resource of AddOnPolicies.
func addOnPolicies() fleet.Resource { return fleet.ResourceOf[fleet.Policy]() }

// pause returns the command that pauses an add-on.
func (p *Plugin) pause() *cobra.Command {
	var reason string
	c := p.rules(func(name string, policy *policies.AddOnPolicy) (sentence, error) {
		return pausing(name, policy, reason), nil
	}, cobra.Command{
		Use: "pause addon NAME", Short: "Keep clusters from beginning to change",
		Long: "pause sets spec.paused of the AddOnPolicy of the add-on, and creates the policy where there is none. What a " +
			"cluster has begun is finished; repairs, credentials, health and removals go on.",
		Example: `  kubectl spokelet rollout pause addon logs --reason "incident 7"`,
	})
	c.Flags().StringVar(&reason, "reason", "", "why, for people who wait")
	return c
}

// ruling returns the write that follows of the policy of an add-on; the policy is nil where there is none.
type ruling func(name string, policy *policies.AddOnPolicy) (sentence, error)

// rules completes a command that writes the policy of an add-on.
func (p *Plugin) rules(decide ruling, c cobra.Command) *cobra.Command {
	var dry bool
	c.Args = oneAddOn
	c.RunE = func(c *cobra.Command, args []string) error { return p.rule(c.Context(), args[1], dry, decide) }
	c.Flags().BoolVar(&dry, "dry-run", false, "print what would be written, and write nothing")
	return &c
}

// pausing returns the write that pauses an add-on; policy is nil where there is none.
func pausing(name string, policy *policies.AddOnPolicy, reason string) sentence {
	paused := &policies.Pause{Reason: reason}
	edit := sentence{
		says: "AddOnPolicy " + name + ": spec.paused is set, so no cluster begins to change",
		Edit: fleet.Edit{Resource: addOnPolicies(), Name: name},
	}
	if policy == nil {
		gv := policies.GroupVersion()
		edit.New = map[string]any{
			"apiVersion": gv.String(), "kind": "AddOnPolicy", "metadata": metav1.ObjectMeta{Name: name},
			"spec": policies.AddOnPolicySpec{Paused: paused},
		}
		return edit
	}
	edit.Operations = sameUID(policy)
	if policy.Spec.Paused == nil && policy.Spec.Approval == "" && policy.Spec.Approved == nil {
		spec := map[string]any{"paused": paused}
		edit.Operations = append(edit.Operations, fleet.Operation{Op: "add", Path: "/spec", Value: spec})
		return edit
	}
	edit.Operations = append(edit.Operations, fleet.Operation{Op: "add", Path: "/spec/paused", Value: paused})
	return edit
}

// sameUID returns the operations that make a change one of this very policy, as it was read.
func sameUID(policy *policies.AddOnPolicy) []fleet.Operation {
	return []fleet.Operation{
		{Op: "test", Path: "/metadata/uid", Value: policy.UID},
		{Op: "test", Path: "/metadata/generation", Value: policy.Generation},
	}
}

// resume returns the command that ends a pause.
func (p *Plugin) resume() *cobra.Command {
	return p.rules(resuming, cobra.Command{
		Use: "resume addon NAME", Short: "Let a paused add-on go on",
		Long: "resume takes spec.paused off the AddOnPolicy of the add-on. Windows and approvals are as they were.",
	})
}

// resuming returns the write that ends a pause.
func resuming(name string, policy *policies.AddOnPolicy) (sentence, error) {
	if policy == nil || policy.Spec.Paused == nil {
		return sentence{}, fmt.Errorf("%w: add-on %s is not paused", errUse, name)
	}
	return sentence{
		says: "AddOnPolicy " + name + ": spec.paused is gone, so clusters may change again",
		Edit: fleet.Edit{
			Resource: addOnPolicies(), Name: name,
			Operations: append(sameUID(policy), fleet.Operation{Op: "remove", Path: "/spec/paused"}),
		},
	}, nil
}

// rule reads the policy of an add-on, and carries out and prints what follows of it.
func (p *Plugin) rule(ctx context.Context, name string, dry bool, decide ruling) error {
	if p.from != "" {
		return fmt.Errorf("%w: a bundle cannot be written to", errUse)
	}
	hub, err := hubOf(p.config)
	if err = errors.Join(p.validOutput(), err); err != nil {
		return err
	}
	r := &fleet.Reader{Source: hub}
	raw, err := fleet.Raw(ctx, r, fleet.Query{Resource: addOnPolicies(), Name: name})
	switch {
	case err != nil:
		return err
	case slices.ContainsFunc(r.Gaps, func(g fleet.Gap) bool { return g.Missing }):
		return fmt.Errorf("%w: this hub has no AddOnPolicies: they need the hub manager of Spokelet", errUse)
	case len(r.Gaps) > 0:
		return fmt.Errorf("%w: %w", errBlind, gapsOf(r))
	}
	var policy *policies.AddOnPolicy
	if len(raw) > 0 {
		policy = &policies.AddOnPolicy{}
		if err := json.Unmarshal(raw[0], policy); err != nil {
			return fmt.Errorf("decoding AddOnPolicy %s: %w", name, err)
		}
	}
	edit, err := decide(name, policy)
	if err != nil {
		return err
	}
	if err := p.carryOut(ctx, hub, []sentence{edit}, dry); err != nil || dry {
		return err
	}
	return p.comesIntoForce(ctx, r, name)
}
