package template

import (
	"encoding/json"
	"fmt"
	"strings"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/names"
)

// mirrorsOf returns the image mirrors: those of the configuration, else those of the cluster's annotation. The error is
// an addon.InvalidError.
func mirrorsOf(in Input) ([]addonv1beta1.ImageMirror, error) {
	if in.Config != nil && len(in.Config.Spec.Registries) > 0 {
		return in.Config.Spec.Registries, nil
	}
	text := in.Cluster.Annotations[names.AnnotationImageRegistries]
	if text == "" {
		return nil, nil
	}
	var annotation struct {
		Registries []addonv1beta1.ImageMirror `json:"registries"`
	}
	if err := json.Unmarshal([]byte(text), &annotation); err != nil {
		return nil, &addon.InvalidError{Message: fmt.Sprintf(
			"annotation %s of ManagedCluster %s is not of the form "+
				`{"registries":[{"source":"quay.io/a","mirror":"registry.example.com/a"}]}: %v`,
			names.AnnotationImageRegistries, in.Cluster.Name, err)}
	}
	return annotation.Registries, nil
}

// mirrored returns the mirror of an image: the last mirror wins whose source is a prefix of the image. A mirror without
// a source applies to the last part of every image.
func mirrored(image string, mirrors []addonv1beta1.ImageMirror) string {
	result := image
	for _, m := range mirrors {
		source, mirror := strings.TrimSuffix(m.Source, "/"), strings.TrimSuffix(m.Mirror, "/")
		if source == "" {
			result = mirror + "/" + image[strings.LastIndex(image, "/")+1:]
			continue
		}
		if rest, found := strings.CutPrefix(image, source); found {
			result = mirror + rest
		}
	}
	return result
}
