package fleet

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
)

// UninstallHub ends the hub manager and has its program uninstall it, with the flags that it ran with and the rights of
// an administrator. There is no Secret with a certificate of its own.
func (f *Fleet) UninstallHub(ctx context.Context) error {
	f.manager.Stop(stopGrace)
	kubeconfig, err := f.Kubeconfig(f.Hub, f.Hub.Admin(), "uninstaller")
	if err != nil {
		return err
	}
	args := append(slices.Clone(f.manager.Args), "--uninstall", "--webhook-secret=", "--kubeconfig="+kubeconfig)
	said, err := exec.CommandContext(ctx, f.manager.Path, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("uninstalling the hub manager: %w: %s", err, said)
	}
	return nil
}
