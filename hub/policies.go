package hub

import (
	"context"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spokelet/spokelet/hub/policy"
)

// policyPatience is how long policies that were just applied may take to be in force.
const policyPatience = 30 * time.Second

// checkPolicies returns an error when the admission policies of the hub are not in force. Where they are not required,
// it looks once and logs the same.
func checkPolicies(ctx context.Context, c Config, cfg *rest.Config) error {
	reader, err := uncached(cfg, nil)
	if err != nil {
		return err
	}
	checker := policy.Checker{Client: reader, Policies: policiesFor}
	if c.RequirePolicies {
		checker.Patience = policyPatience
		return checker.Wait(ctx)
	}
	if err := checker.Wait(ctx); err != nil {
		ctrl.LoggerFrom(ctx).WithName("hub.policy").Info("starting all the same, because of --require-policies=false",
			"warning", err.Error())
	}
	return nil
}
