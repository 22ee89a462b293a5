// Command build compiles the control plane that tests and the demo run on: etcd, kube-apiserver and
// kube-controller-manager, from the Go modules that this module pins, with their version stamped. It prints what it
// builds and how long that takes, and builds nothing when nothing changed. With KUBE_ASSETS set it only checks that
// the ready programs are there. Flag -version builds another version of Kubernetes, of those that directory versions
// pins; -pin writes such a pair of files.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// program is one binary of the control plane.
type program struct {
	name, pkg, module string
	// cold says how long it takes the first time on two cores.
	cold string
}

var programs = [...]program{
	{"etcd", "go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/server/v3", "40 seconds"},
	{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes", "4 minutes"},
	{"kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager", "k8s.io/kubernetes", "1 minute"},
}

func main() {
	out := flag.String("o", filepath.Join("..", "..", "bin", "kube"), "directory for the programs")
	version := flag.String("version", "", "minor version of Kubernetes, such as 1.33; empty for the one in go.mod")
	release := flag.String("pin", "", "release of Kubernetes to pin, such as v1.33.7; nothing is built then")
	flag.Parse()
	var err error
	if *release != "" {
		err = pin(*release)
	} else {
		err = run(*out, *version, os.Getenv("KUBE_ASSETS"))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "building the control plane: %v\n", err)
		os.Exit(1)
	}
}

func run(out, version, ready string) error {
	if ready != "" {
		return check(ready)
	}
	modules, err := modulesOf(version)
	if err != nil {
		return err
	}
	stamp, err := fingerprint(modules)
	if err != nil {
		return err
	}
	stampFile := filepath.Join(out, "STAMP")
	if built, err := os.ReadFile(stampFile); err == nil && string(built) == stamp && check(out) == nil {
		return nil
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	// Without its stamp, a build that is interrupted is not taken for a finished one.
	if err := os.Remove(stampFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	fmt.Println("Building the control plane for tests and the demo; the first time takes about six minutes on two cores.")
	started := time.Now()
	for _, p := range programs {
		if err := build(p, modules, out); err != nil {
			return err
		}
	}
	fmt.Printf("The control plane is built after %s.\n", time.Since(started).Round(time.Second))
	return os.WriteFile(stampFile, []byte(stamp), 0o644)
}

// check tells which program is missing from a directory.
func check(dir string) error {
	for _, p := range programs {
		info, err := os.Stat(filepath.Join(dir, p.name))
		if err != nil {
			return fmt.Errorf("looking for %s: %w", p.name, err)
		}
		if info.Mode()&0o111 == 0 {
			return fmt.Errorf("%s in %s cannot be executed", p.name, dir)
		}
	}
	return nil
}

// modulesOf returns the file that pins the modules of a version of Kubernetes.
func modulesOf(version string) (string, error) {
	if version == "" {
		return "go.mod", nil
	}
	file := modulesFile(version)
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	pinned, err := filepath.Glob(modulesFile("*"))
	if err != nil {
		return "", err
	}
	for i := range pinned {
		pinned[i] = strings.TrimSuffix(filepath.Base(pinned[i]), ".mod")
	}
	return "", fmt.Errorf("version %s of Kubernetes is not pinned, but %s are", version, strings.Join(pinned, ", "))
}

func modulesFile(version string) string { return filepath.Join("versions", version+".mod") }

// fingerprint is a hash of all that decides what is built: the pinned modules, this program and the compiler.
func fingerprint(modules string) (string, error) {
	hash := sha256.New()
	fmt.Fprintln(hash, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	sums := strings.TrimSuffix(modules, ".mod") + ".sum"
	for _, file := range []string{modules, sums, filepath.Join("build", "main.go")} {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("reading what is pinned: %w", err)
		}
		fmt.Fprintf(hash, "%s %d\n%s", file, len(data), data)
	}
	return hex.EncodeToString(hash.Sum(nil)) + "\n", nil
}

func build(p program, modules, out string) error {
	version, err := goCommand("list", "-modfile="+modules, "-m", "-f", "{{.Version}}", p.module).Output()
	if err != nil {
		return fmt.Errorf("finding the pinned version of %s: %w", p.module, err)
	}
	tag := strings.TrimSpace(string(version))
	fmt.Printf("  %-24s %s (about %s the first time) ", p.name, tag, p.cold)
	started := time.Now()
	cmd := goCommand("build", "-modfile="+modules, "-trimpath", "-ldflags", ldflags(tag), "-o", filepath.Join(out, p.name), p.pkg)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Println()
		return fmt.Errorf("compiling %s: %w", p.name, err)
	}
	fmt.Printf("built in %s\n", time.Since(started).Round(time.Second))
	return nil
}

// goCommand runs go without cgo, so that the programs are static.
func goCommand(args ...string) *exec.Cmd {
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	return cmd
}

// ldflags stamp the version the way Kubernetes reads it; etcd carries its own.
func ldflags(tag string) string {
	const pkg = "k8s.io/component-base/version"
	numbers := strings.Split(strings.TrimPrefix(tag, "v"), ".")
	flags := []string{"-s", "-w"}
	for _, stamp := range []string{
		"gitVersion=" + tag, "gitMajor=" + numbers[0], "gitMinor=" + numbers[1], "gitTreeState=clean",
	} {
		flags = append(flags, "-X "+pkg+"."+stamp)
	}
	return strings.Join(flags, " ")
}
