package oci

import (
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// SBOMType is the media type of a CycloneDX document in JSON.
const SBOMType = "application/vnd.cyclonedx+json"

// Platform is an image for one architecture, with its SBOM.
type Platform struct {
	// Arch is the architecture, as Go calls it.
	Arch string
	// Image for it.
	Image v1.Image
	// SBOM is a CycloneDX document in JSON.
	SBOM []byte
	// SBOMName is the name of its file.
	SBOMName string
}

// Index returns the index of an image with all its platforms. The SBOMs are in it as artifacts whose subject is their
// image, for no platform: every tool that copies the index copies them, and no engine runs them.
func Index(platforms []Platform, annotations map[string]string) (v1.ImageIndex, error) {
	var images, documents []mutate.IndexAddendum
	for _, platform := range platforms {
		sbom, err := attach(platform.Image, SBOMType, platform.SBOMName, platform.SBOM)
		if err != nil {
			return nil, err
		}
		images = append(images, mutate.IndexAddendum{
			Add: platform.Image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: system, Architecture: platform.Arch}},
		})
		documents = append(documents, mutate.IndexAddendum{
			Add: sbom, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "unknown", Architecture: "unknown"}},
		})
	}
	// The images come first, so that a tool that takes the first entry takes an image.
	index := mutate.AppendManifests(empty.Index, append(images, documents...)...)
	annotated := mutate.Annotations(index, annotations)
	made, ok := annotated.(v1.ImageIndex)
	if !ok {
		return nil, fmt.Errorf("annotating an index returned a %T", annotated)
	}
	return made, nil
}
