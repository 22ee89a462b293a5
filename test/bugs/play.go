package bugs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Outcome says what a program did with a bug.
type Outcome struct {
	Bug     Bug
	Program string
	// Noticed reports whether it failed, and Said what it said first.
	Noticed bool
	Said    string
	Took    time.Duration
}

// Play puts a bug back and plays programs until one notices it; with all, it plays each of them. It is an
// error if a bug cannot be put back, or does not compile.
func Play(ctx context.Context, root string, bug Bug, programs []Program, all bool) (outcomes []Outcome, err error) {
	dir, err := os.MkdirTemp("", "bug-")
	if err != nil {
		return nil, fmt.Errorf("making a directory for a bug: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	overlay, err := bug.overlay(root, dir)
	if err != nil {
		return nil, err
	}
	for _, program := range programs {
		outcome, err := program.play(ctx, root, bug, overlay)
		if err != nil {
			return outcomes, err
		}
		outcomes = append(outcomes, outcome)
		if outcome.Noticed && !all {
			break
		}
	}
	return outcomes, nil
}

// overlay writes the files with the bug and what tells the compiler to take them, and returns the path of the latter.
func (b Bug) overlay(root, dir string) (string, error) {
	files, err := b.Apply(root)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for file, content := range files {
		with := filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		if err := os.WriteFile(with, []byte(content), 0o600); err != nil {
			return "", fmt.Errorf("writing a file with bug %s: %w", b.Name, err)
		}
		replace[filepath.Join(root, file)] = with
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("encoding the overlay of bug %s: %w", b.Name, err)
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o600)
}

// play runs a program with a bug until a run notices it.
func (p Program) play(ctx context.Context, root string, bug Bug, overlay string) (Outcome, error) {
	outcome, began := Outcome{Bug: bug, Program: p.Name}, time.Now()
	folders := p.folders
	if len(folders) == 0 {
		folders = bug.Folders()
	}
	for _, args := range p.runs {
		before, after := args, []string(nil)
		if i := slices.Index(args, "-args"); i >= 0 {
			before, after = args[:i], args[i:]
		}
		command := exec.CommandContext(ctx, "go", slices.Concat(
			[]string{"test", "-vet=off", "-count", "1", "-failfast", "-timeout", p.most.String()}, before, folders, after,
		)...)
		// The flag is in the environment, so that programs which a test compiles have the bug, too.
		command.Dir, command.Env = root, append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay)
		output, err := command.CombinedOutput()
		if ctx.Err() != nil {
			return outcome, fmt.Errorf("playing bug %s: %w", bug.Name, ctx.Err())
		}
		text := string(output)
		if strings.Contains(text, "[build failed]") || strings.Contains(text, "[setup failed]") {
			return outcome, fmt.Errorf("bug %s does not compile: %s", bug.Name, text[:min(len(text), 2000)])
		}
		outcome.Took = time.Since(began)
		if used := command.ProcessState.UserTime() + command.ProcessState.SystemTime(); starved(text, used, p.most) {
			return outcome, fmt.Errorf("playing bug %s: the machine is too busy for program %s, which had %s of processor time "+
				"in %s", bug.Name, p.Name, used.Round(time.Second), outcome.Took.Round(time.Second))
		}
		if err != nil {
			outcome.Noticed, outcome.Said = true, firstSaid(text)
			break
		}
	}
	return outcome, nil
}

// starved reports whether a run came to its limit because others had the processor: then nothing follows about what was
// put back. A run that hangs in virtual time uses a processor all the time.
func starved(output string, used, most time.Duration) bool {
	return strings.Contains(output, "panic: test timed out after") && used < most*2/3
}

// failed are the lines that a test writes for what it found.
var (
	failed   = regexp.MustCompile(`^\s+\w+_test\.go:\d+: (.*)`)
	panicked = regexp.MustCompile(`^(panic|fatal error): (.*)`)
	// detail begins the lines of a comparison.
	detail = regexp.MustCompile(`^\s+(Error|Messages):\s+(.*)`)
)

// firstSaid is the first sentence on why a test failed.
func firstSaid(output string) string {
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\n")
		switch {
		case detail.MatchString(line):
			return detail.FindStringSubmatch(line)[2]
		case panicked.MatchString(line):
			return line
		case failed.MatchString(line) && strings.TrimSpace(failed.FindStringSubmatch(line)[1]) != "":
			return failed.FindStringSubmatch(line)[1]
		}
	}
	return "it failed"
}
