package template

import (
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/addon"
)

// mirrorsOf returns the image mirrors: those of the configuration, else those of the cluster's annotation. The error is
// an addon.InvalidError.
func mirrorsOf(in Input) ([]addonv1beta1.ImageMirror, error) {
	if in.Config != nil && len(in.Config.Spec.Registries) > 0 {
		return in.Config.Spec.Registries, nil
	}
	return addon.ClusterImageRegistries(in.Cluster)
}
