package template

import (
	"fmt"
	"strings"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/confighash"
)

// template returns the template that was chosen for an add-on on a cluster, and refuses one that asks for too much.
func (a *agent) template(request addon.Request) (*Compiled, error) {
	chosen := request.Choice.Counting(confighash.Template())
	if chosen == nil {
		return nil, noTemplate(request)
	}
	c, err := a.registry.read(*chosen)
	if err != nil {
		return nil, err
	}
	return c, CheckTrust(c.Template(), request.Cluster.Name, a.name, a.registry.home())
}

// noTemplate returns the error about an add-on for which no template was chosen.
func noTemplate(request addon.Request) error {
	for _, desired := range request.Choice.Desired {
		if desired.ConfigGroupResource == confighash.Template() {
			return &addon.NotReadyError{Message: "waiting for the rollout to choose an AddOnTemplate"}
		}
	}
	return &addon.NotReadyError{Message: fmt.Sprintf("no spec of add-on %s names an AddOnTemplate for cluster %s: name "+
		"one among the defaults of the ClusterManagementAddOn, in its placement, or in spec.configs of the add-on",
		request.AddOn.Name, request.Cluster.Name)}
}

// input returns the template and the configuration of an add-on on a cluster.
func (a *agent) input(request addon.Request) (*Compiled, Input, error) {
	c, err := a.template(request)
	if err != nil {
		return nil, Input{}, err
	}
	in := Input{Template: c.Template(), Cluster: request.Cluster, AddOn: a.name}
	if chosen := request.Choice.Counting(confighash.DeploymentConfig()); chosen != nil {
		if in.Config, in.Replicas, err = ReadConfig(chosen.Object); err != nil {
			return nil, Input{}, err
		}
	}
	return c, in, nil
}

// unused returns, of each kind of which an add-on names several configurations, which one counts. Users of other
// releases, and of other hubs, may expect another one.
func unused(choice addon.Choice) []string {
	var all []string
	for _, resource := range []addonv1beta1.ConfigGroupResource{confighash.DeploymentConfig(), confighash.Template()} {
		several := 0
		for _, config := range choice.Configs {
			if config.ConfigGroupResource == resource {
				several++
			}
		}
		if several < 2 {
			continue
		}
		kind, _ := confighash.Kind(resource)
		counts, which := choice.Counting(resource), "last"
		if choice.Precedence == addon.FirstCounts {
			which = "first"
		}
		all = append(all, fmt.Sprintf("Of %d configurations of kind %s, the %s counts, which is %s, and the others are not "+
			"used (--config-precedence).", several, kind.Kind, which,
			strings.TrimPrefix(counts.Namespace+"/"+counts.Name, "/")))
	}
	return all
}

// mirrorsOf returns the image mirrors: those of the configuration, else those of the cluster's annotation. The error is
// an addon.InvalidError.
func mirrorsOf(in Input) ([]addonv1beta1.ImageMirror, error) {
	if in.Config != nil && len(in.Config.Spec.Registries) > 0 {
		return in.Config.Spec.Registries, nil
	}
	return addon.ClusterImageRegistries(in.Cluster)
}

// resourcesOf returns the resources of a container from the last rule that matches it (docs/reference/hub.md,
// "Decoration of workloads"); false when no rule does. An id consists of resource, object and container, separated by
// colons. An init container gets resources only from a rule that ends in its name, since other rules are about the
// containers that keep running.
func resourcesOf(
	workload, container string, initial bool, rules []addonv1beta1.ContainerResourceRequirements,
) (int, bool) {
	id := workload + ":" + container
	for i := len(rules) - 1; i >= 0; i-- {
		rule := &rules[i]
		if !addon.MatchesID(rule.ContainerID, id) || (initial && !strings.HasSuffix(rule.ContainerID, ":"+container)) {
			continue
		}
		return i, true
	}
	return 0, false
}
