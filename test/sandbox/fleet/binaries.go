package fleet

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// Program returns the path of one of our programs, which the fleet does not start by itself.
func (f *Fleet) Program(name string) string { return filepath.Join(f.binaries, name) }

// Build builds programs of this module into a directory: the name of each, and its package below the module root. flags
// are those of "go build".
func Build(ctx context.Context, dir string, programs map[string]string, flags ...string) error {
	root, err := sandbox.ModuleRoot()
	if err != nil {
		return fmt.Errorf("looking for our programs: %w", err)
	}
	for program, path := range programs {
		args := slices.Concat([]string{"build"}, flags, []string{"-o", filepath.Join(dir, program), path})
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w\n%s", program, err, out)
		}
	}
	return nil
}

// logName is the file name for the log of a process.
func logName(process string) string { return strings.ReplaceAll(process, " ", "-") + ".log" }
