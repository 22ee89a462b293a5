package fleet

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spokelet/spokelet/manifests"
)

// Release holds what one version of ours ships.
type Release struct {
	// Name is its name in logs.
	Name string
	// Binaries is the directory with its spokelet and spokelet-hub.
	Binaries string
	// HubCRDs and Hub are its definitions and its other objects for a hub, SpokeCRDs and Klusterlet those for a managed
	// cluster, as YAML documents.
	HubCRDs, Hub, SpokeCRDs, Klusterlet [][]byte
}

// Present returns what this version ships, with its programs in a directory; empty means bin below the module root.
func Present(binaries string) (Release, error) {
	dir, err := findBinaries(binaries)
	return Release{
		Name: "present", Binaries: dir, HubCRDs: manifests.CRDs(), Hub: manifests.Hub(),
		SpokeCRDs: manifests.SpokeCRDs(), Klusterlet: manifests.Klusterlet(),
	}, err
}

// ReplaceHub upgrades the hub as docs/operations/upgrade.md says, or goes back: the definitions of a release, its other
// objects, and its hub manager in the place of the one that runs. It returns when that says that it is ready.
func (f *Fleet) ReplaceHub(ctx context.Context, release Release) error {
	if err := f.Hub.Apply(ctx, release.HubCRDs...); err != nil {
		return fmt.Errorf("applying the definitions of %s: %w", release.Name, err)
	}
	if err := f.Hub.Apply(ctx, release.Hub...); err != nil {
		return fmt.Errorf("applying the manifests of %s: %w", release.Name, err)
	}
	f.manager.Stop(stopGrace)
	f.manager.Path = filepath.Join(release.Binaries, "spokelet-hub")
	if err := f.manager.Start(); err != nil {
		return err
	}
	return f.awaitHub(ctx, nil)
}

// ReplaceAgent does the same on a managed cluster, whose agent then runs.
func (f *Fleet) ReplaceAgent(ctx context.Context, release Release, cluster *Cluster) error {
	if err := f.prepareCluster(ctx, release, cluster); err != nil {
		return err
	}
	cluster.Agent.Stop(stopGrace)
	cluster.Agent.Path = filepath.Join(release.Binaries, "spokelet")
	return cluster.Agent.Start()
}

// prepareCluster applies what a release ships for a managed cluster.
func (f *Fleet) prepareCluster(ctx context.Context, release Release, cluster *Cluster) error {
	if err := cluster.ControlPlane.Apply(ctx, release.SpokeCRDs...); err != nil {
		return fmt.Errorf("applying the CRDs of cluster %s: %w", cluster.Name, err)
	}
	if err := cluster.ControlPlane.Apply(ctx, release.Klusterlet...); err != nil {
		return fmt.Errorf("applying the manifests of cluster %s: %w", cluster.Name, err)
	}
	return nil
}
