package addon

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/internal/names"
)

// OverrideImage returns the mirror of an image: the last mirror counts that changes the image. A source is compared as
// text with the beginning of the image, so that quay.io/a is the source of quay.io/ab/c as well; one that ends with a
// slash is a whole path. A mirror without a source applies to the last part of every image.
func OverrideImage(mirrors []addonv1beta1.ImageMirror, image string) string {
	for _, m := range slices.Backward(mirrors) {
		if mirrored := mirrorOf(m, image); mirrored != image {
			return mirrored
		}
	}
	return image
}

// mirrorOf returns an image by one mirror; the image itself where the mirror does not apply.
func mirrorOf(m addonv1beta1.ImageMirror, image string) string {
	source, mirror := strings.TrimSuffix(m.Source, "/"), strings.TrimSuffix(m.Mirror, "/")
	if source == "" {
		return strings.TrimPrefix(mirror+"/"+image[strings.LastIndex(image, "/")+1:], "/")
	}
	rest, found := strings.CutPrefix(image, source)
	if !found || (source != m.Source && !strings.HasPrefix(rest, "/")) {
		return image
	}
	return mirror + rest
}

// ClusterImageRegistries returns the image mirrors in annotation open-cluster-management.io/image-registries of a
// cluster. The error is an InvalidError.
func ClusterImageRegistries(cluster *clusterv1.ManagedCluster) ([]addonv1beta1.ImageMirror, error) {
	text := cluster.Annotations[names.AnnotationImageRegistries]
	if text == "" {
		return nil, nil
	}
	var annotation struct {
		Registries []addonv1beta1.ImageMirror `json:"registries"`
	}
	if err := json.Unmarshal([]byte(text), &annotation); err != nil {
		return nil, &InvalidError{Message: fmt.Sprintf(
			"annotation %s of ManagedCluster %s is not of the form "+
				`{"registries":[{"source":"quay.io/a","mirror":"registry.example.com/a"}]}: %v`,
			names.AnnotationImageRegistries, cluster.Name, err)}
	}
	return annotation.Registries, nil
}

// ToImageOverrideValuesFunc returns a conversion to one value: the mirror of an image by the registries of the
// configuration. The parts of the key between dots are the names of nested values.
func ToImageOverrideValuesFunc(key, image string) AddOnDeploymentConfigToValuesFunc {
	return func(config addonv1beta1.AddOnDeploymentConfig) (Values, error) {
		return imageValue(key, image, OverrideImage(config.Spec.Registries, image))
	}
}

// GetAgentImageValues returns a ValuesFunc with one value: the mirror of an image by the registries of the
// AddOnDeploymentConfig that counts, if they have one for it, else by those of the cluster's annotation. The parts of
// the key between dots are the names of nested values.
func GetAgentImageValues(key, image string) ValuesFunc {
	return func(_ context.Context, request Request) (Values, error) {
		config, err := GetAddOnDeploymentConfig(request)
		if err != nil {
			return nil, err
		}
		if config != nil {
			if mirror := OverrideImage(config.Spec.Registries, image); mirror != image {
				return imageValue(key, image, mirror)
			}
		}
		mirrors, err := ClusterImageRegistries(request.Cluster)
		if err != nil {
			return nil, err
		}
		return imageValue(key, image, OverrideImage(mirrors, image))
	}
}

// imageValue returns the value of an image under a key with dots.
func imageValue(key, image, mirror string) (Values, error) {
	parts := strings.Split(key, ".")
	if slices.Contains(parts, "") || image == "" {
		return nil, &InvalidError{Message: fmt.Sprintf("the key %q for image %q: key and image are required", key, image)}
	}
	var value any = mirror
	for _, part := range slices.Backward(parts[1:]) {
		value = map[string]any{part: value}
	}
	return Values{parts[0]: value}, nil
}
