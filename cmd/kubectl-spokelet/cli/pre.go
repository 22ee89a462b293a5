package cli

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
	"github.com/spokelet/spokelet/internal/names"
)

// before writes whether Spokelet can be installed on the hub.
func (p *Plugin) before(ctx context.Context) error {
	if err := p.validOutput(); err != nil {
		return err
	}
	hub, err := hubOf(p.config)
	if err != nil {
		return err
	}
	facts, err := readBefore(ctx, hub)
	if err != nil {
		return err
	}
	findings := report.JudgeBefore(facts)
	failed := []string{}
	for _, finding := range findings {
		if finding.State == report.Failed {
			failed = append(failed, finding.What)
		}
	}
	done, err := p.encoded(answer{Kind: "pre", Hub: hub.Name(), Answer: findings, names: failed})
	if !done && err == nil {
		err = p.terminal().Findings(findings)
	}
	if err == nil && len(failed) > 0 {
		return errProblem
	}
	return err
}

// readBefore reads by what it is judged whether Spokelet can be installed.
func readBefore(ctx context.Context, hub *fleet.Hub) (report.Before, error) {
	var b report.Before
	var err error
	if b.Kubernetes, err = hub.Version(ctx); err != nil {
		return b, err
	}
	for _, asked := range []struct {
		group, version, plural string
		is                     *bool
	}{
		{"admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", &b.Policies},
		{"operator.open-cluster-management.io", "v1", "clustermanagers", &b.OCM},
		{clusterv1.GroupName, "v1", "managedclusters", &b.Definitions},
	} {
		of := apischema.GroupVersionResource{Group: asked.group, Version: asked.version, Resource: asked.plural}
		if *asked.is, err = hub.Serves(ctx, of); err != nil {
			return b, err
		}
	}
	r := &fleet.Reader{Source: hub}
	if b.OCM { // The definition may be left of a hub that was moved.
		managers, err := fleet.Raw(ctx, r, fleet.Query{Resource: fleet.Resource{
			Group: "operator.open-cluster-management.io", Version: "v1", Plural: "clustermanagers",
		}})
		if err != nil {
			return b, err
		}
		b.OCM = len(managers) > 0 || len(r.Gaps) > 0
	}
	deployments, err := fleet.Raw(ctx, r, fleet.Query{
		Resource:  fleet.Resource{Group: "apps", Version: "v1", Plural: "deployments", Namespaced: true},
		Namespace: names.NamespaceHub, Name: "spokelet-hub", Partial: true,
	})
	if err != nil {
		return b, err
	}
	b.HubManager = len(deployments) > 0
	for _, group := range []struct{ group, plural, namespace string }{
		{"apiextensions.k8s.io", "customresourcedefinitions", ""}, {"", "namespaces", ""},
		{"rbac.authorization.k8s.io", "clusterroles", ""}, {"rbac.authorization.k8s.io", "clusterrolebindings", ""},
		{"admissionregistration.k8s.io", "validatingadmissionpolicies", ""},
		{"apps", "deployments", names.NamespaceHub}, {addonv1beta1.GroupName, "clustermanagementaddons", ""},
	} {
		may, err := hub.May(ctx, authorizationv1.ResourceAttributes{
			Verb: "create", Group: group.group, Resource: group.plural, Namespace: group.namespace,
		})
		if err != nil {
			return b, err
		}
		if !may {
			b.Lacks = append(b.Lacks, "create "+fleet.Resource{Group: group.group, Plural: group.plural}.String())
		}
	}
	return b, nil
}
