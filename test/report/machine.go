package report

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// Machine describes the machine.
func Machine() []Row {
	cpu := firstMatch("/proc/cpuinfo", `model name\s*:\s*(.*)`)
	memory := firstMatch("/proc/meminfo", `MemTotal:\s*(\d+ kB)`)
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease") // a report without it is a report
	return []Row{
		{"processor", fmt.Sprintf("%d of %s", runtime.NumCPU(), cpu)}, {"memory", memory},
		{"system", runtime.GOOS + " " + strings.TrimSpace(string(kernel))},
	}
}

// firstMatch returns the first group of the first match in a file; "unknown" if there is none.
func firstMatch(file, pattern string) string {
	text, _ := os.ReadFile(file) // it is of Linux alone
	if found := regexp.MustCompile(pattern).FindSubmatch(text); found != nil {
		return string(found[1])
	}
	return "unknown"
}

// Versions asks Go and the programs of a control plane in a directory for their versions.
func Versions(ctx context.Context, assets string) ([]Row, error) {
	rows := []Row{{"Go", runtime.Version()}}
	for _, program := range []struct{ name, file, pattern string }{
		{"Kubernetes", "kube-apiserver", `v[0-9.]+\S*`}, {"etcd", "etcd", `[0-9]+\.[0-9.]+\S*`},
	} {
		out, err := exec.CommandContext(ctx, filepath.Join(assets, program.file), "--version").CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("asking %s for its version: %w", program.file, err)
		}
		rows = append(rows, Row{program.name, regexp.MustCompile(program.pattern).FindString(string(out))})
	}
	return rows, nil
}

// Run runs a command in the folder of the project, as a Runner.
func Run(ctx context.Context, command []string) (string, error) {
	run := exec.CommandContext(ctx, command[0], command[1:]...)
	run.Cancel = func() error { return run.Process.Signal(os.Interrupt) }
	out, err := run.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("running %s: %w", shell(command), err)
	}
	return string(out), nil
}
