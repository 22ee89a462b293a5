package faults_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// fault is something that goes wrong. All of it gets a name that nothing else has.
type fault struct {
	// code is that of the first cause.
	code causes.Code
	// ask are the arguments of why.
	ask func(name string) string
	// prepare makes what works; nil where there is nothing before the fault.
	prepare func(t *testing.T, name string)
	// well reports that why finds nothing after that.
	well   bool
	inject func(t *testing.T, name string)
	// repair ends the fault; nil where that takes more than is asked for here.
	repair func(t *testing.T, name string)
	// later says why the cause may be named after more than ten seconds; empty where it may not.
	later string
}

// faults are all faults, each with a sentence.
func faults() map[string]fault {
	all := map[string]fault{}
	for _, some := range []map[string]fault{clusterFaults(), addOnFaults(), workloadFaults(), workFaults()} {
		maps.Copy(all, some)
	}
	return all
}

func TestWhyNamesTheCauseOfEachFault(t *testing.T) {
	t.Run("at a time", func(t *testing.T) {
		for _, sentence := range slices.Sorted(maps.Keys(faults())) {
			t.Run(sentence, func(t *testing.T) {
				t.Parallel()
				faults()[sentence].play(t)
			})
		}
	})
	// It is the last, because all others need the hub manager.
	t.Run(hubDown, func(t *testing.T) { withoutManager().play(t) })
}

// play plays a fault.
func (f fault) play(t *testing.T) {
	t.Helper()
	name := suite.UniqueName("f")
	if f.prepare != nil {
		f.prepare(t, name)
	}
	if f.well {
		isWell(t, f.ask(name))
	}
	f.inject(t, name)
	limit := inTime
	if f.later != "" {
		limit = patience
	}
	named(t, limit, f.ask(name), f.code)
	if f.repair != nil {
		f.repair(t, name)
		isWell(t, f.ask(name))
	}
}

// hubDown is the fault of the hub manager.
const hubDown = "the hub manager does not run"

// withoutManager is an add-on that is installed while no hub manager runs.
func withoutManager() fault {
	return fault{
		code: causes.AddOnUnmanaged, ask: ofAddOn,
		inject: func(t *testing.T, name string) {
			t.Helper()
			world.manager.Stop()
			simple(t, name, settings(name))
		},
		repair: func(*testing.T, string) { world.manager.Start() },
	}
}

var update = flag.Bool("update", false, "write the table of the page again")

// The page has a row for each fault, and no others.
func TestThePageHasTheFaults(t *testing.T) {
	const head = "| fault | asked | code | first line |\n|---|---|---|---|\n"
	root, err := sandbox.ModuleRoot()
	require.NoError(t, err)
	file := filepath.Join(root, "docs", "operations", "plugin.md")
	page, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(page), head)
	require.True(t, found)
	rows, after, found := strings.Cut(rest, "\n\n")
	require.True(t, found)
	want := strings.Join(table(), "\n")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(before+head+want+"\n\n"+after), 0o600))
		return
	}
	assert.Equal(t, want, rows, "if that is meant: go test ./test/integration/faults -run TestThePage -update")
}

// table is the table of the page.
func table() []string {
	all := faults()
	all[hubDown] = withoutManager()
	rows := make([]string, 0, len(all))
	for sentence, f := range all {
		of := strings.Fields(f.ask("NAME"))[0]
		rows = append(rows, fmt.Sprintf("| %s | `why %s` | %s | %s |", sentence, of, f.code, causes.Titles()[f.code]))
	}
	slices.SortFunc(rows, func(a, b string) int { return strings.Compare(rowKey(a), rowKey(b)) })
	return rows
}

// rowKey orders rows by code and sentence.
func rowKey(row string) string {
	cells := strings.Split(row, "|")
	return cells[3] + cells[1]
}
