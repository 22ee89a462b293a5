package virtual

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// TestMain takes away what waits by the clock of the machine, which is decades ahead of that of a bubble, and lets the
// heap grow: a fleet in one process makes so much garbage that collecting it would take half of the time.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	// The log alone, without the pause between two errors.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	os.Exit(m.Run())
}

// Shows: invariants/selected-stays, invariants/deselected-goes, invariants/nothing-taken, invariants/slots
// Shows: invariants/broken-first, invariants/failures-stop, invariants/groups-in-order, invariants/told-truly
// Shows: invariants/rollout-ends, invariants/never-expired, invariants/repaired, invariants/no-loop
// Shows: invariants/quiet, invariants/comes-back, invariants/never-back, invariants/roles
// Shows: invariants/probe-told
func TestADayOfAFleet(t *testing.T) {
	playDay(t, func(t *testing.T, o Options) ([]string, *judge) {
		t.Helper()
		o.Clusters, o.AddOns = *clusters, *addOns
		w, err := New(t.Context(), o)
		require.NoError(t, err)
		defer w.Stop()
		violations, err := w.Run(t.Context(), Day{Seed: *seed, Lasts: *lasts, PerHour: *perHour})
		require.NoError(t, err)
		// After what is wrong, which is what is read first.
		t.Cleanup(func() { t.Logf("%d clusters x %d add-ons", o.Clusters, o.AddOns) })
		return violations, w.judge
	})
}

// playDay plays a day in a bubble, with the log that a flag names, and reports what was violated.
func playDay(t *testing.T, play func(*testing.T, Options) ([]string, *judge)) {
	t.Helper()
	o := Options{Dir: t.TempDir(), Log: logr.Discard()}
	if *logFile != "" {
		file, err := os.Create(*logFile)
		require.NoError(t, err)
		defer func() { assert.NoError(t, file.Close()) }()
		o.Log = funcr.New(func(prefix, args string) {
			_, _ = fmt.Fprintln(file, prefix, args)
		}, funcr.Options{LogTimestamp: true, Verbosity: 1})
	}
	klog.SetLogger(o.Log)
	t.Cleanup(klog.ClearLogger)
	began := time.Now()
	inBubble(t, func(t *testing.T) {
		t.Helper()
		start := time.Now()
		violations, judge := play(t, o)
		for _, one := range violations {
			t.Error(one)
		}
		t.Logf("seed %d: %s of virtual time, %v", *seed, time.Since(start), judge.counted())
	})
	t.Logf("in %s", time.Since(began))
}

// inBubble runs a test in a bubble. A manager that stops may leave goroutines of controller-runtime behind, that of a
// queue and that of a watch with an event that nobody takes any more, which end with a process and not with a bubble;
// anything else that is left fails the test.
func inBubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	defer func() {
		problem := recover()
		if problem == nil {
			return
		}
		for goroutine := range strings.SplitSeq(stacks(), "\n\n") {
			known := strings.Contains(goroutine, "priorityqueue.(*priorityqueue") ||
				strings.Contains(goroutine, "watch.(*filteredWatch).loop")
			if strings.Contains(goroutine, "synctest bubble") && !known {
				panic(problem)
			}
		}
		t.Logf("something of a manager that stopped was left: %v", problem)
	}()
	synctest.Test(t, test)
}

// stacks returns the stacks of all goroutines.
func stacks() string {
	text := make([]byte, 64<<20)
	return string(text[:runtime.Stack(text, true)])
}

var (
	clusters = flag.Int("clusters", 15, "clusters of the fleet")
	addOns   = flag.Int("addons", 4, "add-ons of the fleet")
	seed     = flag.Uint64("seed", 1, "what happens and when")
	lasts    = flag.Duration("lasts", 3*time.Hour, "how long things happen, in virtual time")
	perHour  = flag.Int("per-hour", 60, "how many things happen in an hour")
	logFile  = flag.String("log", "", "file that receives the log of all programs")
)
