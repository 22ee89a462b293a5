// Command dashboards writes the dashboards that we ship.
// Run it from the module root: go run ./manifests/gen/dashboards
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spokelet/spokelet/manifests/monitoring/dashboard"
)

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, "dashboards:", err)
		os.Exit(1)
	}
}

// write replaces the files of the dashboards.
func write() error {
	files, err := dashboard.Files()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dashboard.Folder, 0o755); err != nil {
		return fmt.Errorf("making the folder: %w", err)
	}
	former, err := filepath.Glob(filepath.Join(dashboard.Folder, "*.json"))
	if err != nil {
		return fmt.Errorf("looking for the former files: %w", err)
	}
	for _, name := range former {
		if err := os.Remove(name); err != nil {
			return fmt.Errorf("removing a former file: %w", err)
		}
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dashboard.Folder, name), content, 0o644); err != nil {
			return fmt.Errorf("writing a dashboard: %w", err)
		}
	}
	return nil
}
