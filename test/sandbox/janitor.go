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

// janitor removes a directory when this process is gone, also when it had no chance to do so itself.
type janitor struct {
	cmd   *exec.Cmd
	input io.Closer
}

func startJanitor(dir string) (*janitor, error) {
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
	return &janitor{cmd: cmd, input: input}, nil
}

// finish lets the janitor do its work now and waits until it is done.
func (j *janitor) finish() error {
	if err := j.input.Close(); err != nil {
		return fmt.Errorf("telling the janitor to start: %w", err)
	}
	return j.cmd.Wait()
}
