package manifests

import (
	"embed"
	"io/fs"
)

//go:embed samples
var samples embed.FS

// kustomizationFile is not for the API server.
const kustomizationFile = "kustomization.yaml"

// Samples returns the sample add-ons, one folder each. Its files are for the hub, to be applied in the order of their
// names.
func Samples() fs.FS {
	sub, err := fs.Sub(samples, "samples")
	if err != nil { // only for a path that is not valid, and this one is constant
		return samples
	}
	return sub
}
