//go:build !linux

package sandbox

import "syscall"

// childAttributes put a child into a process group of its own, out of reach of Ctrl-C. Only Linux can also kill it when
// its parent dies.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
