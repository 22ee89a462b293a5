package skew

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lineOf returns commits of those ages in days, newest first.
func lineOf(ages ...int) []Commit {
	head := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	var line []Commit
	for i, days := range ages {
		line = append(line, Commit{Hash: string(rune('a' + i)), Time: head.Add(-time.Duration(days) * 24 * time.Hour)})
	}
	return line
}

func TestTheBaseIsAWeekOldOrTheOldestThatIsUsable(t *testing.T) {
	for name, tc := range map[string]struct {
		line   []Commit
		usable string
		want   string
	}{
		"the newest of a week":                           {lineOf(0, 3, 7, 9), "bcd", "c"},
		"the next older one, when that is unusable":      {lineOf(0, 3, 7, 9), "bd", "d"},
		"the oldest usable one, when all are younger":    {lineOf(0, 1, 2, 3), "bc", "c"},
		"a younger one, when all of a week are unusable": {lineOf(0, 1, 2, 8), "bc", "c"},
		"never the present one":                          {lineOf(0, 1), "a", ""},
		"a shallow clone":                                {lineOf(0), "a", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Choose(tc.line, func(c Commit) (bool, error) { return strings.Contains(tc.usable, c.Hash), nil })
			assert.Equal(t, tc.want, got.Hash)
			assert.Equal(t, tc.want == "", err != nil, "%v", err)
		})
	}
	_, err := Choose(lineOf(0, 1), func(Commit) (bool, error) { return false, errors.New("no git") })
	require.ErrorContains(t, err, "no git")
}

func TestParseLine(t *testing.T) {
	line, err := parseLine("abc 2026-11-22T08:55:48+01:00 Words of it\ndef 2026-11-21T00:00:00Z \n")
	require.NoError(t, err)
	require.Len(t, line, 2)
	assert.Equal(t, `abc of 2026-11-22, "Words of it"`, line[0].String())
	for _, bad := range []string{"", "abc\n", "abc yesterday words\n"} {
		_, err := parseLine(bad)
		assert.Error(t, err, bad)
	}
}

func TestOnlyOurWorktreesAreForgotten(t *testing.T) {
	assert.Equal(t, []string{"/tmp/spokelet-skew-12/source"}, ours("worktree /home/jane/spokelet\nHEAD abc\n\n"+
		"worktree /tmp/spokelet-skew-12/source\nHEAD def\ndetached\nprunable gitdir file points to a place that is gone\n\n"+
		"worktree /tmp/other/source\nHEAD def\ndetached\n"))
}

// TestNeededAreTheFlagsOfAFleet fails when package fleet sets a flag that a base is not asked for.
func TestNeededAreTheFlagsOfAFleet(t *testing.T) {
	code, err := os.ReadFile(filepath.Join("..", "sandbox", "fleet", "install.go"))
	require.NoError(t, err)
	_, texts := needed()
	asked := slices.Concat(texts["agent"], texts["hub"])
	set := regexp.MustCompile(`"--([a-z-]+)`).FindAllStringSubmatch(string(code), -1)
	require.NotEmpty(t, set)
	for _, flag := range set {
		assert.Contains(t, asked, `"`+flag[1]+`"`)
	}
}

// wellAt is a cluster with a version of the add-on.
func wellAt(version string) Cluster {
	return Cluster{
		Available: true, Agent: "agent1",
		AddOn: &AddOn{UID: "addon", Available: true, Completed: true, Configured: true},
		Works: map[string]Work{"deploy": {Applied: true, Available: true}},
		Objects: map[string]Object{
			"ConfigMap": {UID: "config", Version: version}, "Deployment": {UID: "deployment", Version: version},
		},
	}
}

