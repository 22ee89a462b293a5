package sandbox

import (
	"context"
	"fmt"
)

// KillAPIServer ends the API server at once, as kill -9 does. What it stored stays, and the other processes of the
// control plane wait for it.
func (c *ControlPlane) KillAPIServer() { c.apiserver.Kill() }

// StartAPIServer starts the API server again, on the same port and over the same store, and returns when it is ready.
// Resource versions go on where they were.
func (c *ControlPlane) StartAPIServer(ctx context.Context) error {
	if err := c.apiserver.Start(); err != nil {
		return err
	}
	if err := c.waitReady(ctx); err != nil {
		return fmt.Errorf("starting the API server of %s again: %w", c.Name, err)
	}
	return nil
}
