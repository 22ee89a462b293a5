package planner

import (
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
)

// Shows: hub/rollout-unusable
func TestAStrategyThatCannotBeUsedAdmitsNothingAndNamesTheField(t *testing.T) {
	number := ", which cannot be used, so no cluster is changed; allowed is a number of clusters, or a percentage from 0% to 100%"
	positive := ", which cannot be used, so no cluster is changed; allowed is a number of clusters from 1, or a percentage from 1% to 100%"
	deadline := ", which cannot be used, so no cluster is changed; allowed is None, or digits and one unit of h, m and s, such as 90m"
	tests := map[string]struct {
		strategy  string
		groupSize intstr.IntOrString
		problem   string
	}{
		"an unknown type": {
			strategy: `{type: RollingUpdate}`,
			problem: `rolloutStrategy.type is "RollingUpdate", which cannot be used, so no cluster is changed; ` +
				`allowed is All, Progressive or ProgressivePerGroup`,
		},
		"a number that is none": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: many}}`,
			problem:  `rolloutStrategy.progressive.maxConcurrency is "many"` + positive,
		},
		"a negative number": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: -1}}`,
			problem:  `rolloutStrategy.progressive.maxConcurrency is "-1"` + positive,
		},
		"0% may not move, and never did anybody mean all": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: 0%}}`,
			problem:  `rolloutStrategy.progressive.maxConcurrency is "0%"` + positive,
		},
		"nor does a text of 0": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: "0"}}`,
			problem:  `rolloutStrategy.progressive.maxConcurrency is "0"` + positive,
		},
		"an empty text": {
			strategy: `{type: Progressive, progressive: {maxConcurrency: ""}}`,
			problem:  `rolloutStrategy.progressive.maxConcurrency is ""` + positive,
		},
		"the size of a decision group": {
			strategy: `{type: Progressive}`, groupSize: intstr.FromString("x"),
			problem: `rolloutStrategy.progressive.maxConcurrency, which follows clustersPerDecisionGroup of the Placement, is "x"` + positive,
		},
		"failures that are no number": {
			strategy: `{type: Progressive, progressive: {maxFailures: "3.5"}}`,
			problem:  `rolloutStrategy.progressive.maxFailures is "3.5"` + number,
		},
		"more than all of the failures": {
			strategy: `{type: ProgressivePerGroup, progressivePerGroup: {maxFailures: 101%}}`,
			problem:  `rolloutStrategy.progressivePerGroup.maxFailures is "101%"` + number,
		},
		"a deadline with text after it": {
			strategy: `{type: Progressive, progressive: {progressDeadline: 10minutes}}`,
			problem:  `rolloutStrategy.progressive.progressDeadline is "10minutes"` + deadline,
		},
		"a deadline with a pipe as unit": {
			strategy: `{type: ProgressivePerGroup, progressivePerGroup: {progressDeadline: 7|}}`,
			problem:  `rolloutStrategy.progressivePerGroup.progressDeadline is "7|"` + deadline,
		},
		"a soak below nothing": {
			strategy: `{type: Progressive, progressive: {minSuccessTime: -5m}}`,
			problem: `rolloutStrategy.progressive.minSuccessTime is "-5m0s", which cannot be used, so no cluster is changed; ` +
				`allowed is 0 or a duration, such as 10m`,
		},
		"a mandatory group below 0": {
			strategy: `{type: Progressive, progressive: {mandatoryDecisionGroups: [{groupIndex: 1}, {groupIndex: -1}]}}`,
			problem: `rolloutStrategy.progressive.mandatoryDecisionGroups[1].groupIndex is "-1", which cannot be used, so no cluster is ` +
				`changed; allowed is 0 or the higher index of a decision group`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := Make(Fleet{Now: noon, Placements: []Placement{{
				Strategy: strategy(t, test.strategy), GroupSize: test.groupSize,
				Clusters: clusters(t, "a pending, b flying, c failed, d pending held, e done 1s"), Selected: 5,
			}}}).Placements[0]
			assert.Equal(t, test.problem, r.Problem)
			assert.Empty(t, r.New)
			assert.Equal(t, "b c e", words(r.Admit), "what has the target keeps it")
			assert.Equal(t, []Wait{{"a", test.problem}, {"d", "its own configuration does not exist"}}, r.Hold)
			assert.Equal(t, "selected clusters 5. configured addons 2/5 progressing..., 1 failed 0 timeout. "+test.problem+".",
				r.Condition().Message)
			assert.Empty(t, r.Stopped)
			assert.Zero(t, r.Wake)
		})
	}
}

