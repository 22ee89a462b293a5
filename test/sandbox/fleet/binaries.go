package fleet

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spokelet/spokelet/test/sandbox"
)

// findBinaries returns the directory with our programs: dir, or bin below the module root when that is empty.
func findBinaries(dir string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	root, err := sandbox.ModuleRoot()
	if err != nil {
		return "", fmt.Errorf("looking for our programs: %w", err)
	}
	return filepath.Join(root, "bin"), nil
}

// logName is the file name for the log of a process.
func logName(process string) string { return strings.ReplaceAll(process, " ", "-") + ".log" }
