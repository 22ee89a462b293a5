// Command capruntime stands before runc as a container runtime of Docker, for machines whose root lacks a capability,
// such as CAP_SYS_RESOURCE: there "docker run --privileged", which kind uses, fails. It removes from what is requested
// the capabilities, resource limits and scores that the machine cannot grant, and then becomes runc. With all
// capabilities present it changes nothing. In /etc/docker/daemon.json:
//
//	{"runtimes": {"capruntime": {"path": "/path/to/capruntime"}}, "default-runtime": "capruntime"}
//
// CAPRUNTIME_RUNC names the runc to become; by default it is the one in PATH.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// capabilities are the names of all capabilities, in the order of the kernel.
var capabilities = strings.Fields(`CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID
SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER
SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE
SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN
SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE`)

// limits are the resource limits that engines set; package syscall has no name for RLIMIT_NPROC, which is 6.
var limits = map[string]int{
	"RLIMIT_NOFILE": syscall.RLIMIT_NOFILE, "RLIMIT_NPROC": 6, "RLIMIT_CORE": syscall.RLIMIT_CORE,
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "capruntime:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	granted, err := bounding()
	if err != nil {
		return err
	}
	if err := rewrite(args, granted); err != nil {
		return err
	}
	runc := os.Getenv("CAPRUNTIME_RUNC")
	if runc == "" {
		if runc, err = exec.LookPath("runc"); err != nil {
			return err
		}
	}
	return fmt.Errorf("starting %s: %w", runc, syscall.Exec(runc, append([]string{"runc"}, args...), os.Environ()))
}

// bounding returns the capabilities that a process of this machine can have.
func bounding() (map[string]bool, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(status)) {
		value, found := strings.CutPrefix(line, "CapBnd:")
		if !found {
			continue
		}
		mask, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		if err != nil {
			return nil, fmt.Errorf("reading the capabilities: %w", err)
		}
		granted := map[string]bool{}
		for bit, name := range capabilities {
			granted["CAP_"+name] = mask&(1<<bit) != 0
		}
		return granted, nil
	}
	return nil, errors.New("/proc/self/status has no line CapBnd")
}

// rewrite changes the file that a call of runc reads: that of the bundle, or that of a further process.
func rewrite(args []string, granted map[string]bool) error {
	for i, arg := range args {
		switch arg {
		case "create", "run", "restore":
			bundle := option(args[i+1:], "bundle", "b")
			return edit(filepath.Join(bundle, "config.json"), func(document map[string]any) {
				if process, ok := document["process"].(map[string]any); ok {
					reduce(process, granted)
				}
			})
		case "exec":
			if file := option(args[i+1:], "process", "p"); file != "" {
				return edit(file, func(process map[string]any) { reduce(process, granted) })
			}
			return nil
		}
	}
	return nil
}

// option returns the value of a flag; empty when it is not there.
func option(args []string, long, short string) string {
	for i, arg := range args {
		for _, name := range []string{"--" + long, "-" + long, "-" + short} {
			if arg == name && i+1 < len(args) {
				return args[i+1]
			}
			if value, found := strings.CutPrefix(arg, name+"="); found {
				return value
			}
		}
	}
	return ""
}

// edit changes a JSON file. Numbers stay as they are written.
func edit(path string, change func(document map[string]any)) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	var document map[string]any
	if err := decoder.Decode(&document); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	change(document)
	changed, err := json.Marshal(document)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return os.WriteFile(path, changed, 0o600)
}

// reduce removes from a process of the runtime specification what cannot be granted.
func reduce(process map[string]any, granted map[string]bool) {
	if sets, ok := process["capabilities"].(map[string]any); ok {
		for set, value := range sets {
			list, _ := value.([]any)
			kept := []any{}
			for _, entry := range list {
				if name, _ := entry.(string); granted[name] {
					kept = append(kept, entry)
				}
			}
			sets[set] = kept
		}
	}
	if granted["CAP_SYS_RESOURCE"] {
		return
	}
	if list, ok := process["rlimits"].([]any); ok {
		for _, entry := range list {
			if limit, ok := entry.(map[string]any); ok {
				lower(limit)
			}
		}
	}
	// Without the capability a score can only go up.
	if number, ok := process["oomScoreAdj"].(json.Number); ok {
		if score, err := number.Int64(); err == nil && score < 0 {
			process["oomScoreAdj"] = 0
		}
	}
}

// lower brings a resource limit down to the one of this process.
func lower(limit map[string]any) {
	kind, _ := limit["type"].(string)
	resource, known := limits[kind]
	var own syscall.Rlimit
	if !known || syscall.Getrlimit(resource, &own) != nil {
		return
	}
	for _, key := range []string{"hard", "soft"} {
		number, _ := limit[key].(json.Number)
		if value, err := strconv.ParseUint(number.String(), 10, 64); err == nil && value > own.Max {
			limit[key] = own.Max
		}
	}
}