// Shows: hub/rollout-all-deadline
func TestADeadlineOfAllThatCannotBeUsedIsRemarkedAndStopsNothing(t *testing.T) {
	r := Make(Fleet{Now: noon, Placements: []Placement{{
		Strategy: strategy(t, `{type: All, all: {progressDeadline: soon}}`), Clusters: clusters(t, "a pending, b flying 900h"),
	}}}).Placements[0]
	assert.Empty(t, r.Problem)
	assert.Equal(t, "a", words(r.New))
	assert.Empty(t, r.TimedOut)
	assert.Equal(t, []string{`rolloutStrategy.all.progressDeadline is "soon", which cannot be used, so no cluster times out; ` +
		`allowed is None, or digits and one unit of h, m and s, such as 90m`}, r.Remarks)
}

func TestSettingsOfAllThatOrderNothingAreNotRead(t *testing.T) {
	r := Make(Fleet{Now: noon, Placements: []Placement{{
		Strategy: strategy(t, `{type: All, all: {maxFailures: many, minSuccessTime: -5m}}`), Clusters: clusters(t, "a pending"),
	}}}).Placements[0]
	assert.Empty(t, r.Problem)
	assert.Equal(t, "a", words(r.New))
}

func TestParseShare(t *testing.T) {
	tests := map[string]struct {
		value intstr.IntOrString
		of    int
		want  int
		text  string
	}{
		"an integer":                       {intstr.FromInt32(3), 10, 3, "3"},
		"digits":                           {intstr.FromString("3"), 10, 3, "3"},
		"nothing":                          {intstr.FromInt32(0), 10, 0, "0"},
		"a percentage":                     {intstr.FromString("20%"), 10, 2, "20%"},
		"a percentage is rounded up":       {intstr.FromString("21%"), 10, 3, "21%"},
		"the least percentage":             {intstr.FromString("1%"), 3, 1, "1%"},
		"a leading zero":                   {intstr.FromString("05%"), 100, 5, "5%"},
		"all":                              {intstr.FromString("100%"), 7, 7, "100%"},
		"a percentage of nothing":          {intstr.FromString("50%"), 0, 0, "50%"},
		"more digits than a number has":    {intstr.FromString("99999999999999999999"), 7, math.MaxInt, "9223372036854775807"},
		"a number larger than the cluster": {intstr.FromInt32(12), 7, 12, "12"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, ok := parseShare(test.value)
			require.True(t, ok)
			assert.Equal(t, test.want, s.of(test.of))
			assert.Equal(t, test.text, s.String())
		})
	}
	for _, text := range []string{"", "%", "-1", "+1", "1.5", " 1", "1 ", "101%", "0100%", "050%", "999999999999999999999%", "5%%", "%5", "٣", "0x1"} {
		_, ok := parseShare(intstr.FromString(text))
		assert.False(t, ok, "%q", text)
	}
	_, ok := parseShare(intstr.FromInt32(-1))
	assert.False(t, ok)
	_, ok = parseShare(intstr.IntOrString{Type: 7})
	assert.False(t, ok)
}

func TestParseDeadline(t *testing.T) {
	tests := map[string]struct {
		deadline time.Duration
		expires  bool
	}{
		"":        {},
		"None":    {},
		"0s":      {0, true},
		"90s":     {90 * time.Second, true},
		"15m":     {15 * time.Minute, true},
		"2h":      {2 * time.Hour, true},
		"002h":    {2 * time.Hour, true},
		"876000h": {876000 * time.Hour, true},
	}
	for text, test := range tests {
		deadline, expires, ok := parseDeadline(text)
		assert.True(t, ok, "%q", text)
		assert.Equal(t, test.deadline, deadline, "%q", text)
		assert.Equal(t, test.expires, expires, "%q", text)
	}
	for _, text := range []string{
		"none", "s", "10", "10|", "10d", "10ms", "1h30m", "-1s", "1.5h", " 1h", "1h ", "Nonesense", "10h, or later",
		"9999999999h", "99999999999999999999s",
	} {
		_, _, ok := parseDeadline(text)
		assert.False(t, ok, "%q", text)
	}
}

