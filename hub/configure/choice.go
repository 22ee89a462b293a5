package configure

import (
	"context"
	"fmt"
	"slices"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/confighash"
)

// choice reads the contents that an add-on runs with. References without a content that is known are an error: nothing
// may be rendered from another content. Of configurations that no spec names, only stored contents count, because the
// agent may write the references.
func (c *Configurer) choice(
	ctx context.Context, name string, references []addonv1beta1.ConfigReference, desired []addonconfig.DesiredConfig,
	held string,
) (addon.Choice, error) {
	choice := addon.Choice{Held: held, Configs: make([]addon.ChosenConfig, 0, len(references))}
	for _, config := range chosen(references) {
		entry := addon.ChosenConfig{
			ConfigGroupResource: config.ConfigGroupResource, ConfigSpecHash: config.ConfigSpecHash,
		}
		if _, read := confighash.Kind(config.ConfigGroupResource); read {
			content := c.Store.Kept
			if isNamed(desired, config.Config()) {
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

// Named implements addon.Configurer.
func (c *Configurer) Named(ctx context.Context, name string) ([]addon.ChosenConfig, error) {
	configs, desired, err := c.named(ctx, name)
	if err != nil {
		return nil, err
	}
	contents, err := c.Store.Contents(ctx, name)
	if err != nil {
		return nil, err
	}
	contents = slices.DeleteFunc(contents, func(content addonconfig.Content) bool { return !desired[content.Chosen] })
	all := make([]addon.ChosenConfig, 0, len(contents)+len(configs))
	seen := map[addonconfig.Chosen]bool{}
	for _, content := range contents {
		seen[content.Chosen] = true
		all = append(all, addon.ChosenConfig{
			ConfigGroupResource: content.ConfigGroupResource, ConfigSpecHash: content.ConfigSpecHash, Object: content.Object,
		})
	}
	for _, config := range configs {
		present, err := c.Store.Present(ctx, config)
		switch {
		case err != nil:
			return nil, err
		case present == nil:
			return nil, fmt.Errorf("%s does not exist", addonconfig.Describe(config))
		case seen[present.Chosen] || present.Object == nil:
			continue
		}
		seen[present.Chosen] = true
		all = append(all, addon.ChosenConfig{
			ConfigGroupResource: present.ConfigGroupResource, ConfigSpecHash: present.ConfigSpecHash, Object: present.Object,
		})
	}
	return all, nil
}
