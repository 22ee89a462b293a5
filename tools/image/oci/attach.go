package oci

import (
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// The media types of OCI for an artifact that has no configuration.
const (
	emptyConfig     = "{}"
	emptyConfigType = "application/vnd.oci.empty.v1+json"
)

// artifact is a document attached to an image: a manifest with the image as its subject.
type artifact struct {
	v1.Image

	kind string
}

// ArtifactType returns the type of the document, for the index that lists it.
func (a artifact) ArtifactType() (string, error) { return a.kind, nil }

// manifest is the manifest of an artifact. The library's own type does not have the type of the artifact.
type manifest struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     types.MediaType   `json:"mediaType"`
	ArtifactType  string            `json:"artifactType"`
	Config        v1.Descriptor     `json:"config"`
	Layers        []v1.Descriptor   `json:"layers"`
	Subject       v1.Descriptor     `json:"subject"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

// parts are the parts of an artifact, out of which the library makes the rest.
type parts struct {
	manifest []byte
	document v1.Layer
}

func (p parts) RawConfigFile() ([]byte, error)      { return []byte(emptyConfig), nil }
func (p parts) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
func (p parts) RawManifest() ([]byte, error)        { return p.manifest, nil }
func (p parts) LayerByDigest(hash v1.Hash) (partial.CompressedLayer, error) {
	digest, err := p.document.Digest()
	if err != nil {
		return nil, fmt.Errorf("digest of the attached document: %w", err)
	}
	if hash != digest {
		return nil, fmt.Errorf("the artifact has no part %s", hash)
	}
	return p.document, nil
}

// attach returns an artifact of a kind with a document about an image.
func attach(image v1.Image, kind, title string, document []byte) (artifact, error) {
	subject, err := partial.Descriptor(image)
	if err != nil {
		return artifact{}, fmt.Errorf("describing the image: %w", err)
	}
	layer := static.NewLayer(document, types.MediaType(kind))
	described, err := partial.Descriptor(layer)
	if err != nil {
		return artifact{}, fmt.Errorf("describing %s: %w", title, err)
	}
	described.Annotations = map[string]string{"org.opencontainers.image.title": title}
	config, err := partial.Descriptor(static.NewLayer([]byte(emptyConfig), emptyConfigType))
	if err != nil {
		return artifact{}, fmt.Errorf("describing an empty configuration: %w", err)
	}
	raw, err := json.Marshal(manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, ArtifactType: kind, Config: *config,
		Layers: []v1.Descriptor{*described}, Subject: *subject,
	})
	if err != nil {
		return artifact{}, fmt.Errorf("writing the manifest of %s: %w", title, err)
	}
	made, err := partial.CompressedToImage(parts{manifest: raw, document: layer})
	if err != nil {
		return artifact{}, fmt.Errorf("assembling %s: %w", title, err)
	}
	return artifact{Image: made, kind: kind}, nil
}
