package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/transport"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/names"
	kit "github.com/spokelet/spokelet/internal/reconcile"
)

// errUndecided is the result of a hub that has neither accepted nor denied the cluster.
var errUndecided = errors.New("the hub has not accepted it yet: spec.hubAcceptsClient is false")

// checkTimeout bounds each request to a hub that may be joined.
const checkTimeout = 10 * time.Second

// Selector selects one of several hubs. Its memory lasts as long as the process: it stays with a hub that it selected.
type Selector struct {
	// Scheme has the types of the requests.
	Scheme *runtime.Scheme
	// Wrap, unless nil, is put around the transports to the hubs.
	Wrap transport.WrapperFunc

	// selected is the URL of the hub that was selected last.
	selected string
}

// Stored is the hub of the stored credential.
type Stored struct {
	// Server is the hub; nil if there is none.
	Server *issue.HubServer
	// Valid reports whether the credential can still be used there.
	Valid bool
}

// Select returns the hub to join or to stay with; without a server there is none, and why is the reason. It selects the
// hub of the stored credential if that can be joined, else the first one that can (docs/reference/registration.md,
// "Several hubs"). Without such a hub a valid stored credential stays in use unless its hub denied the cluster: that
// hub may be away for a moment, or the bootstrap credential may have expired. Else the agent waits for the decision of
// a hub that has not accepted the cluster yet. It stays with one that this process selected before.
func (s *Selector) Select(
	ctx context.Context, candidates []Candidate, credential Stored, clusterName string,
) (target Target, why string) {
	stored := credential.Server
	var problems []string
	var own, undecided Target
	keeps := false // the stored credential
	for _, at := range order(candidates, stored) {
		one := candidates[at]
		if one.Problem != nil {
			problems = append(problems, one.Problem.Error())
			continue
		}
		found, err := s.check(ctx, one.Target, clusterName)
		waiting := errors.Is(err, errUndecided) && one.Server.Server == s.selected
		if err == nil || (waiting && !keeps) {
			s.selected = one.Server.Server
			return one.Target, ""
		}
		if errors.Is(err, errUndecided) && undecided.Server.Server == "" {
			undecided = one.Target
		}
		problems = append(problems, fmt.Sprintf("hub %s of bootstrap kubeconfig %s: %v", one.Server.Server, one.Source, err))
		if (found == nil || !Denied(found)) && stored != nil && one.Server.Server == stored.Server {
			own.Server, keeps = one.Server, credential.Valid && !errors.Is(err, errUndecided)
		}
	}
	if undecided.Server.Server != "" && !keeps {
		s.selected = undecided.Server.Server
		return undecided, ""
	}
	return own, "no hub can be joined: " + strings.Join(problems, "; ")
}

// order returns the order in which hubs are checked: the one of the stored credential, then as they are configured.
func order(candidates []Candidate, stored *issue.HubServer) []int {
	order := make([]int, 0, len(candidates))
	for at := range candidates {
		order = append(order, at)
	}
	rank := func(c Candidate) int {
		if c.Problem == nil && stored != nil && c.Server.Server == stored.Server {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(order, func(a, b int) int { return rank(candidates[a]) - rank(candidates[b]) })
	return order
}

// check returns why the cluster cannot join a hub now, and the ManagedCluster that the hub has, as far as it was read;
// nil if there is none. Unless that is denied, the error may go away.
func (s *Selector) check(ctx context.Context, target Target, clusterName string,
) (*clusterv1.ManagedCluster, error) {
	config, err := Parse(target.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent, config.Timeout = names.FieldManagerWork, checkTimeout
	if s.Wrap != nil {
		config.Wrap(s.Wrap)
	}
	hub, err := client.New(config, client.Options{Scheme: s.Scheme})
	if err != nil {
		return nil, fmt.Errorf("building a client: %w", err)
	}
	for _, right := range requiredRights() {
		review := &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right},
		}
		if err := hub.Create(ctx, review); err != nil {
			return nil, fmt.Errorf("asking what the bootstrap credential may do: %w", err)
		}
		if !review.Status.Allowed {
			return nil, fmt.Errorf("the bootstrap credential may not %s %s", right.Verb, right.Resource)
		}
	}
	own := &clusterv1.ManagedCluster{}
	switch err := hub.Get(ctx, types.NamespacedName{Name: clusterName}, own); {
	case apierrors.IsNotFound(err):
		return nil, nil // absence is an answer here
	case err != nil:
		return nil, fmt.Errorf("reading ManagedCluster %s: %w", clusterName, err)
	}
	switch {
	case Denied(own):
		return own, fmt.Errorf("it denied ManagedCluster %s: spec.hubAcceptsClient is false", clusterName)
	case !own.Spec.HubAcceptsClient:
		return own, fmt.Errorf("ManagedCluster %s: %w", clusterName, errUndecided)
	}
	return own, nil
}

// requiredRights returns what a bootstrap credential has to be allowed (docs/reference/registration.md, "Bootstrap
// credential").
func requiredRights() []authorizationv1.ResourceAttributes {
	var rights []authorizationv1.ResourceAttributes
	for _, verb := range []string{"create", "get"} {
		rights = append(rights, authorizationv1.ResourceAttributes{
			Group: clusterv1.GroupName, Resource: "managedclusters", Verb: verb,
		})
	}
	for _, verb := range []string{"create", "get", "list", "watch"} {
		rights = append(rights, authorizationv1.ResourceAttributes{
			Group: "certificates.k8s.io", Resource: "certificatesigningrequests", Verb: verb,
		})
	}
	return rights
}

// Denied reports whether the hub withdrew its acceptance of a cluster. A cluster that was never accepted may still be:
// an agent that waits for that must not move on to the next hub.
func Denied(own *clusterv1.ManagedCluster) bool {
	return !own.Spec.HubAcceptsClient &&
		meta.FindStatusCondition(own.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted) != nil
}

// DenialWatch ends the phase at a hub of several that denies the cluster.
type DenialWatch struct {
	// Hub is the hub.
	Hub cluster.Cluster
	// Cluster is the name of the cluster.
	Cluster string
	// End ends the phase; it must not block.
	End func(reason string)
}

// SetupWithManager adds the watch to mgr.
func (d *DenialWatch) SetupWithManager(mgr ctrl.Manager) error {
	check := func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
		var own clusterv1.ManagedCluster
		err := d.Hub.GetClient().Get(ctx, request.NamespacedName, &own)
		if err == nil && request.Name == d.Cluster && Denied(&own) {
			d.End("the hub denied the cluster")
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	err := ctrl.NewControllerManagedBy(mgr).Named("agent.hubs").WithOptions(kit.Options(1)).
		WatchesRawSource(source.Kind(d.Hub.GetCache(), client.Object(&clusterv1.ManagedCluster{}),
			&handler.EnqueueRequestForObject{})).
		Complete(reconcile.Func(check))
	if err != nil {
		return fmt.Errorf("setting up agent.hubs: %w", err)
	}
	return nil
}
