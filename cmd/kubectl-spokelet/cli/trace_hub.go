package cli

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
)

// onHub finds the works of the records, and all that leads to them. The error is that of a hub that does not answer.
func (t *tracing) onHub(ctx context.Context) error {
	if t.of == "" {
		if err := t.nameCluster(ctx); err != nil {
			return err
		}
	}
	for i := range t.facts.Records {
		work, err := t.work(ctx, t.facts.Records[i].Spec.Work)
		if err != nil {
			return err
		}
		t.facts.Works = append(t.facts.Works, work)
	}
	return nil
}

// nameCluster finds the name of the cluster in the Deployment of its agent. Where that cannot be read, or does not
// answer any more, the name stays unknown.
func (t *tracing) nameCluster(ctx context.Context) error {
	q := fleet.Query{
		Resource: fleet.Deployments(), Namespace: t.agents, Selector: "app in (" + strings.Join(agentApps(), ",") + ")",
	}
	agents, err := fleet.Read[appsv1.Deployment](ctx, t.cluster, q)
	if err != nil {
		return err
	}
	for i := range agents {
		for _, container := range agents[i].Spec.Template.Spec.Containers {
			if name := clusterOf(container); name != "" {
				t.of, t.named = name, "by the Deployment of the agent"
				return nil
			}
		}
	}
	return nil
}

// clusterOf returns the name of the cluster in the arguments of an agent; empty where they do not say it.
func clusterOf(container corev1.Container) string {
	for _, argument := range append(container.Command, container.Args...) {
		flag, value, _ := strings.Cut(argument, "=")
		if name := strings.TrimLeft(flag, "-"); name != "spoke-cluster-name" && name != "cluster-name" {
			continue
		}
		return expand(value, container.Env)
	}
	return ""
}

// maxClusterName is how many bytes the name of a cluster has at most. Who may write a Deployment chooses its variables.
const maxClusterName = 253

// expand puts the values of variables into an argument once, as they are in the container; empty where the result is
// longer than any name. "$$" is "$".
func expand(argument string, variables []corev1.EnvVar) string {
	values := map[string]string{}
	for _, v := range variables {
		values[v.Name] = v.Value
	}
	var name strings.Builder
	for argument != "" && name.Len() <= maxClusterName {
		before, after, found := strings.Cut(argument, "$")
		name.WriteString(before)
		argument = after
		if !found {
			break
		}
		variable, rest, closed := strings.Cut(strings.TrimPrefix(after, "("), ")")
		value, known := values[variable]
		switch {
		case strings.HasPrefix(after, "$"):
			name.WriteByte('$')
			argument = after[1:]
		case strings.HasPrefix(after, "(") && closed && known:
			name.WriteString(value)
			argument = rest
		default:
			name.WriteByte('$')
		}
	}
	if name.Len() > maxClusterName {
		return ""
	}
	return name.String()
}

// works are ManifestWorks.
func works() fleet.Resource {
	return fleet.ResourceOf[fleet.Work]()
}

// ofAddOns is a resource of the API of add-ons.
func ofAddOns(plural string, namespaced bool) fleet.Resource {
	version := ""
	if plural == "addontemplates" { // OCM serves them in no other version.
		version = "v1alpha1"
	}
	return fleet.Resource{Group: addonv1beta1.GroupName, Version: version, Plural: plural, Namespaced: namespaced}
}

// work finds a work by the name in a record.
func (t *tracing) work(ctx context.Context, name string) (report.TracedWork, error) {
	w := report.TracedWork{Name: name, Cluster: t.of, Named: t.named}
	q := fleet.Query{Resource: works(), Namespace: t.of, Name: name, Partial: true}
	found, err := fleet.Read[fleet.Traced](ctx, t.hub, q)
	switch {
	case err != nil:
		return w, err
	case t.of == "" && len(found) != 1:
		w.Unknown = fmt.Sprintf("the name of the cluster is not known, and %d clusters have a work %s", len(found), name)
		return w, nil
	case len(found) == 0:
		w.Links = []report.Link{t.unread("work", "ManifestWork", q)}
		return w, nil
	}
	work := found[0]
	work.Kind, w.Cluster = "ManifestWork", work.Metadata.Namespace
	link := report.LinkOf("work", "", work)
	addOn, namespace := work.Metadata.Labels[names.LabelAddonName], work.Metadata.Labels[names.LabelAddonNamespace]
	if namespace == "" {
		namespace = w.Cluster
	}
	if addOn == "" {
		link.Evidence = "it belongs to no add-on"
		if set := work.Metadata.Labels["work.open-cluster-management.io/manifestworkreplicaset"]; set != "" {
			link.Evidence = "made by ManifestWorkReplicaSet " + set
		}
		w.Links = []report.Link{link}
		return w, nil
	}
	link.Evidence = "a work of add-on " + addOn
	further, err := t.addOn(ctx, namespace, addOn)
	w.Links = append([]report.Link{link}, further...)
	return w, err
}

