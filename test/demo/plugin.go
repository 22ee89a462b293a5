package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// problemFound is the exit status of the plugin that found a problem or a difference.
const problemFound = 1

// ask returns what asks the hub by commands of the plugin, and shows each with its answer.
func (d *demo) ask(commands ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, command := range commands {
			if err := d.askOne(ctx, command); err != nil {
				return err
			}
		}
		d.console.line("")
		return nil
	}
}

func (d *demo) askOne(ctx context.Context, command string) error {
	hub, err := d.hubKubeconfig()
	if err != nil {
		return err
	}
	columns := min(d.console.width(), widest) - len(margin)
	cmd := exec.CommandContext(ctx, d.fleet.Program("kubectl-spokelet"), strings.Fields(command)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+hub, fmt.Sprintf("COLUMNS=%d", columns))
	said, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != problemFound) {
		if exit != nil {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return fmt.Errorf("asking the hub by kubectl spokelet %s: %w", command, err)
	}
	d.console.line("")
	d.console.command("kubectl spokelet %s", command)
	d.console.quote(string(said))
	return nil
}

// hubKubeconfig writes a kubeconfig of the hub's administrator and returns its path.
func (d *demo) hubKubeconfig() (string, error) {
	return d.fleet.Kubeconfig(d.fleet.Hub, d.fleet.Hub.Admin(), "admin-hub")
}
