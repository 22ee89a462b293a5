package sandbox

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

// janitorScript waits until its input ends, which happens when this process ends in whatever way, and then removes the
// directory; a second time a moment later, because a process that is being killed may still have written.
const janitorScript = `cat >/dev/null; rm -rf "$0"; sleep 0.3; rm -rf "$0"`

// Janitor removes a directory when this process is gone, also when it had no chance to do so itself.
type Janitor struct {
	cmd   *exec.Cmd
	input io.Closer
}

// StartJanitor starts a janitor for a directory.
func StartJanitor(dir string) (*Janitor, error) {
	cmd := exec.Command("/bin/sh", "-c", janitorScript, dir)
	// A group of its own keeps Ctrl-C at the terminal away from it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the janitor of %s: %w", dir, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the janitor of %s: %w", dir, err)
	}
	return &Janitor{cmd: cmd, input: input}, nil
}

// Finish lets the janitor do its work now and waits until it is done.
func (j *Janitor) Finish() error {
	if err := j.input.Close(); err != nil {
		return fmt.Errorf("telling the janitor to start: %w", err)
	}
	return j.cmd.Wait()
}
