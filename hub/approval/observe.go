package approval

import (
	"cmp"
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csrs "github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// observe reads the facts. The error is that of reading the request; others are in facts.unknown.
func (r *Reconciler) observe(ctx context.Context, name string) (facts, error) {
	f := facts{now: r.Clock.Now(), trust: r.Trust, home: cmp.Or(r.Home, names.NamespaceHub), account: r.Account,
		unmarkedCAs: r.UnmarkedCAs, identity: r.Identity, maxLifetime: r.MaxLifetime}
	var csr certificatesv1.CertificateSigningRequest
	if err := r.Client.Get(ctx, types.NamespacedName{Name: name}, &csr); err != nil {
		return f, fmt.Errorf("reading certificate request %s: %w", name, err)
	}
	f.csr, f.stage = &csr, stageOf(&csr)
	switch _, _, addonLabel := csrs.Subject(&csr); {
	case addonLabel && f.stage != stageFinished:
		f.addon, f.unknown = r.observeAddon(ctx, &csr, f.stage)
	case f.stage == stageOpen:
		f.cluster, f.unknown = r.observeCluster(ctx, &csr)
	}
	return f, nil
}

// observeCluster returns the cluster of a request, nil when there is none. It asks the API server: a cache that is
// behind would let a joined cluster have a first credential once more, and a cluster that is denied keeps its right to
// renew until the hub manager has seen that.
func (r *Reconciler) observeCluster(
	ctx context.Context, csr *certificatesv1.CertificateSigningRequest,
) (*clusterv1.ManagedCluster, error) {
	name, _, _ := csrs.Subject(csr)
	return reconcile.Get(ctx, r.Live, types.NamespacedName{Name: name}, &clusterv1.ManagedCluster{})
}

func (r *Reconciler) observeAddon(
	ctx context.Context, csr *certificatesv1.CertificateSigningRequest, at stage,
) (*addonFacts, error) {
	clusterName, addonName, _ := csrs.Subject(csr)
	agent, ours, err := r.Agents.Agent(ctx, addonName)
	if err != nil {
		return nil, fmt.Errorf("finding the agent of add-on %s: %w", addonName, err)
	}
	a := &addonFacts{ours: ours}
	if !ours && (r.Identity != IdentityConfirmed || at != stageOpen || !forHub(csr)) {
		return a, nil
	}
	a.cluster, err = reconcile.Get(ctx, r.Client, types.NamespacedName{Name: clusterName}, &clusterv1.ManagedCluster{})
	if err != nil {
		return nil, err
	}
	if a.cluster == nil {
		return a, nil
	}
	addOn, err := r.AddOns.GetAddOn(ctx, types.NamespacedName{Namespace: clusterName, Name: addonName})
	if err != nil {
		return a, client.IgnoreNotFound(err)
	}
	if a.addon = addOn; !ours {
		return a, nil
	}
	request, err := r.request(ctx, a)
	if err != nil {
		return nil, err
	}
	resolved, err := agent.Resolve(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("computing the registrations of add-on %s/%s: %w", clusterName, addonName, err)
	}
	a.registrations = resolved.Registrations
	if approver, restricts := agent.(addon.Approver); restricts && at == stageOpen &&
		approve.JudgeAddon(csr, a.registrations).Decision == approve.DecisionApprove {
		a.objection = approver.CheckRequest(ctx, request, csr)
	}
	if at == stageUnsigned {
		if a.ca, a.signs, err = agent.SigningCA(ctx, request, csr.Spec.SignerName); err != nil {
			return nil, fmt.Errorf("finding the CA of signer %s of add-on %s/%s: %w",
				csr.Spec.SignerName, clusterName, addonName, err)
		}
	}
	return a, nil
}

// request returns the question about an add-on on its cluster, with the configuration that it runs with and the cluster
// that hosts it: the same question as for its objects.
func (r *Reconciler) request(ctx context.Context, a *addonFacts) (addon.Request, error) {
	configuration, err := r.Configurer.Configure(ctx, a.addon)
	if err == nil {
		err = configuration.Err
	}
	request := addon.Request{Cluster: a.cluster, AddOn: a.addon, Choice: configuration.Choice}
	if host := a.addon.Annotations[names.AnnotationHostingCluster]; host != "" && err == nil {
		request.Hosting, err = reconcile.Get(ctx, r.Client, types.NamespacedName{Name: host}, &clusterv1.ManagedCluster{})
	}
	return request, err
}
