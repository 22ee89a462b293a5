package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// leaseStore is the directory of the etcd for leases, with Options.LeasesApart.
const leaseStore = "etcd-leases"

// BackUp keeps a copy of the store as it is now, for Restore. The API server is away meanwhile.
func (c *ControlPlane) BackUp(ctx context.Context) error {
	return c.offline(ctx, func(store, backup string) error {
		if err := os.RemoveAll(backup); err != nil {
			return fmt.Errorf("removing the last backup: %w", err)
		}
		return os.CopyFS(backup, os.DirFS(store))
	})
}

// Restore puts the store back to what it was at BackUp, as is done after a disaster: all that was written since is
// gone, and resource versions are counted from there again.
func (c *ControlPlane) Restore(ctx context.Context) error {
	return c.offline(ctx, func(store, backup string) error {
		if err := os.RemoveAll(store); err != nil {
			return fmt.Errorf("removing the store: %w", err)
		}
		return os.CopyFS(store, os.DirFS(backup))
	})
}

// Keep copies the stores, as they are now, to a directory that does not exist yet, for Options.Stores of another
// control plane. The API server is away meanwhile.
func (c *ControlPlane) Keep(ctx context.Context, dir string) error {
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		return fmt.Errorf("keeping the stores of %s: directory %s exists: name a new one", c.Name, dir)
	}
	return c.offline(ctx, func(string, string) error { return c.copyStores(dir, c.Dir) })
}

// takeOver copies the stores that Keep has kept.
func (c *ControlPlane) takeOver() error {
	if c.opts.Stores == "" {
		return nil
	}
	if err := c.copyStores(c.Dir, c.opts.Stores); err != nil {
		return fmt.Errorf("taking over the stores of another control plane: %w", err)
	}
	return nil
}

// copyStores copies the stores from one directory to another one. A store of leases that is not there begins empty, as
// it does where a hub gets one later: the agents and the controllers create their leases again.
func (c *ControlPlane) copyStores(to, from string) error {
	for _, store := range c.storeNames() {
		if _, err := os.Stat(filepath.Join(from, store)); store == leaseStore && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.CopyFS(filepath.Join(to, store), os.DirFS(filepath.Join(from, store))); err != nil {
			return err
		}
	}
	return nil
}

// storeNames are the directories of the stores.
func (c *ControlPlane) storeNames() []string {
	if c.opts.LeasesApart {
		return []string{"etcd", leaseStore}
	}
	return []string{"etcd"}
}

// offline does something with the store and its backup while nothing runs over it.
func (c *ControlPlane) offline(ctx context.Context, act func(store, backup string) error) error {
	c.apiserver.Kill()
	for _, store := range c.Stores() {
		store.Stop(stopGrace)
	}
	if err := act(filepath.Join(c.Dir, "etcd"), filepath.Join(c.Dir, "backup")); err != nil {
		return fmt.Errorf("working on the store of %s: %w", c.Name, err)
	}
	for _, store := range c.Stores() {
		if err := store.Start(); err != nil {
			return err
		}
	}
	return c.StartAPIServer(ctx)
}
