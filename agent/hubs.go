package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spokelet/spokelet/csr"
	kit "github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/lease"
)

// errUndecided says that a hub has not accepted the cluster, and has not denied it either.
var errUndecided = errors.New("the hub has not accepted it yet: spec.hubAcceptsClient is false")

// checkTimeout bounds each request that finds out whether a hub can be joined.
const checkTimeout = 10 * time.Second

// chooseHub returns the way to the hub that this phase is about; without a server there is none, and why says so. With
// one bootstrap kubeconfig there is nothing to choose: where it cannot be used, the stored credential leads.
func (a *agent) chooseHub(ctx context.Context, v view, clusterName string) (boot bootstrap, why string) {
	stored := v.storedServer()
	if a.config.Gates.MultipleHubs {
		return a.chooseAmong(ctx, v.found, stored, clusterName)
	}
	if one := v.found[0]; one.problem == nil {
		return one.bootstrap, ""
	}
	if stored != nil {
		boot.server = *stored
	}
	return boot, problems(v.found)
}

// chooseAmong chooses among several hubs (contract, registration 1.12): the one that the stored credential is for if
// it passes the check, else the first that does. A hub that has not accepted the cluster does not pass, but it is
// waited for where no other does, and where this process chose it before. When none is left, the stored credential
// stays in use unless its hub denied the cluster: a bootstrap credential that expired meanwhile says nothing about
// it.
func (a *agent) chooseAmong(
	ctx context.Context, found []finding, stored *csr.HubServer, clusterName string,
) (bootstrap, string) {
	var told []string
	var fallback, undecided bootstrap
	for _, at := range hubOrder(found, stored) {
		one := found[at]
		if one.problem != nil {
			told = append(told, one.problem.Error())
			continue
		}
		denied, err := a.checkHub(ctx, one.bootstrap, clusterName)
		if err == nil || (errors.Is(err, errUndecided) && one.server.Server == a.chosen) {
			a.chosen = one.server.Server
			return one.bootstrap, ""
		}
		if errors.Is(err, errUndecided) && undecided.server.Server == "" {
			undecided = one.bootstrap
		}
		told = append(told, fmt.Sprintf("hub %s of bootstrap kubeconfig %s: %v", one.server.Server, one.source, err))
		if !denied && stored != nil && one.server.Server == stored.Server {
			fallback.server = one.server
		}
	}
	if undecided.server.Server != "" {
		a.chosen = undecided.server.Server
		return undecided, ""
	}
	return fallback, "no hub can be joined: " + strings.Join(told, "; ")
}

// hubOrder is the order in which hubs are tried: the one that the stored credential is for, then as they are listed.
func hubOrder(found []finding, stored *csr.HubServer) []int {
	order := make([]int, 0, len(found))
	for at := range found {
		order = append(order, at)
	}
	slices.SortStableFunc(order, func(a, b int) int { return rank(found[a], stored) - rank(found[b], stored) })
	return order
}

func rank(f finding, stored *csr.HubServer) int {
	if f.problem == nil && stored != nil && f.server.Server == stored.Server {
		return 0
	}
	return 1
}

// checkHub finds out whether the cluster can join with a bootstrap kubeconfig. denied tells that the hub does not want
// it; any other error may go away.
func (a *agent) checkHub(ctx context.Context, boot bootstrap, clusterName string) (denies bool, err error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(boot.kubeconfig)
	if err != nil {
		return false, err
	}
	config.UserAgent, config.Timeout = userAgent, checkTimeout
	wrapTransport(config, a.config.WrapTransport)
	hub, err := client.New(config, client.Options{Scheme: a.scheme})
	if err != nil {
		return false, fmt.Errorf("building a client: %w", err)
	}
	for _, wanted := range bootstrapRights() {
		review := &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &wanted},
		}
		if err := hub.Create(ctx, review); err != nil {
			return false, fmt.Errorf("asking what the bootstrap credential may do: %w", err)
		}
		if !review.Status.Allowed {
			return false, fmt.Errorf("the bootstrap credential may not %s %s", wanted.Verb, wanted.Resource)
		}
	}
	var own clusterv1.ManagedCluster
	switch err := hub.Get(ctx, types.NamespacedName{Name: clusterName}, &own); {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading ManagedCluster %s: %w", clusterName, err)
	}
	switch {
	case denied(&own):
		return true, fmt.Errorf("it denied ManagedCluster %s: spec.hubAcceptsClient is false", clusterName)
	case !own.Spec.HubAcceptsClient:
		return false, fmt.Errorf("ManagedCluster %s: %w", clusterName, errUndecided)
	}
	return false, nil
}

// bootstrapRights is what a bootstrap credential has to be allowed (contract, registration 1.3).
func bootstrapRights() []authorizationv1.ResourceAttributes {
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

// denied reports whether the hub does not want a cluster that it knew. One that it never accepted may still be
// accepted: an agent that waits for that must not wander to the next hub.
func denied(own *clusterv1.ManagedCluster) bool {
	return !own.Spec.HubAcceptsClient &&
		meta.FindStatusCondition(own.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted) != nil
}

// denial ends a phase at a hub of several that denies the cluster.
type denial struct {
	hub     cluster.Cluster
	cluster string
	end     context.CancelCauseFunc
}

// SetupWithManager adds the watch to mgr.
func (d *denial) SetupWithManager(mgr ctrl.Manager) error {
	look := func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
		var own clusterv1.ManagedCluster
		err := d.hub.GetClient().Get(ctx, request.NamespacedName, &own)
		if err == nil && request.Name == d.cluster && denied(&own) {
			d.end(phaseOverError("the hub denied the cluster"))
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	err := ctrl.NewControllerManagedBy(mgr).Named("agent.hubs").WithOptions(kit.Options(1)).
		WatchesRawSource(source.Kind(d.hub.GetCache(), client.Object(&clusterv1.ManagedCluster{}),
			&handler.EnqueueRequestForObject{})).
		Complete(reconcile.Func(look))
	if err != nil {
		return fmt.Errorf("setting up agent.hubs: %w", err)
	}
	return nil
}

// heardLeases notes each heartbeat that the hub took.
type heardLeases struct {
	lease.Leases
	heard func()
}

// Update implements lease.Leases.
func (h heardLeases) Update(
	ctx context.Context, l *coordinationv1.Lease, opts metav1.UpdateOptions,
) (*coordinationv1.Lease, error) {
	after, err := h.Leases.Update(ctx, l, opts)
	if err == nil {
		h.heard()
	}
	return after, err
}
