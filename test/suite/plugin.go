package suite

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/spokelet/spokelet/test/sandbox"
)

// BuildPlugin builds kubectl-spokelet, which is a module of its own, into a file.
func BuildPlugin(ctx context.Context, program string) error {
	root, err := sandbox.ModuleRoot()
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	command.Dir = filepath.Join(root, "cmd", "kubectl-spokelet")
	if said, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building the plugin: %w: %s", err, said)
	}
	return nil
}