func FuzzParseShare(f *testing.F) {
	for _, text := range []string{"3", "25%", "100%", "101%", "007", "-1", "", "%", "99999999999999999999"} {
		f.Add(text, 7)
	}
	form := regexp.MustCompile(`^((100|[0-9]{1,2})%|[0-9]+)$`)
	f.Fuzz(func(t *testing.T, text string, total int) {
		s, ok := parseShare(intstr.FromString(text))
		// The line of the pattern ends where the text ends.
		require.Equal(t, form.MatchString(text) && !strings.Contains(text, "\n"), ok, "%q", text)
		if !ok || total < 0 || total > 1<<30 {
			return
		}
		part := s.of(total)
		require.GreaterOrEqual(t, part, 0)
		if s.percent {
			require.LessOrEqual(t, part, total)
			require.Equal(t, s.amount > 0 && total > 0, part > 0)
		}
	})
}

func FuzzParseDeadline(f *testing.F) {
	for _, text := range []string{"None", "", "90s", "15m", "2h", "7|", "10ms", "1h30m", "99999999999999999999h", "None2"} {
		f.Add(text)
	}
	form := regexp.MustCompile(`^([0-9]+[hms]|None|)\z`)
	f.Fuzz(func(t *testing.T, text string) {
		deadline, expires, ok := parseDeadline(text)
		if ok {
			require.Regexp(t, form, text)
		} else if form.MatchString(text) {
			require.Greater(t, len(text), 7, "only what a duration cannot hold")
		}
		require.GreaterOrEqual(t, deadline, time.Duration(0))
		require.Equal(t, ok && text != "" && text != "None", expires)
	})
}

func FuzzMakeIsTotal(f *testing.F) {
	f.Add("Progressive", "25%", "1", "90s", int64(time.Minute), "canary", int32(0), 1, int64(5), -3)
	f.Add("ProgressivePerGroup", "", "x", "7|", int64(-1), "", int32(-1), -1, int64(0), 9)
	f.Add("Progressive", "1", "0", "90s", int64(0), "canary", int32(0), 1, int64(5), int(Awaited))
	f.Fuzz(func(t *testing.T, kind, concurrency, failures, deadline string, soak int64, name string, index int32,
		group int, age int64, state int,
	) {
		config := clusterv1alpha1.RolloutConfig{
			MaxFailures: intstr.Parse(failures), ProgressDeadline: deadline,
			MinSuccessTime: metav1.Duration{Duration: time.Duration(soak)},
		}
		mandatory := clusterv1alpha1.MandatoryDecisionGroups{
			MandatoryDecisionGroups: []clusterv1alpha1.MandatoryDecisionGroup{{GroupName: name, GroupIndex: index}},
		}
		r := Make(Fleet{Now: noon, Placements: []Placement{{
			Strategy: clusterv1alpha1.RolloutStrategy{
				Type:        clusterv1alpha1.RolloutType(kind),
				Progressive: &clusterv1alpha1.RolloutProgressive{RolloutConfig: config, MandatoryDecisionGroups: mandatory, MaxConcurrency: intstr.Parse(concurrency)},
				ProgressivePerGroup: &clusterv1alpha1.RolloutProgressivePerGroup{
					RolloutConfig: config, MandatoryDecisionGroups: mandatory,
				},
			},
			Clusters: []Cluster{
				{Name: name, Group: group, GroupName: name, State: State(state), Since: noon.Add(-time.Duration(age))}, {Name: "other"},
			},
		}}}).Placements[0]
		listed := 2
		if State(state) == Awaited { // Without an add-on there is nothing to hold.
			listed = 1
		}
		require.Equal(t, listed, len(r.Admit)+len(r.Hold))
	})
}