// addOn leads from an add-on to its configurations, its definition and the placement that wants it.
func (t *tracing) addOn(ctx context.Context, cluster, name string) ([]report.Link, error) {
	link, err := t.link(ctx, "add-on", "ManagedClusterAddOn", fleet.Query{
		Resource: ofAddOns("managedclusteraddons", true), Namespace: cluster, Name: name,
	})
	if err != nil {
		return nil, err
	}
	links := []report.Link{link}
	addOn, err := fleet.Get[fleet.AddOn](ctx, t.hub, cluster, name)
	if err != nil {
		return links, err
	}
	if addOn != nil {
		configs, err := t.configs(ctx, addOn)
		if err != nil {
			return links, err
		}
		links = append(links, configs...)
	}
	definition, err := t.definition(ctx, cluster, name)
	return append(links, definition...), err
}

// link reads the metadata of an object of the hub.
func (t *tracing) link(ctx context.Context, step, kind string, q fleet.Query) (report.Link, error) {
	found, err := tracedObject(ctx, t.hub, q, kind)
	if err != nil {
		return report.Link{}, err
	}
	if found != nil {
		return report.LinkOf(step, "", *found), nil
	}
	return t.unread(step, kind, q), nil
}

// unread is the link of an object that does not exist, or that may not be read.
func (t *tracing) unread(step, kind string, q fleet.Query) report.Link {
	l := report.Link{Step: step, Kind: kind, Namespace: q.Namespace, Name: q.Name}
	switch {
	case t.hub.Lacks(q.Resource.Plural):
		l.Evidence = "it may not be read"
	case t.hub.LacksObject(q.Resource.Plural, fleet.KeyOf(q.Namespace, q.Name)):
		l.Evidence = "it cannot be decoded"
	default:
		l.Missing = true
	}
	return l
}

// configs leads to the template and the configurations of an add-on.
func (t *tracing) configs(ctx context.Context, addOn *fleet.AddOn) ([]report.Link, error) {
	var links []report.Link
	templated := false
	for _, config := range addOn.Status.ConfigReferences {
		at := config.Desired
		if at == nil {
			continue
		}
		step, kind := "config", config.Resource
		switch config.Resource {
		case "addontemplates":
			step, kind, templated = "template", "AddOnTemplate", true
		case "addondeploymentconfigs":
			kind = "AddOnDeploymentConfig"
		default: // Its version is not known; that it is named is what can be said.
			links = append(links, report.Link{Step: step, Kind: kind, Namespace: at.Namespace, Name: at.Name})
			continue
		}
		resource := ofAddOns(config.Resource, at.Namespace != "")
		link, err := t.link(ctx, step, kind, fleet.Query{Resource: resource, Namespace: at.Namespace, Name: at.Name})
		if err != nil {
			return links, err
		}
		link.Evidence = strings.TrimSpace(link.Evidence + " in force")
		if config.Applied == nil || config.Applied.SpecHash != at.SpecHash {
			link.Evidence = "not in force yet"
		}
		links = append(links, link)
	}
	if !templated {
		links = append(links, report.Link{
			Step: "program", Kind: "Program", Name: addOn.Metadata.Name,
			Evidence: "no AddOnTemplate: a program of the add-on makes the manifests; the writers of the work name it",
		})
	}
	return links, nil
}

// definition leads to the ClusterManagementAddOn, and to the placement that selects the cluster.
func (t *tracing) definition(ctx context.Context, cluster, name string) ([]report.Link, error) {
	definition, err := fleet.Get[fleet.Definition](ctx, t.hub, "", name)
	if err != nil {
		return nil, err
	}
	var links []report.Link
	if definition != nil {
		for _, ref := range definition.Spec.InstallStrategy.Placements {
			link, err := t.placement(ctx, cluster, ref)
			if err != nil {
				return links, err
			}
			links = append(links, link)
		}
	}
	link, err := t.link(ctx, "definition", "ClusterManagementAddOn", fleet.Query{
		Resource: ofAddOns("clustermanagementaddons", false), Name: name,
	})
	if definition != nil && len(definition.Spec.InstallStrategy.Placements) == 0 {
		link.Evidence = "the install strategy is Manual: a person or a program made the ManagedClusterAddOn"
	}
	return append(links, link), err
}

// placement leads to a placement, and says which of its decisions has the cluster.
func (t *tracing) placement(ctx context.Context, cluster string, ref fleet.PlacementRef) (report.Link, error) {
	placements := fleet.Resource{Group: clusterv1.GroupName, Version: "v1beta1", Plural: "placements", Namespaced: true}
	q := fleet.Query{Resource: placements, Namespace: ref.Namespace, Name: ref.Name}
	link, err := t.link(ctx, "placement", "Placement", q)
	if err != nil {
		return link, err
	}
	of := fleet.Query{Namespace: ref.Namespace, Labels: map[string]string{names.LabelPlacement: ref.Name}}
	decisions, err := fleet.List[fleet.Decision](ctx, t.hub, of)
	if err != nil {
		return link, err
	}
	link.Evidence = "selects cluster " + message.Quote(cluster) + " in no decision"
	if t.hub.Lacks("placementdecisions") {
		link.Evidence = "its decisions may not be read"
	}
	for i := range decisions {
		for _, decision := range decisions[i].Status.Decisions {
			if decision.ClusterName == cluster {
				link.Evidence = "selects cluster " + cluster + " in PlacementDecision " + decisions[i].Metadata.Name
			}
		}
	}
	return link, nil
}
