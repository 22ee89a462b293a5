package template

import (
	"fmt"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/confighash"
)

// template returns the template that was chosen for an add-on on a cluster, and refuses one that asks for too much.
func (a *agent) template(request addon.Request) (*Compiled, error) {
	chosen := request.Choice.First(confighash.Template())
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

// input returns the template and the configuration of an add-on on a cluster. Of several AddOnDeploymentConfigs the
// first counts.
func (a *agent) input(request addon.Request) (*Compiled, Input, error) {
	c, err := a.template(request)
	if err != nil {
		return nil, Input{}, err
	}
	in := Input{Template: c.Template(), Cluster: request.Cluster, AddOn: a.name}
	if chosen := request.Choice.First(confighash.DeploymentConfig()); chosen != nil {
		if in.Config, err = ReadConfig(chosen.Object); err != nil {
			return nil, Input{}, err
		}
	}
	return c, in, nil
}
