package oci

import (
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// system is the operating system of all images.
const system = "linux"

// Layer is the files of one layer, and a line about them for the history of the image.
type Layer struct {
	// Story is the line for the history.
	Story string
	// Files of the layer.
	Files []File
}

// Config holds what an image says about itself.
type Config struct {
	// Arch is the architecture, as Go calls it.
	Arch string
	// User is the user and group that the image runs as.
	User string
	// Program is the path of the program that the image starts.
	Program string
	// Labels of the image.
	Labels map[string]string
	// Created is when the image was made: the time of the commit.
	Created time.Time
}

// New returns an image for one platform.
func New(config Config, layers ...Layer) (v1.Image, error) {
	created := v1.Time{Time: config.Created.UTC()}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.ConfigFile(base, &v1.ConfigFile{
		OS: system, Architecture: config.Arch, Created: created,
		Config: v1.Config{
			User: config.User, Entrypoint: []string{config.Program}, WorkingDir: "/", Labels: config.Labels,
		},
		RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{}},
	})
	if err != nil {
		return nil, fmt.Errorf("configuring the image: %w", err)
	}
	for _, layer := range layers {
		made, err := newLayer(layer.Files)
		if err != nil {
			return nil, fmt.Errorf("layer %q: %w", layer.Story, err)
		}
		image, err = mutate.Append(image, mutate.Addendum{
			Layer: made, MediaType: types.OCILayer, History: v1.History{Created: created, CreatedBy: layer.Story},
		})
		if err != nil {
			return nil, fmt.Errorf("adding layer %q: %w", layer.Story, err)
		}
	}
	return image, nil
}
