//go:build !linux

package agent

import "runtime/debug"

// giveBack gives back heap that is free.
func giveBack() error {
	debug.FreeOSMemory()
	return nil
}
