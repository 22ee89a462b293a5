package template

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/confighash"
)

// agent is an add-on that is made of templates, which may differ from cluster to cluster.
type agent struct {
	configs    client.Reader
	management *addonv1beta1.ClusterManagementAddOn
	home       string
}

// About implements addon.Agent.
func (a *agent) About() addon.About {
	return addon.About{
		Name:             a.management.Name,
		SupportedConfigs: []addonv1beta1.ConfigGroupResource{confighash.DeploymentConfig(), confighash.Template()},
	}
}

// Registrations implements addon.Agent.
func (a *agent) Registrations(
	ctx context.Context, cluster *clusterv1.ManagedCluster, addOn *addonv1beta1.ManagedClusterAddOn,
) ([]addonv1beta1.RegistrationConfig, error) {
	t, err := a.template(ctx, addOn, asItIs)
	if err != nil {
		return nil, err
	}
	return Registrations(t, cluster.Name, addOn.Name)
}

// SigningCA implements addon.Agent.
func (a *agent) SigningCA(
	ctx context.Context, _ *clusterv1.ManagedCluster, addOn *addonv1beta1.ManagedClusterAddOn, signerName string,
) (types.NamespacedName, bool, error) {
	t, err := a.template(ctx, addOn, asItIs)
	if err != nil {
		return types.NamespacedName{}, false, err
	}
	secret, found := SigningCA(t, signerName, a.home)
	return secret, found, nil
}

// Setup implements addon.Agent.
func (a *agent) Setup(
	ctx context.Context, cluster *clusterv1.ManagedCluster, addOn *addonv1beta1.ManagedClusterAddOn,
) (addon.Setup, error) {
	in, err := a.input(ctx, cluster, addOn, asItIs)
	if err != nil {
		return addon.Setup{}, err
	}
	var setup addon.Setup
	if setup.Namespace, err = Namespace(in); err != nil {
		return addon.Setup{}, err
	}
	if setup.Permissions, err = Permissions(in.Template, cluster.Name, addOn.Name); err != nil {
		return addon.Setup{}, err
	}
	// An unknown probe leaves the health check as it is; Render says that it is unknown.
	setup.Health, _ = in.Template.health()
	return setup, nil
}

// Render implements addon.Agent. It waits until the rollout has let the cluster through, and renders only the very
// content that the rollout chose.
func (a *agent) Render(
	ctx context.Context, cluster *clusterv1.ManagedCluster, addOn *addonv1beta1.ManagedClusterAddOn,
) (addon.Rendering, error) {
	if !meta.IsStatusConditionTrue(addOn.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionConfigured) {
		return addon.Rendering{}, &addon.NotReadyError{Message: "waiting for the rollout to configure the add-on"}
	}
	in, err := a.input(ctx, cluster, addOn, asRolledOut)
	if err != nil {
		return addon.Rendering{}, err
	}
	return Render(in)
}

// input reads the template and the configuration of an add-on on a cluster.
func (a *agent) input(
	ctx context.Context, cluster *clusterv1.ManagedCluster, addOn *addonv1beta1.ManagedClusterAddOn, want content,
) (Input, error) {
	t, err := a.template(ctx, addOn, want)
	if err != nil {
		return Input{}, err
	}
	config, err := a.config(ctx, addOn, want)
	if err != nil {
		return Input{}, err
	}
	return Input{Template: t, Config: config, Cluster: cluster, AddOn: addOn.Name}, nil
}

func (a *agent) template(
	ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn, want content,
) (*Template, error) {
	u, err := a.read(ctx, addOn, confighash.Template(), want)
	if err != nil {
		return nil, err
	}
	if u == nil {
		return nil, &addon.NotReadyError{Message: "waiting for the rollout to choose an AddOnTemplate"}
	}
	return ReadTemplate(u)
}

// config returns the first AddOnDeploymentConfig of an add-on; nil when it has none.
func (a *agent) config(
	ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn, want content,
) (*addonv1beta1.AddOnDeploymentConfig, error) {
	u, err := a.read(ctx, addOn, confighash.DeploymentConfig(), want)
	if err != nil || u == nil {
		return nil, err
	}
	return ReadConfig(u)
}
