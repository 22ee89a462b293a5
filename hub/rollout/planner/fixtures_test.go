package planner

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/yaml"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// strategy reads a strategy as people write it.
func strategy(tb testing.TB, text string) clusterv1alpha1.RolloutStrategy {
	tb.Helper()
	var s clusterv1alpha1.RolloutStrategy
	require.NoError(tb, yaml.UnmarshalStrict([]byte(text), &s), text)
	return s
}

// clusters reads clusters: "name state age", separated by commas. A name may have its decision group, "c1/0" or
// "c1/0=canary"; without one it is in group 0, and "c1/-" has none. "held" after the state of a cluster holds it,
// "gated" because of a window, and
// "broken" says that an earlier target left it so. "due=1h" says
// that one which broke while it soaked should have soaked an hour ago, and "again" that it failed with the add-on that it
// had.
func clusters(tb testing.TB, text string) []Cluster {
	tb.Helper()
	states := map[string]State{"pending": Pending, "flying": InFlight, "failed": Failed, "done": Succeeded, "awaited": Awaited}
	var found []Cluster
	for item := range strings.SplitSeq(text, ",") {
		words := strings.Fields(item)
		if len(words) == 0 {
			continue
		}
		require.GreaterOrEqual(tb, len(words), 2, item)
		name, group, _ := strings.Cut(words[0], "/")
		index, groupName, _ := strings.Cut(group, "=")
		c := Cluster{Name: name, GroupName: groupName}
		if index == "-" {
			c.Group = -1
		} else if index != "" {
			n, err := strconv.Atoi(index)
			require.NoError(tb, err, item)
			c.Group = n
		}
		state, known := states[words[1]]
		require.True(tb, known, item)
		c.State = state
		for _, word := range words[2:] {
			if word == "broken" {
				c.Broken = true
				continue
			}
			if word == "again" {
				c.HasFailed = true
				continue
			}
			if age, found := strings.CutPrefix(word, "due="); found {
				d, err := time.ParseDuration(age)
				require.NoError(tb, err, item)
				c.Due = noon.Add(-d)
				continue
			}
			if word == "gated" {
				c.Held, c.Gated = "no window allows it now", true
				continue
			}
			if word == "depends" {
				c.Held, c.Depends = "it depends on add-on network", true
				continue
			}
			if word == "held" {
				c.Held = "its own configuration does not exist"
				continue
			}
			age, err := time.ParseDuration(word)
			require.NoError(tb, err, item)
			c.Since = noon.Add(-age)
		}
		found = append(found, c)
	}
	return found
}

func words(names []string) string { return strings.Join(names, " ") }

func waits(r Result) string {
	var names []string
	for _, w := range r.Hold {
		names = append(names, w.Name)
	}
	return words(names)
}

// crowd returns clusters in 60 decision groups: a third of them done, a few failed, a tenth in flight, the others
// pending.
func crowd(size int) []Cluster {
	found := make([]Cluster, size)
	for n := range found {
		c := Cluster{Name: fmt.Sprintf("cluster-%05d", n), Group: n % 60, GroupName: "others", Since: noon.Add(-5 * time.Minute)}
		if c.Group < 2 {
			c.GroupName = "canary"
		}
		switch {
		case n%3 == 0:
			c.State, c.Since = Succeeded, noon.Add(-time.Hour)
		case n%10 == 0:
			c.State = InFlight
		case n%100 == 1:
			c.State = Failed
		}
		found[n] = c
	}
	return found
}

func benchmark(b *testing.B, fleet Fleet) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		Make(fleet)
	}
}
