package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

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

// offline does something with the store and its backup while nothing runs over it.
func (c *ControlPlane) offline(ctx context.Context, act func(store, backup string) error) error {
	c.apiserver.Kill()
	c.etcd.Stop(stopGrace)
	if err := act(filepath.Join(c.Dir, "etcd"), filepath.Join(c.Dir, "backup")); err != nil {
		return fmt.Errorf("working on the store of %s: %w", c.Name, err)
	}
	if err := c.etcd.Start(); err != nil {
		return err
	}
	return c.StartAPIServer(ctx)
}
