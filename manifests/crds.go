package manifests

import (
	"embed"
	"io/fs"
	"path"
)

//go:generate go run -C .. ./manifests/gen

//go:embed crds
var crds embed.FS

// ConvertPath is the path at which the hub serves the conversion of add-ons.
const ConvertPath = "/convert"

// CRDs returns the CustomResourceDefinitions of the hub, one YAML document each, without a conversion stanza. With
// these alone an API server serves the add-on kinds in v1beta1 by renaming the version only, which drops the fields
// that differ; package definition of the hub manager adds the conversion.
func CRDs() [][]byte { return documents("crds/hub") }

// SpokeCRDs returns the CustomResourceDefinitions of a managed cluster, one YAML document each.
func SpokeCRDs() [][]byte { return documents("crds/spoke") }

// documents reads the embedded files of a folder, ordered by name. An embedded folder cannot fail to be read: its
// content is fixed when we are built, and a test reads all of it.
func documents(dir string) [][]byte {
	entries, _ := fs.ReadDir(crds, dir)
	docs := make([][]byte, 0, len(entries))
	for _, entry := range entries {
		doc, err := crds.ReadFile(path.Join(dir, entry.Name()))
		if err == nil {
			docs = append(docs, doc)
		}
	}
	return docs
}
