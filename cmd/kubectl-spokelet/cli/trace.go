package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/show"
	"github.com/spokelet/spokelet/internal/names"
)

// tracing is one trace.
type tracing struct {
	// cluster and hub read the two API servers; hub is nil where none was named.
	cluster, hub *fleet.Reader
	mapper       meta.RESTMapper
	// of is the name of the cluster on the hub, named where that is from, and agents the namespace of its agent.
	of, named, agents string

	facts report.TraceFacts
}

// traceFlags are the flags of trace.
type traceFlags struct{ context, kubeconfig, cluster, agents string }

// trace returns the command that leads from an object of a managed cluster up to who wanted it.
func (p *Plugin) trace() *cobra.Command {
	var flags traceFlags
	c := &cobra.Command{
		Use:   "trace KIND/NAME [-n NAMESPACE] --context SPOKE [--hub-context HUB]",
		Short: "Lead from an object of a managed cluster up to its work, its add-on and who wanted it",
		Long: "trace reads a managed cluster with the context of --context, and follows an object by its owners to the " +
			"work that applied it. With a context of the hub (--hub-context, or a bundle of it with --from) it goes on to the " +
			"add-on, its template and configurations, the placement, and the ClusterManagementAddOn. It reads metadata alone.",
		Example: "  kubectl spokelet trace deployment/agent -n logs --context store-077 --hub-context hub",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				if kind, name, _ := strings.Cut(args[0], "/"); kind != "" && name != "" && !strings.Contains(name, "/") {
					return nil
				}
			}
			return fmt.Errorf("%w: it is trace KIND/NAME", errUse)
		},
		RunE: func(c *cobra.Command, args []string) error { return p.traced(c.Context(), flags, args[0]) },
	}
	f := c.Flags()
	f.StringVar(&flags.context, "hub-context", "", "go on to the hub with this context")
	f.StringVar(&flags.kubeconfig, "hub-kubeconfig", "", "the kubeconfig of the hub; empty means that of the cluster")
	f.StringVar(&flags.cluster, "cluster", "", "the name of the cluster on the hub; empty means that its agent says it")
	f.StringVar(&flags.agents, "agent-namespace", names.NamespaceAgent, "the namespace of the agent on the cluster")
	return c
}

// traced traces an object and writes what was found.
func (p *Plugin) traced(ctx context.Context, flags traceFlags, what string) error {
	if err := p.validOutput(); err != nil {
		return err
	}
	t, err := p.tracing(flags)
	if err != nil {
		return err
	}
	kind, name, _ := strings.Cut(what, "/")
	if err := p.start(ctx, t, kind, name); err != nil {
		return err
	}
	var silent error
	if t.hub != nil && len(t.facts.Records) > 0 {
		t.facts.Hub = t.hub.Source.Name()
		if silent = t.onHub(ctx); silent != nil {
			why := fleet.Gap{What: "the hub", Why: silent.Error(), Silent: true}
			t.hub.Gaps = append(t.hub.Gaps, why)
		}
	}
	gaps := t.cluster.Gaps
	if t.hub != nil {
		gaps = append(gaps, t.hub.Gaps...)
	}
	trace := report.TraceOf(t.facts)
	if len(t.facts.Objects) == 0 && len(t.cluster.Gaps) > 0 {
		return fmt.Errorf("%w: %w", errBlind, gapsOf(t.cluster))
	}
	if err := p.writeTrace(trace, gaps); err != nil {
		return err
	}
	switch {
	case silent != nil:
		return fmt.Errorf("%w: %w", errBlind, silent)
	case trace.Problem != nil:
		return errProblem
	}
	return nil
}

// writeTrace writes a trace.
func (p *Plugin) writeTrace(trace report.Trace, gaps []fleet.Gap) error {
	if done, err := p.encoded(answer{Kind: "trace", Hub: trace.Hub, Answer: trace, Gaps: gaps}); done {
		return err
	}
	t := p.terminal()
	if p.output != outputName {
		return errors.Join(t.Trace(trace), t.Gaps(gaps))
	}
	for _, link := range trace.Links {
		if _, err := fmt.Fprintf(t.Out, "%s/%s\n", strings.ToLower(show.Safe(link.Kind)), show.Safe(link.Name)); err != nil {
			return err
		}
	}
	return nil
}

// tracing returns the readers of a trace. Of a bundle, the clock is not taken: the cluster is looked at now.
func (p *Plugin) tracing(flags traceFlags) (*tracing, error) {
	own := p.flags(*p.config.Context, "")
	own.Namespace = p.config.Namespace
	cluster, err := readerOf(own, true)
	if err != nil {
		return nil, err
	}
	mapper, err := own.ToRESTMapper()
	if err != nil {
		return nil, fmt.Errorf("%w: reading the kubeconfig: %w", errUse, err)
	}
	t := &tracing{cluster: cluster, mapper: mapper, of: flags.cluster, agents: flags.agents}
	switch {
	case p.from != "":
		bundle, err := fleet.OpenBundle(p.from)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errBlind, err)
		}
		t.hub = &fleet.Reader{Source: bundle}
	case flags.context != "" || flags.kubeconfig != "":
		if t.hub, err = readerOf(p.flags(flags.context, flags.kubeconfig), false); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// start finds the object and what owns it, up to the records of the works that applied it.
