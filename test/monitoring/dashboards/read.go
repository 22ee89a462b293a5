package dashboards

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spokelet/spokelet/manifests/monitoring/dashboard"
)

// Root is the root of the main module, seen from a package of this module.
func Root() string {
	return filepath.Join("..", "..", "..")
}

// Read reads the dashboards that are shipped, in the order of their files.
func Read(root string) ([]dashboard.Document, error) {
	files, err := filepath.Glob(filepath.Join(root, dashboard.Folder, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("looking for dashboards: %w", err)
	}
	all := make([]dashboard.Document, 0, len(files))
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading a dashboard: %w", err)
		}
		var d dashboard.Document
		if err := json.Unmarshal(content, &d); err != nil {
			return nil, fmt.Errorf("decoding %s: %w", file, err)
		}
		all = append(all, d)
	}
	return all, nil
}
