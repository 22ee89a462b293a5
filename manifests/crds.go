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

// CRDs returns the CustomResourceDefinitions of the hub, one YAML document each, without a conversion. With these
// alone, an API server converts add-ons by renaming the version, which drops fields that differ; package definition of
// the hub manager sets the conversion.
func CRDs() [][]byte { return documents("crds/hub") }

// SpokeCRDs returns the CustomResourceDefinitions of a managed cluster, one YAML document each.
func SpokeCRDs() [][]byte { return documents("crds/spoke") }

// documents reads the embedded files of a folder, ordered by name. Embedded files can always be read; a test reads all
// of them.
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
