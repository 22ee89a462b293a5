//go:build !unix

package cli

import "os/exec"

// detach does nothing where there is no Ctrl-C for groups of programs.
func detach(*exec.Cmd) {}
