package oci

import (
	"bytes"
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// WriteLayout writes an index as an OCI layout into a folder, in the place of what is there. The layout has one entry,
// which tools find by its tag or because it is the only one.
func WriteLayout(folder string, index v1.ImageIndex, tag string) error {
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("removing the former layout: %w", err)
	}
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return fmt.Errorf("beginning layout %s: %w", folder, err)
	}
	annotations := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag})
	if err := path.AppendIndex(index, annotations); err != nil {
		return fmt.Errorf("writing layout %s: %w", folder, err)
	}
	return nil
}

// named is an image under one name.
type named struct{ v1.Image }

// WriteArchive writes an image into a file that container engines load, under each of the names, such as
// spokelet/spokelet:v1.
func WriteArchive(file string, image v1.Image, names []string) error {
	images := map[name.Reference]v1.Image{}
	for _, text := range names {
		tag, err := name.NewTag(text, name.WeakValidation)
		if err != nil {
			return fmt.Errorf("the name of an image: %w", err)
		}
		// The library lists the names of one image in random order, but sorts images. So each name is one.
		images[tag] = &named{image}
	}
	var out bytes.Buffer
	if err := tarball.MultiRefWrite(images, &out); err != nil {
		return fmt.Errorf("writing archive %s: %w", file, err)
	}
	if err := os.WriteFile(file, out.Bytes(), modeFile); err != nil {
		return fmt.Errorf("writing archive %s: %w", file, err)
	}
	return nil
}
