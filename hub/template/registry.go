package template

import (
	"cmp"
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/names"
)

// Registry finds the agents of add-ons that are made of templates: those whose ClusterManagementAddOn lists
// AddOnTemplates among its configurations.
type Registry struct {
	// Configs reads AddOnTemplates and AddOnDeploymentConfigs as unstructured objects, from a cache.
	Configs client.Reader
	// AddOns reads add-ons.
	AddOns addonapi.Client
	// Chooser chooses the templates and configurations of add-ons.
	Chooser addon.Chooser
	// Home is the namespace of the hub manager; empty means names.NamespaceHub.
	Home string
}

var _ addon.Lookup = Registry{}

// Agent implements addon.Lookup.
func (r Registry) Agent(ctx context.Context, name string) (addon.Agent, bool, error) {
	cma, err := r.AddOns.GetClusterManagementAddOn(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	case !UsesTemplates(cma):
		return nil, false, nil
	}
	return &agent{
		configs: r.Configs, versions: r.AddOns.Configs, chooser: r.Chooser, cma: cma,
		home: cmp.Or(r.Home, names.NamespaceHub),
	}, true, nil
}

// UsesTemplates reports whether an add-on is made of templates, with or without a default one.
func UsesTemplates(cma *addonv1beta1.ClusterManagementAddOn) bool {
	return slices.ContainsFunc(cma.Spec.DefaultConfigs, func(config addonv1beta1.AddOnConfig) bool {
		return config.ConfigGroupResource == confighash.Template()
	})
}
