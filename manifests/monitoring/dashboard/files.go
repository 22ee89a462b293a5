package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Folder is where the files are, below the module root.
const Folder = "manifests/monitoring/dashboards"

// Files returns the content of each file by its name.
func Files() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, d := range All() {
		var content bytes.Buffer
		encoder := json.NewEncoder(&content)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", " ")
		if err := encoder.Encode(d); err != nil {
			return nil, fmt.Errorf("encoding dashboard %s: %w", d.UID, err)
		}
		files[FileName(d.UID)] = content.Bytes()
	}
	return files, nil
}

// FileName returns the name of the file of a dashboard.
func FileName(uid string) string { return strings.TrimPrefix(uid, Tag+"-") + ".json" }

func sorted(of map[string]string) []string { return slices.Sorted(maps.Keys(of)) }
