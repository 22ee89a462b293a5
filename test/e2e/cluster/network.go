package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

const (
	// Prefix begins the name of every container, network and kubeconfig file of a run.
	Prefix = "spokelet-e2e-"
	// ownerLabel, on a network, has the work directory whose run created it. clean.sh looks for it.
	ownerLabel = "io.spokelet.e2e.owner"
	// networkVariable names the network on which kind puts the containers of this process.
	networkVariable = "KIND_EXPERIMENTAL_DOCKER_NETWORK"
)

// Network is the Docker network of a run. Clusters on it reach each other by the names of their nodes.
type Network struct {
	// Name is the name of the network.
	Name string
}

// NewNetwork creates the network of a run and makes kind use it, in this whole process. Owner is the absolute path of the
// work directory, run the random part of the names.
func NewNetwork(ctx context.Context, owner, run string) (*Network, error) {
	n := &Network{Name: Prefix + run}
	if err := docker(ctx, "network", "create", "--label", ownerLabel+"="+owner, n.Name); err != nil {
		return nil, fmt.Errorf("creating Docker network %s: %w", n.Name, err)
	}
	if err := os.Setenv(networkVariable, n.Name); err != nil {
		return nil, errors.Join(fmt.Errorf("setting %s: %w", networkVariable, err), n.Remove(ctx))
	}
	return n, nil
}

// Remove removes the network, on which no container may be left.
func (n *Network) Remove(ctx context.Context) error {
	if err := docker(ctx, "network", "rm", n.Name); err != nil {
		return fmt.Errorf("removing Docker network %s: %w", n.Name, err)
	}
	return nil
}

// CheckEngine returns an error with a remedy when no Docker engine answers, or when the engine has no image of that
// name. An empty name is not looked for.
func CheckEngine(ctx context.Context, image string) error {
	if err := docker(ctx, "version", "--format", "{{.Server.Version}}"); err != nil {
		return fmt.Errorf("no Docker engine answers; start dockerd, see docs/operations/e2e.md: %w", err)
	}
	if image == "" {
		return nil
	}
	if err := docker(ctx, "image", "inspect", "--format", "{{.Id}}", image); err != nil {
		return fmt.Errorf("node image %s does not exist; \"make node-image\" builds it: %w", image, err)
	}
	return nil
}

// docker runs the Docker CLI.
func docker(ctx context.Context, args ...string) error {
	output, err := exec.CommandContext(ctx, "docker", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("docker %s: %w: %s", args[0], err, bytes.TrimSpace(output))
	}
	return nil
}
