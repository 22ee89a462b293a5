package virtual

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
)

var scenes = flag.String("scenes", ".", "regular expression of the names of the scenarios to play with works")

// Shows: invariants/works-agree, invariants/nothing-taken, invariants/nothing-left, invariants/nothing-made
// Shows: invariants/typing-error, invariants/repaired, invariants/secret-stays, invariants/deletion-order
// Shows: invariants/older-hub, invariants/older-cluster, invariants/bounded
// Shows: invariants/no-loop, invariants/quiet, invariants/comes-back
func TestADayOfWorks(t *testing.T) {
	selected := regexp.MustCompile(*scenes)
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
		f, err := newFleet(t.Context(), o)
		require.NoError(t, err)
		defer f.stop()
		violations, err := f.run(t.Context(), *seed, selected.MatchString)
		require.NoError(t, err)
		for _, one := range violations {
			t.Error(one)
		}
		t.Logf("seed %d: %s of virtual time, %v", *seed, time.Since(start), f.judge.counted())
	})
	t.Logf("in %s", time.Since(began))
}
