package template

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/confighash"
)

// agent is the agent of an add-on that is made of templates, which may differ between clusters.
type agent struct {
	configs  client.Reader
	versions confighash.Versions
	chooser  addon.Chooser
	cma      *addonv1beta1.ClusterManagementAddOn
	home     string
}

// About implements addon.Agent.
func (a *agent) About() addon.About {
	return addon.About{
		Name:             a.cma.Name,
		SupportedConfigs: []addonv1beta1.ConfigGroupResource{confighash.DeploymentConfig(), confighash.Template()},
	}
}

// Registrations implements addon.Agent.
func (a *agent) Registrations(
	ctx context.Context, cluster *clusterv1.ManagedCluster, addOn *addonv1beta1.ManagedClusterAddOn,
) ([]addonv1beta1.RegistrationConfig, error) {
	t, err := a.current(ctx, cluster, addOn)
	if err != nil {
		return nil, err
	}
	return Registrations(t, cluster.Name, addOn.Name)
}

// SigningCA implements addon.Agent.
func (a *agent) SigningCA(
	ctx context.Context, cluster *clusterv1.ManagedCluster, addOn *addonv1beta1.ManagedClusterAddOn, signerName string,
) (addon.SigningCA, bool, error) {
	t, err := a.current(ctx, cluster, addOn)
	if err != nil {
		return addon.SigningCA{}, false, err
	}
	secret, found := SigningSecret(t, signerName, a.home)
	if !found {
		return addon.SigningCA{}, false, nil
	}
	all, err := a.templates(ctx)
	if err != nil {
		return addon.SigningCA{}, false, err
	}
	return addon.SigningCA{Secret: secret, SharedWith: SharedWith(all, secret, addOn.Name, signerName, a.home)}, true, nil
}

// SharedPermissions implements addon.Agent. It fails if a template does not exist or is invalid, because its
// permissions are then unknown.
func (a *agent) SharedPermissions(ctx context.Context) ([]addon.Permission, error) {
	named, err := a.chooser.Named(ctx, a.cma.Name)
	if err != nil {
		return nil, err
	}
	var all []addon.Permission
	seen := map[string]bool{}
	for _, config := range named {
		if config.ConfigGroupResource != confighash.Template() || seen[config.Name] {
			continue
		}
		seen[config.Name] = true
		u, _ := a.versions.New(confighash.Template())
		if err := a.configs.Get(ctx, types.NamespacedName{Name: config.Name}, u); err != nil {
			return nil, fmt.Errorf("reading AddOnTemplate %s: %w", config.Name, err)
		}
		t, err := ReadTemplate(u)
		if err != nil {
			return nil, err
		}
		if err := CheckTrust(t, "", a.cma.Name, a.home); err != nil {
			return nil, err
		}
		permissions, err := Permissions(t, "", a.cma.Name)
		if err != nil {
			return nil, err
		}
		all = append(all, permissions...)
	}
	return slices.DeleteFunc(all, func(p addon.Permission) bool { return p.Namespace == "" }), nil
}

// Setup implements addon.Agent.
func (a *agent) Setup(
	ctx context.Context, cluster *clusterv1.ManagedCluster, addOn *addonv1beta1.ManagedClusterAddOn,
) (addon.Setup, error) {
	choice, err := a.chooser.Choose(ctx, addOn)
	if err != nil {
		return addon.Setup{}, err
	}
	in, err := a.input(ctx, cluster, addOn, choice, asItIs)
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
	// An unknown probe leaves the health check unchanged; Render reports it.
	setup.Health, _ = in.Template.health()
	return setup, nil
}

// Render implements addon.Agent. It waits until the rollout reaches the cluster, and renders only the content that the
// rollout chose.
func (a *agent) Render(
	ctx context.Context, cluster *clusterv1.ManagedCluster, addOn *addonv1beta1.ManagedClusterAddOn,
) (addon.Rendering, error) {
	choice, err := a.chooser.Choose(ctx, addOn)
	switch {
	case err != nil:
		return addon.Rendering{}, err
	case choice.Blocked != "":
		return addon.Rendering{}, &addon.NotReadyError{Message: "waiting for the rollout: " + choice.Blocked}
	}
	in, err := a.input(ctx, cluster, addOn, choice, asRolledOut)
	if err != nil {
		return addon.Rendering{}, err
	}
	rendering, err := Render(in)
	rendering.Configs = slices.Clone(choice.Configs)
	return rendering, err
}

// current reads the current template of an add-on on a cluster.
func (a *agent) current(
	ctx context.Context, cluster *clusterv1.ManagedCluster, addOn *addonv1beta1.ManagedClusterAddOn,
) (*Template, error) {
	choice, err := a.chooser.Choose(ctx, addOn)
	if err != nil {
		return nil, err
	}
	return a.template(ctx, cluster.Name, addOn, choice, asItIs)
}

// templates reads all templates of the hub. An invalid one is left out: it signs nothing.
func (a *agent) templates(ctx context.Context) ([]*Template, error) {
	kind, _ := a.versions.Kind(confighash.Template())
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := a.configs.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing AddOnTemplates: %w", err)
	}
	all := make([]*Template, 0, len(list.Items))
	for i := range list.Items {
		if t, err := ReadTemplate(&list.Items[i]); err == nil {
			all = append(all, t)
		}
	}
	return all, nil
}
