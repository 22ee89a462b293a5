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

// mirrored returns the mirror of an image: the last mirror wins whose source begins the image. A source is compared as
// text, so that quay.io/a is the source of quay.io/ab/c as well; one that ends with a slash is a whole path. A mirror
// without a source applies to the last part of every image.
func mirrored(image string, mirrors []addonv1beta1.ImageMirror) string {
	for i := len(mirrors) - 1; i >= 0; i-- {
		source, mirror := strings.TrimSuffix(mirrors[i].Source, "/"), strings.TrimSuffix(mirrors[i].Mirror, "/")
		if source == "" {
			return mirror + "/" + image[strings.LastIndex(image, "/")+1:]
		}
		rest, found := strings.CutPrefix(image, source)
		if found && (source == mirrors[i].Source || strings.HasPrefix(rest, "/")) {
			return mirror + rest
		}
	}
	return image
}
