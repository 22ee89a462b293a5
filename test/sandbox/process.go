package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// logTail is how many bytes of a log an error quotes.
const logTail = 2000

// Process is a program that ends with this process, however this process ends, and that can be killed and started
// again. Its output goes to a log file that all its lives share. Its fields are set before Start.
type Process struct {
	// Name is the name in errors.
	Name string
	// Path is the program.
	Path string
	// Args are its arguments.
	Args []string
	// Env are variables added to the environment of this process.
	Env []string
	// LogPath is the file that receives its output.
	LogPath string

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{}
}

// Start starts the program; after it ended, it may be started again.
func (p *Process) Start() error {
	log, err := os.OpenFile(p.LogPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", p.Name, err)
	}
	cmd := exec.Command(p.Path, p.Args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), p.Env...)
	cmd.SysProcAttr = childAttributes()
	done, started := make(chan struct{}), make(chan error, 1)
	go p.run(cmd, log, started, done)
	if err := <-started; err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd, p.done = cmd, done
	return nil
}

// run starts the program and waits for its end on one locked thread: the kernel sends the death signal when the
// thread that forked ends, so that thread must outlive the child.
func (p *Process) run(cmd *exec.Cmd, log *os.File, started chan<- error, done chan<- struct{}) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer log.Close()
	defer close(done)
	err := cmd.Start()
	started <- err
	if err == nil {
		// How it ended is in the process state, which is what everybody asks for.
		_ = cmd.Wait()
	}
}

// Kill ends the program at once, as kill -9 does, and waits until it is gone.
func (p *Process) Kill() { p.end(syscall.SIGKILL, 0) }

// Stop asks the program to end, kills it after grace, and waits until it is gone.
func (p *Process) Stop(grace time.Duration) { p.end(syscall.SIGTERM, grace) }

func (p *Process) end(sig syscall.Signal, grace time.Duration) {
	p.mu.Lock()
	cmd, done := p.cmd, p.done
	p.mu.Unlock()
	if cmd == nil {
		return
	}
	select {
	case <-done:
		// The process group may have a new owner by now.
		return
	default:
	}
	_ = syscall.Kill(-cmd.Process.Pid, sig)
	if grace > 0 {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	}
	<-done
}

// PID returns the process ID of the last start; 0 before the first.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// Exited returns nil while the program runs, and otherwise an error that says how it ended, with the end of its log.
func (p *Process) Exited() error {
	p.mu.Lock()
	cmd, done := p.cmd, p.done
	p.mu.Unlock()
	if cmd == nil {
		return fmt.Errorf("%s was not started", p.Name)
	}
	select {
	case <-done:
		return fmt.Errorf("%s ended (%s); the end of its log:\n%s", p.Name, cmd.ProcessState, p.tail())
	default:
		return nil
	}
}

// ExitCode waits until the program has ended and returns its exit status, -1 when a signal ended it.
func (p *Process) ExitCode() int {
	p.mu.Lock()
	done, cmd := p.done, p.cmd
	p.mu.Unlock()
	if cmd == nil {
		return -1
	}
	<-done
	return cmd.ProcessState.ExitCode()
}

// Log returns all that the program wrote.
func (p *Process) Log() string {
	data, err := os.ReadFile(p.LogPath)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func (p *Process) tail() string {
	data := []byte(p.Log())
	if len(data) > logTail {
		data = data[len(data)-logTail:]
	}
	return string(bytes.TrimSpace(data))
}

// RSS returns the resident memory of the running program in bytes, as the kernel counts it.
func (p *Process) RSS() (uint64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return 0, fmt.Errorf("reading the memory of %s: %w", p.Name, err)
	}
	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "VmRSS:" {
			kib, err := strconv.ParseUint(fields[1], 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("the kernel did not tell the memory of " + p.Name)
}

// OpenFiles returns how many files, sockets among them, the running program has open.
func (p *Process) OpenFiles() (int, error) {
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.PID()))
	if err != nil {
		return 0, fmt.Errorf("counting the open files of %s: %w", p.Name, err)
	}
	return len(open), nil
}