func (p *Plugin) start(ctx context.Context, t *tracing, kind, name string) error {
	if _, err := t.cluster.Source.Version(ctx); err != nil {
		return fmt.Errorf("%w: %w", errBlind, err)
	}
	mapping, err := mappingOf(t.mapper, kind)
	if err != nil {
		return err
	}
	namespace := ""
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if namespace, err = p.liveNamespace(); err != nil {
			return err
		}
	}
	t.facts = report.TraceFacts{
		Kind: mapping.GroupVersionKind.Kind, Namespace: namespace, Name: name, Cluster: t.cluster.Source.Name(),
	}
	return t.climb(ctx, mapping, namespace, name)
}

// mappingOf finds what a person calls a kind, as kubectl does.
func mappingOf(mapper meta.RESTMapper, kind string) (*meta.RESTMapping, error) {
	full, group := apischema.ParseResourceArg(strings.ToLower(kind))
	if full == nil {
		full = &apischema.GroupVersionResource{Group: group.Group, Resource: group.Resource}
	}
	found, err := mapper.KindFor(*full)
	if err != nil {
		return nil, fmt.Errorf("%w: finding the kind %q: %w", errUse, kind, err)
	}
	mapping, err := mapper.RESTMapping(found.GroupKind(), found.Version)
	if err != nil {
		return nil, fmt.Errorf("%w: finding the kind %q: %w", errUse, kind, err)
	}
	return mapping, nil
}

// maxOwners is how many owners above each other are followed.
const maxOwners = 10

// climb reads an object, what owns it, what owns that, and so on.
func (t *tracing) climb(ctx context.Context, mapping *meta.RESTMapping, namespace, name string) error {
	for range maxOwners {
		o, err := t.object(ctx, mapping, namespace, name)
		if err != nil || o == nil {
			return err
		}
		t.facts.Objects = append(t.facts.Objects, *o)
		owners := o.Metadata.Owners
		var records []string
		for _, owner := range owners {
			if owner.Kind == "AppliedManifestWork" && strings.HasPrefix(owner.APIVersion, workv1.GroupName+"/") {
				records = append(records, owner.Name)
			}
		}
		if len(records) > 0 || len(owners) == 0 {
			return t.records(ctx, mapping, records)
		}
		owner := owners[0]
		if i := slices.IndexFunc(owners, controls); i >= 0 {
			owner = owners[i]
		}
		version, err := apischema.ParseGroupVersion(owner.APIVersion)
		if err != nil {
			return fmt.Errorf("%w: reading the owner of %s: %w", errBlind, name, err)
		}
		if mapping, err = t.mapper.RESTMapping(version.WithKind(owner.Kind).GroupKind(), version.Version); err != nil {
			return nil //nolint:nilerr // A kind that the cluster does not serve leads no further, which the answer says.
		}
		name = owner.Name
		if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
			namespace = ""
		}
	}
	return nil
}

// object reads the metadata of an object; nil where it does not exist or may not be read.
func (t *tracing) object(ctx context.Context, of *meta.RESTMapping, namespace, name string) (*fleet.Traced, error) {
	resource := fleet.Resource{
		Group: of.Resource.Group, Version: of.Resource.Version, Plural: of.Resource.Resource, Namespaced: namespace != "",
	}
	q := fleet.Query{Resource: resource, Namespace: namespace, Name: name}
	return tracedObject(ctx, t.cluster, q, of.GroupVersionKind.Kind)
}

// tracedObject reads the metadata of an object; nil where it does not exist or may not be read.
func tracedObject(ctx context.Context, r *fleet.Reader, q fleet.Query, kind string) (*fleet.Traced, error) {
	q.Partial = true
	found, err := fleet.Read[fleet.Traced](ctx, r, q)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	found[0].Kind = kind
	return &found[0], nil
}

// records reads the AppliedManifestWorks of these names or, where there are none, those that list the last object: an
// object that stays when its work goes has no owner.
func (t *tracing) records(ctx context.Context, mapping *meta.RESTMapping, owners []string) error {
	all, err := fleet.Read[fleet.Record](ctx, t.cluster, fleet.Query{Resource: fleet.Records()})
	if err != nil {
		return err
	}
	last := t.facts.Objects[len(t.facts.Objects)-1]
	for i := range all {
		r := &all[i]
		lists := slices.ContainsFunc(r.Status.Applied, func(a fleet.Applied) bool {
			return a.Group == mapping.Resource.Group && a.Resource == mapping.Resource.Resource &&
				a.Namespace == last.Metadata.Namespace && a.Name == last.Metadata.Name
		})
		if !slices.Contains(owners, r.Metadata.Name) && (len(owners) > 0 || !lists) {
			continue
		}
		q := fleet.Query{Resource: fleet.Records(), Name: r.Metadata.Name}
		owned, err := tracedObject(ctx, t.cluster, q, "AppliedManifestWork")
		if err != nil {
			return err
		}
		if owned != nil {
			t.facts.Records = append(t.facts.Records, report.TracedRecord{Record: *r, Owned: *owned})
		}
	}
	return nil
}

// controls reports whether an owner is the controller of an object.
func controls(owner metav1.OwnerReference) bool { return owner.Controller != nil && *owner.Controller }
