package skew

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// shipped is the program that prints what a version ships.
//
//go:embed cmd/shipped/main.go
var shipped []byte

// needed are the files that a version must have, the last one because a rollout has to look at pods, and texts in the
// code of each program: the flags that package fleet sets, and the strategy of the rollouts.
func needed() (files []string, texts map[string][]string) {
	return []string{
			"cmd/spokelet/main.go", "cmd/spokelet-hub/main.go", "manifests/hub.go", "manifests/klusterlet.go",
			"hub/deploy/health/rollout.go",
		},
		map[string][]string{
			"agent": {
				`"spoke-cluster-name"`, `"bootstrap-kubeconfig"`, `"kubeconfig"`, `"namespace"`, `"leader-elect"`,
			},
			"hub": {
				`"kubeconfig"`, `"install-crds"`, `"leader-elect"`, `"auto-approved-csr-users"`, `"webhook-bind-address"`,
				`"webhook-port"`, `"webhook-cert-dir"`, `"webhook-url"`, `"webhook-ca-file"`, `"health-probe-bind-address"`,
				".MaxConcurrency",
			},
		}
}

// Repository is a clone of this repository.
type Repository struct {
	// Root is its folder.
	Root string
}

// Base returns the commit that a name means, and without a name the one that Choose chooses for HEAD.
func (r Repository) Base(ctx context.Context, name string) (Commit, error) {
	if name != "" {
		line, err := r.line(ctx, "-1", name)
		if err != nil {
			return Commit{}, err
		}
		return line[0], nil
	}
	line, err := r.line(ctx, "--first-parent", "HEAD")
	if err != nil {
		return Commit{}, err
	}
	return Choose(line, func(c Commit) (bool, error) { return r.usable(ctx, c) })
}

// line lists commits as "git log" does.
func (r Repository) line(ctx context.Context, args ...string) ([]Commit, error) {
	out, err := r.git(ctx, append([]string{"log", "--format=%H %cI %s"}, args...)...)
	if err != nil {
		return nil, err
	}
	return parseLine(out)
}

// parseLine reads a commit a line: its name, its time and its subject.
func parseLine(out string) ([]Commit, error) {
	var line []Commit
	for text := range strings.Lines(out) {
		fields := strings.SplitN(strings.TrimSuffix(text, "\n"), " ", 3)
		if len(fields) < 3 {
			return nil, fmt.Errorf("reading the history: %q", text)
		}
		at, err := time.Parse(time.RFC3339, fields[1])
		if err != nil {
			return nil, fmt.Errorf("reading the history: %w", err)
		}
		line = append(line, Commit{Hash: fields[0], Time: at, Subject: fields[2]})
	}
	if len(line) == 0 {
		return nil, errors.New("reading the history: there is no commit")
	}
	return line, nil
}

// usable reports whether a commit has what this package needs of it.
func (r Repository) usable(ctx context.Context, c Commit) (bool, error) {
	files, texts := needed()
	for _, file := range files {
		if found, err := r.asks(ctx, "ls-tree", "-r", "--name-only", c.Hash, "--", file); !found || err != nil {
			return false, err
		}
	}
	for program, all := range texts {
		for _, text := range all {
			found, err := r.asks(ctx, "grep", "-F", "-e", text, c.Hash, "--", program, "internal")
			if !found || err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// asks reports whether a command of git finds something.
func (r Repository) asks(ctx context.Context, args ...string) (bool, error) {
	out, err := r.git(ctx, args...)
	if exit := new(exec.ExitError); errors.As(err, &exit) && exit.ExitCode() == 1 && args[0] == "grep" {
		return false, nil
	}
	return out != "", err
}

func (r Repository) git(ctx context.Context, args ...string) (string, error) {
	return output(exec.CommandContext(ctx, "git", append([]string{"-C", r.Root}, args...)...))
}

// Build builds the programs of a commit into a folder, from a worktree there that it removes again, and returns what
// the commit ships.
func (r Repository) Build(ctx context.Context, c Commit, dir string) (release fleet.Release, err error) {
	source := filepath.Join(dir, "source")
	defer func() {
		// Also after an interrupt, or nobody would.
		err = errors.Join(err, r.remove(context.WithoutCancel(ctx), source))
	}()
	if err := r.forget(ctx); err != nil {
		return fleet.Release{}, err
	}
	if _, err := r.git(ctx, "worktree", "add", "--quiet", "--detach", source, c.Hash); err != nil {
		return fleet.Release{}, err
	}
	printer := filepath.Join(source, "cmd", "shipped")
	if err := errors.Join(os.MkdirAll(printer, 0o750),
		os.WriteFile(filepath.Join(printer, "main.go"), shipped, 0o600)); err != nil {
		return fleet.Release{}, fmt.Errorf("adding the program that prints what is shipped: %w", err)
	}
	release = fleet.Release{Name: fmt.Sprintf("%.7s", c.Hash), Binaries: dir}
	for _, program := range []string{"spokelet", "spokelet-hub", "shipped"} {
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags",
			"-s -w -X github.com/spokelet/spokelet/internal/version.version="+release.Name,
			"-o", filepath.Join(dir, program), "./cmd/"+program)
		build.Dir, build.Env = source, append(os.Environ(), "CGO_ENABLED=0")
		if _, err := output(build); err != nil {
			return fleet.Release{}, fmt.Errorf("building %s of %s: %w", program, c, err)
		}
	}
	printed, err := output(exec.CommandContext(ctx, filepath.Join(dir, "shipped")))
	if err != nil {
		return fleet.Release{}, fmt.Errorf("asking what %s ships: %w", c, err)
	}
	if err := json.Unmarshal([]byte(printed), &release); err != nil {
		return fleet.Release{}, fmt.Errorf("reading what %s ships: %w", c, err)
	}
	return release, nil
}

// DirPrefix is how the folders begin that Build is called with.
const DirPrefix = "spokelet-skew-"

// forget removes what the repository still knows of worktrees of runs that were killed and whose folder is gone.
func (r Repository) forget(ctx context.Context) error {
	list, err := r.git(ctx, "worktree", "list", "--porcelain")
	if err != nil {
		return err
	}
	for _, path := range ours(list) {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := r.remove(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

// remove removes a worktree: by force, because it has another file, and twice, because one that git was interrupted in
// making is locked.
func (r Repository) remove(ctx context.Context, path string) error {
	_, err := r.git(ctx, "worktree", "remove", "--force", "--force", path)
	return err
}

// ours returns the worktrees of this package in a list of git.
func ours(list string) []string {
	var paths []string
	for line := range strings.Lines(list) {
		path, found := strings.CutPrefix(strings.TrimSpace(line), "worktree ")
		if found && strings.HasPrefix(filepath.Base(filepath.Dir(path)), DirPrefix) {
			paths = append(paths, path)
		}
	}
	return paths
}

// output runs a command and returns what it printed; an error has what it said.
func output(cmd *exec.Cmd) (string, error) {
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args[:min(4, len(cmd.Args))], " "), err, said.String())
	}
	return string(out), nil
}