func TestJudge(t *testing.T) {
	gone := Cluster{Available: true, Agent: "agent1"}
	for name, tc := range map[string]struct {
		last   Cluster
		edit   func(*Cluster)
		want   string
		says   string
		number int
	}{
		"well":                  {wellAt("v4"), func(*Cluster) {}, "v4", "", 0},
		"gone as it should":     {gone, func(*Cluster) {}, "", "", 0},
		"away":                  {wellAt("v4"), func(c *Cluster) { c.Available = false }, "v4", "is not available", 1},
		"joined again":          {wellAt("v4"), func(c *Cluster) { c.Agent = "agent2" }, "v4", "joined again, as agent2", 1},
		"uninstalled":           {wellAt("v4"), func(c *Cluster) { c.AddOn = nil }, "v4", "does not have the add-on", 1},
		"installed again":       {wellAt("v4"), func(c *Cluster) { c.AddOn.UID = "other" }, "v4", "installed again", 1},
		"broken":                {wellAt("v4"), func(c *Cluster) { c.AddOn.Available = false }, "v4", "is not available with", 1},
		"on its way":            {wellAt("v4"), func(c *Cluster) { c.AddOn.Completed = false }, "v4", "is not available with", 1},
		"with something else":   {wellAt("v4"), func(c *Cluster) { c.AddOn.Configured = false }, "v4", "is not available with", 1},
		"without works":         {wellAt("v4"), func(c *Cluster) { c.Works = nil }, "v4", "has no work", 1},
		"a work that waits":     {wellAt("v4"), func(c *Cluster) { c.Works["deploy"] = Work{Applied: true} }, "v4", "work deploy", 1},
		"another version":       {wellAt("v3"), func(*Cluster) {}, "v4", `of version "v3"`, 2},
		"an object is missing":  {wellAt("v4"), func(c *Cluster) { delete(c.Objects, "ConfigMap") }, "v4", "the ConfigMap", 1},
		"an object made again":  {wellAt("v4"), func(c *Cluster) { c.Objects["ConfigMap"] = Object{"other", "v4"} }, "v4", "made again", 1},
		"not removed":           {wellAt("v4"), func(*Cluster) {}, "", "still has the add-on", 4},
		"a work is left":        {gone, func(c *Cluster) { c.Works = map[string]Work{"deploy": {}} }, "", "still has work deploy", 1},
		"not removed, but away": {gone, func(c *Cluster) { c.Available = false }, "", "is not available", 1},
	} {
		t.Run(name, func(t *testing.T) {
			last := tc.last
			tc.edit(&last)
			wrong := Judge(map[string]Cluster{"c": wellAt("v1")}, map[string]Cluster{"c": last}, map[string]string{"c": tc.want})
			assert.Len(t, wrong, tc.number)
			assert.Contains(t, strings.Join(wrong, "\n"), tc.says)
		})
	}
}

func TestUnreplacedCertificates(t *testing.T) {
	with := func(agent, addOn string) map[string]Cluster {
		return map[string]Cluster{"c": {Certificates: map[string]string{ofAgent: agent, ofAddOn: addOn}}}
	}
	assert.Empty(t, unreplaced(with("a1", "b1"), with("a2", "b2")))
	assert.Equal(t, []string{"c: the certificate of the agent was not replaced"}, unreplaced(with("a1", "b1"), with("a1", "b2")))
	assert.Len(t, unreplaced(with("a1", "b1"), with("a2", "")), 1, "one that is missing was not replaced")
}

func TestPathsEndWithTheSameHubManagerInPairs(t *testing.T) {
	last := map[Side]int{}
	for _, p := range Paths() {
		last[p.last()]++
	}
	assert.Equal(t, map[Side]int{Old: 2, New: 2}, last)
}

func TestDifferencesAndTable(t *testing.T) {
	paths := Paths()
	reports := []Report{
		{Path: paths[0], Works: map[string]string{"c/deploy": "old"}},
		{Path: paths[1], Works: map[string]string{"c/deploy": "new"}, Steps: []Step{{Name: "clusters joined", Took: time.Second}}},
		{Path: paths[2], Works: map[string]string{"c/deploy": "new"}},
		{Path: paths[3], Works: map[string]string{"c/deploy": "old"}, Violations: []string{"oops"}},
	}
	assert.Empty(t, Differences(reports))
	require.EqualError(t, Check(reports), "back: oops")
	reports[3].Works = map[string]string{"c/deploy": "new", "c/more": ""}
	assert.Len(t, Differences(reports), 2)
	reports[3].Works = nil
	assert.Empty(t, Differences(reports), "a path that did not reach its end is not compared")

	var out strings.Builder
	require.NoError(t, Write(&out, reports))
	table := strings.Split(out.String(), "\n")
	assert.Regexp(t, `^ +old-hub +new-hub +upgrade +back$`, table[0])
	assert.Regexp(t, `^hub manager +old +new +old, then new +new, then old$`, table[1])
	assert.Regexp(t, `^clusters joined +- +1s +- +-$`, table[3])
	assert.Regexp(t, `^violations +0 +0 +0 +1$`, table[len(table)-2])
}

func TestKubeletsLetPodsRun(t *testing.T) {
	k := newKubelets(nil)
	k.breaks("v3")
	assert.False(t, k.may("v3", "c1"))
	k.limit("v2", 1)
	assert.True(t, k.may("v2", "c1"))
	assert.True(t, k.may("v2", "c1"), "it stays")
	assert.False(t, k.may("v2", "c2"))
	k.open("v2")
	assert.True(t, k.may("v2", "c2"))
}
