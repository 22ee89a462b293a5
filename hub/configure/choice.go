package configure

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/confighash"
)

// choice reads the contents that an add-on runs with. References without a content that is known are an error: nothing
// may be rendered from another content. Of configurations that no spec names, only stored contents count, because the
// agent may write the references.
func (c *Configurer) choice(ctx context.Context, name string, decided configuration) (addon.Choice, error) {
	held := decided.held
	choice := addon.Choice{
		Held: held, Precedence: c.Precedence, Configs: make([]addon.ChosenConfig, 0, len(decided.references)),
	}
	for _, config := range addonconfig.ChosenBy(decided.references) {
		entry := addon.ChosenConfig{
			ConfigGroupResource: config.ConfigGroupResource, ConfigSpecHash: config.ConfigSpecHash,
		}
		if _, read := confighash.Kind(config.ConfigGroupResource); read {
			if config.SpecHash == "" { // The add-on does not support the kind, and the configuration does not exist.
				continue
			}
			content := c.Store.Kept
			if isNamed(decided.named, config.Config()) || decided.how.Has(config) {
				content = c.Store.Content
			}
			object, err := content(ctx, name, config)
			switch {
			case err != nil:
				return addon.Choice{}, err
			case object == nil:
				return addon.Choice{}, contentUnknown(config, held)
			}
			entry.Object = object
		}
		choice.Configs = append(choice.Configs, entry)
	}
	if len(choice.Configs) == 0 && held != "" {
		return addon.Choice{}, &addon.NotReadyError{Message: "waiting for the rollout: " + held}
	}
	return choice, nil
}

func isNamed(desired []addonconfig.DesiredConfig, config addonv1beta1.AddOnConfig) bool {
	return slices.ContainsFunc(desired, func(d addonconfig.DesiredConfig) bool { return d.AddOnConfig == config })
}

// contentUnknown returns the error about a content that is neither stored nor the present one.
func contentUnknown(config addonconfig.Chosen, held string) error {
	text := addonconfig.Describe(config.Config()) + " has changed or is gone, and the content that this cluster has is " +
		"not stored"
	if held != "" {
		text += "; " + held
	}
	return &addon.NotReadyError{Message: "waiting for the rollout: " + text}
}

// Runs implements addon.Configurer. Contents that the agent of a cluster made up are not stored.
func (c *Configurer) Runs(ctx context.Context, name string, kind addonv1beta1.ConfigGroupResource) (bool, error) {
	runs := false
	err := c.ask(ctx, name, kind, func(all *counts) error {
		for content := range all.contents {
			object, err := c.Store.Kept(ctx, name, content)
			if runs = object != nil; runs || err != nil {
				return err
			}
		}
		return nil
	})
	return runs, err
}

// Named implements addon.Configurer.
func (c *Configurer) Named(
	ctx context.Context, name string, kind addonv1beta1.ConfigGroupResource,
) ([]addon.ChosenConfig, error) {
	configs, desired, err := c.named(ctx, name, kind)
	if err != nil {
		return nil, err
	}
	all := make([]addon.ChosenConfig, 0, len(desired)+len(configs))
	seen := map[addonconfig.Chosen]bool{}
	add := func(chosen addonconfig.Chosen, object *unstructured.Unstructured) {
		if object == nil || seen[chosen] {
			return
		}
		seen[chosen] = true
		all = append(all, addon.ChosenConfig{
			ConfigGroupResource: chosen.ConfigGroupResource, ConfigSpecHash: chosen.ConfigSpecHash, Object: object,
		})
	}
	for _, content := range desired {
		object, err := c.Store.Kept(ctx, name, content)
		if err != nil {
			return nil, err
		}
		add(content, object)
	}
	for _, config := range configs {
		present, err := c.Store.Present(ctx, config)
		switch {
		case err != nil:
			return nil, err
		case present == nil:
			return nil, fmt.Errorf("%s does not exist", addonconfig.Describe(config))
		}
		add(present.Chosen, present.Object)
	}
	return all, nil
}

// named returns the configurations of a kind that the specs of the ClusterManagementAddOn and of all add-ons name, and
// the contents that add-ons are to run with. Add-ons without a ClusterManagementAddOn run with stored contents only.
func (c *Configurer) named(
	ctx context.Context, name string, kind addonv1beta1.ConfigGroupResource,
) (configs []addonv1beta1.AddOnConfig, contents []addonconfig.Chosen, err error) {
	err = c.ask(ctx, name, kind, func(all *counts) error {
		configs, contents = slices.Collect(maps.Keys(all.configs)), slices.Collect(maps.Keys(all.contents))
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	cma, err := c.AddOns.GetClusterManagementAddOn(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, contents, nil
	case err != nil:
		return nil, nil, err
	}
	for _, config := range addonconfig.NamedBy(cma) {
		if config.ConfigGroupResource == kind {
			configs = append(configs, config)
		}
	}
	return configs, contents, nil
}
