package mutate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Options are the packages to measure and the tool.
type Options struct {
	// Tool is the path of the program that changes operators, Dir the module.
	Tool, Dir string
	// Packages are folders of the module.
	Packages []string
	// Workers is how many changes are tested at the same time.
	Workers int
	// Log takes the output of the tool; nil discards it.
	Log io.Writer
}

// Result holds what became of the changes of one package.
type Result struct {
	// Package is the folder, below the module root.
	Package string
	// Noticed is how many changes made a test fail, hang or crash, All how many compile.
	Noticed, All int
	// Survivors are the changes that no test noticed: file, line, column and kind of change. A change in a line that no
	// test runs is one of them.
	Survivors []string
}

// Share returns the noticed changes in percent of all; 100 where there was nothing to change.
func (r Result) Share() float64 {
	if r.All == 0 {
		return 100
	}
	return 100 * float64(r.Noticed) / float64(r.All)
}

// Run measures the packages one after the other, in a copy of the module that it removes afterwards. An error of one
// package does not keep the others from being measured.
func Run(ctx context.Context, o Options) (results []Result, err error) {
	copied, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return nil, fmt.Errorf("making a directory for the copy: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(copied)) }()
	if err := copyModule(ctx, o.Dir, copied); err != nil {
		return nil, err
	}
	var failed []error
	for _, folder := range o.Packages {
		result, err := measure(ctx, o, copied, folder)
		if err != nil {
			failed = append(failed, fmt.Errorf("changing operators of %s: %w", folder, err))
			continue
		}
		results = append(results, result)
	}
	return results, errors.Join(failed...)
}

// copyModule copies the files of a module that Git tracks or would track; what was built stays behind.
func copyModule(ctx context.Context, from, to string) error {
	list := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = from
	names, err := list.Output()
	if err != nil {
		return fmt.Errorf("listing the files of %s: %w", from, err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(from, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // It was deleted and that is not committed yet.
		}
		if err != nil {
			return fmt.Errorf("reading a file to copy: %w", err)
		}
		target := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return fmt.Errorf("making a directory of the copy: %w", err)
		}
		if err := os.WriteFile(target, content, 0o644); err != nil {
			return fmt.Errorf("copying %s: %w", name, err)
		}
	}
	return nil
}

// measure changes the operators of one package, each alone, and runs the tests of the package for each.
func measure(ctx context.Context, o Options, dir, folder string) (Result, error) {
	impure, err := impureFiles(filepath.Join(dir, folder))
	if err != nil {
		return Result{}, err
	}
	report := filepath.Join(dir, "mutate.json")
	args := []string{
		"unleash", "./" + folder, "--output", report, "--invert-logical", "--workers", strconv.Itoa(o.Workers),
		"--test-cpu", "1", "--timeout-coefficient", "20",
		"--exclude-files", "/", // the packages below this one
	}
	for _, file := range impure {
		args = append(args, "--exclude-files", "(^|/)"+regexp.QuoteMeta(file)+"$")
	}
	tool := exec.CommandContext(ctx, o.Tool, args...)
	tool.Dir, tool.Stdout, tool.Stderr = dir, o.Log, o.Log
	if err := tool.Run(); err != nil {
		return Result{}, fmt.Errorf("running %s: %w", filepath.Base(o.Tool), err)
	}
	content, err := os.ReadFile(report)
	if err != nil {
		return Result{}, fmt.Errorf("reading the report: %w", err)
	}
	return parse(folder, content)
}

// impureFiles returns the names of the files of a package that import context.
func impureFiles(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("listing files: %w", err)
	}
	var impure []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return nil, fmt.Errorf("reading imports: %w", err)
		}
		for _, spec := range parsed.Imports {
			if spec.Path.Value == `"context"` {
				impure = append(impure, filepath.Base(file))
			}
		}
	}
	return impure, nil
}

// parse reads the report of the tool. A change that does not compile counts for nothing, one that makes the tests hang
// counts as noticed.
func parse(folder string, content []byte) (Result, error) {
	var report struct {
		Files []struct {
			Name    string `json:"file_name"`
			Changes []struct {
				Type   string `json:"type"`
				Status string `json:"status"`
				Line   int    `json:"line"`
				Column int    `json:"column"`
			} `json:"mutations"`
		} `json:"files"`
	}
	if err := json.Unmarshal(content, &report); err != nil {
		return Result{}, fmt.Errorf("parsing the report: %w", err)
	}
	result := Result{Package: folder}
	for _, file := range report.Files {
		for _, change := range file.Changes {
			switch change.Status {
			case "KILLED", "TIMED OUT":
				result.Noticed++
				result.All++
			case "LIVED", "NOT COVERED":
				result.All++
				result.Survivors = append(result.Survivors, fmt.Sprintf("%s:%d:%d %s",
					filepath.Join(folder, filepath.Base(file.Name)), change.Line, change.Column,
					strings.ToLower(strings.ReplaceAll(change.Type+", "+change.Status, "_", " "))))
			case "NOT VIABLE", "SKIPPED":
			default:
				return Result{}, fmt.Errorf("unknown outcome %q of a change", change.Status)
			}
		}
	}
	slices.Sort(result.Survivors)
	return result, nil
}
