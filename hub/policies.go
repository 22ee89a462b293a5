package hub

import (
	"context"
	"fmt"
	"net/http"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/policy"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
)

// policyTimeout is how long policies that were just applied may take to be in force.
const policyTimeout = 30 * time.Second

// checkPolicies returns an error when the admission policies of the hub are not in force. If they are not required, it
// checks once and logs the error.
func checkPolicies(ctx context.Context, c Config, cfg *rest.Config) error {
	reader, err := uncached(cfg, nil)
	if err != nil {
		return err
	}
	logExcess(ctx, c, reader)
	checker := policy.Checker{Client: reader, Policies: policiesFor}
	if c.RequirePolicies {
		checker.Timeout = policyTimeout
		return checker.Wait(ctx)
	}
	if err := checker.Wait(ctx); err != nil {
		ctrl.LoggerFrom(ctx).WithName("hub.policy").Info("starting all the same, because of --require-policies=false",
			"warning", err.Error())
	}
	return nil
}

// logExcess logs rights of the account of add-ons that no add-on needs: every right of that account counts as consent.
func logExcess(ctx context.Context, c Config, reader client.Client) {
	logger := ctrl.LoggerFrom(ctx).WithName("hub.policy")
	user := addOnsUser(c.Namespace)
	found, err := policy.Excess(ctx, reader, user)
	switch {
	case err != nil:
		logger.Error(err, "it is not known whether too much was granted for add-ons")
	case len(found) > 0:
		logger.Info("WARNING: this account was granted rights that no add-on needs, and templates may have them handed on; "+
			"on a hub that comes from OCM, delete the ClusterRoleBindings of its add-on manager to this account",
			"user", user, "rights", found)
	}
}

// uncached returns a client without a cache for policies and Secrets; a nil HTTP client means a new one.
func uncached(cfg *rest.Config, httpClient *http.Client) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme, admissionregistrationv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme, HTTPClient: httpClient})
	if err != nil {
		return nil, fmt.Errorf("building the client for policies and Secrets: %w", err)
	}
	return c, nil
}

// policiesFor returns the policies for a hub manager under a ServiceAccount.
func policiesFor(namespace, account string) [][]byte {
	return manifests.PoliciesFor(namespace, account, names.ServiceAccountAddons)
}
