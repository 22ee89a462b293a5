package long

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

const (
	// lookEvery is how often the children are looked at.
	lookEvery = 500 * time.Millisecond
	// startPatience is how long a child may take until its fleet is there, before the next one starts in any case.
	startPatience = 4 * time.Minute
	// grace is how long the children may take to end their control planes when they are interrupted.
	grace = time.Minute
	// toldLines is how many lines of a child that printed no table are told.
	toldLines = 20
)

// Options say what to run.
type Options struct {
	// Lasts is how long each child goes on, without what it takes to begin and to end.
	Lasts time.Duration
	// Seed is that of all children.
	Seed uint64
	// Only names the children to run; empty runs all.
	Only []string
	// Binaries is the directory with our programs, as in fleet.Options.
	Binaries string
	// Dir receives the programs, logs and samples of the children, a folder for each.
	Dir string
	// Limits are those of the judge.
	Limits Limits
	// Log receives which child begins and ends.
	Log io.Writer
}

// child is a long test.
type child struct {
	// name names it in the table, program is its command and head is what its own table begins with.
	name, program, head string
	args                []string
}

// children are all of them.
func (o Options) children() []child {
	lasts, seed := o.Lasts.String(), strconv.FormatUint(o.Seed, 10)
	return []child{
		{"storm", "storm", "storm, seed", []string{"-lasts", lasts, "-seed", seed}},
		{"lies", "lies", "lies ", []string{"-lasts", lasts, "-seed", seed, "-go-on"}},
		{"rotation", "soak", "rotation, seed", []string{"-only", "rotation", "-duration", lasts, "-seed", seed}},
		{"rollouts", "soak", "rollouts, every", []string{"-only", "rollouts", "-duration", lasts}},
	}
}

// chosen are those to run.
func (o Options) chosen() ([]child, error) {
	all := o.children()
	if len(o.Only) == 0 {
		return all, nil
	}
	var some []child
	for _, name := range o.Only {
		before := len(some)
		for _, one := range all {
			if one.name == name {
				some = append(some, one)
			}
		}
		if len(some) == before {
			return nil, fmt.Errorf("there is no long test %q", name)
		}
	}
	return some, nil
}

// Outcome says what came of a child.
type Outcome struct {
	// Name is its name, and Command what it ran.
	Name, Command string
	// Took is how long it ran, and Failed how it ended, empty if well.
	Took   time.Duration
	Failed string
	// Table are the lines of its table, or the last ones that it wrote.
	Table []string
	// Lives are those of all programs in its fleet.
	Lives []Life
}

// Run runs the children beside each other. When ctx ends they are ended, too.
func Run(ctx context.Context, o Options) ([]Outcome, error) {
	children, err := o.chosen()
	if err != nil {
		return nil, err
	}
	programs := map[string]string{}
	for _, one := range children {
		programs[one.program] = "./test/" + one.program + "/cmd/" + one.program
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("finding directory %s: %w", o.Dir, err)
	}
	o.Dir = dir
	if err := fleet.Build(ctx, o.bin(), programs); err != nil {
		return nil, err
	}
	outcomes, failed := make([]Outcome, len(children)), make([]error, len(children))
	var group sync.WaitGroup
	for i, one := range children {
		began := make(chan struct{})
		group.Go(func() { outcomes[i], failed[i] = o.run(ctx, one, began) })
		select {
		case <-began:
		case <-ctx.Done():
		}
	}
	group.Wait()
	if ctx.Err() != nil {
		return outcomes, context.Cause(ctx)
	}
	return outcomes, errors.Join(failed...)
}

// bin is the directory with the programs of the children.
func (o Options) bin() string { return filepath.Join(o.Dir, "bin") }

// run runs a child to its end; began is closed when its fleet is there.
func (o Options) run(ctx context.Context, one child, began chan struct{}) (Outcome, error) {
	var once sync.Once
	begins := func() { once.Do(func() { close(began) }) }
	defer begins()
	dir := filepath.Join(o.Dir, one.name)
	samples := filepath.Join(dir, "samples.jsonl")
	args := slices.Concat(one.args, []string{"-samples", samples, "-dir", filepath.Join(dir, "fleet")})
	if o.Binaries != "" {
		args = append(args, "-binaries", o.Binaries)
	}
	out := Outcome{Name: one.name, Command: one.program + " " + strings.Join(one.args, " ")}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return out, fmt.Errorf("making the directory of %s: %w", one.name, err)
	}
	process := &sandbox.Process{
		Name: one.name, Path: filepath.Join(o.bin(), one.program), Args: args, LogPath: filepath.Join(dir, "output.log"),
	}
	from := time.Now()
	o.say("%s begins: %s %s", one.name, process.Path, strings.Join(args, " "))
	if err := process.Start(); err != nil {
		return out, err
	}
	for process.Exited() == nil {
		if !fleet.Pause(ctx, lookEvery) {
			process.Stop(grace)
			return out, nil
		}
		if _, err := os.Stat(samples); err == nil || time.Since(from) > startPatience {
			begins()
		}
	}
	out.Took = time.Since(from)
	if code := process.ExitCode(); code != 0 {
		out.Failed = fmt.Sprintf("exit status %d, see %s", code, process.LogPath)
	}
	o.say("%s ended after %s %s", one.name, out.Took.Round(time.Second), out.Failed)
	out.Table = tableIn(process.Log(), one.head)
	found, err := fleet.ReadSamples(samples)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return out, err
	}
	out.Lives = Judge(found, o.Limits)
	return out, nil
}

func (o Options) say(format string, args ...any) {
	fmt.Fprintf(o.Log, "%s %s\n", time.Now().UTC().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// tableIn returns the lines of a log from the one that begins with the head on, or its last ones without.
func tableIn(log, head string) []string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, head) {
			return lines[i:]
		}
	}
	return lines[max(0, len(lines)-toldLines):]
}
