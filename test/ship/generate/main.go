// Command generate writes what is generated for what ships: the objects of the chart, the table of its values, and
// the objects of overlays for tests.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spokelet/spokelet/test/ship/generated"
	"github.com/spokelet/spokelet/test/ship/render"
)

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// write replaces every generated file.
func write() error {
	root, err := render.Root()
	if err != nil {
		return err
	}
	files, err := generated.Files(root)
	if err != nil {
		return err
	}
	for path, content := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755); err != nil {
			return fmt.Errorf("making a folder: %w", err)
		}
		if err := os.WriteFile(filepath.Join(root, path), content, 0o644); err != nil {
			return fmt.Errorf("writing a file: %w", err)
		}
	}
	return nil
}
