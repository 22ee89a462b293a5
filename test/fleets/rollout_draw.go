package fleets

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
)

// amount is a number of clusters or a percentage of them, as the judge understands it.
type amount struct {
	number  int
	percent bool
	// digits is set when a number is written as a text.
	digits bool
}

// of returns the least number of clusters that is at least the amount.
func (a amount) of(clusters int) int {
	if !a.percent {
		return a.number
	}
	least := 0
	for least*100 < clusters*a.number {
		least++
	}
	return least
}

// value returns the amount as an author writes it.
func (a amount) value() intstr.IntOrString {
	switch {
	case a.percent:
		return intstr.FromString(strconv.Itoa(a.number) + "%")
	case a.digits:
		return intstr.FromString(strconv.Itoa(a.number))
	}
	return intstr.FromInt32(int32(a.number))
}

// settings are a strategy as the judge understands it.
type settings struct {
	kind clusterv1alpha1.RolloutType
	// concurrency is nil when the author leaves it out, groupSize when the Placement has none.
	concurrency, groupSize *amount
	failures               amount
	soak                   time.Duration
	// deadline is nil for none.
	deadline  *time.Duration
	mandatory []clusterv1alpha1.MandatoryDecisionGroup
	// unusable is set when the strategy has a field that cannot be used.
	unusable bool
	// passedOver is set when the deadline cannot be used, and nobody needs it.
	passedOver bool
	strategy   clusterv1alpha1.RolloutStrategy
}

// limit returns how many of so many clusters may move at a time.
func (s settings) limit(clusters int) int {
	switch {
	case s.concurrency != nil:
		return s.concurrency.of(clusters)
	case s.groupSize != nil:
		return s.groupSize.of(clusters)
	}
	return clusters
}

func drawAmount(r *rand.Rand, least int) amount {
	switch r.IntN(3) {
	case 0:
		percents := []int{least, 1, 10, 25, 30, 50, 99, 100}
		return amount{number: percents[r.IntN(len(percents))], percent: true}
	case 1:
		return amount{number: max(1, least) + r.IntN(4), digits: true}
	}
	// A number of 0 cannot be told from an absent one.
	return amount{number: max(1, least) + r.IntN(4)}
}

func drawGroupName(r *rand.Rand) string { return []string{"", "", "canary", "eu", "us"}[r.IntN(5)] }

// drawSettings draws a strategy that can be used.
func drawSettings(r *rand.Rand) settings {
	s := settings{kind: clusterv1alpha1.Progressive}
	switch r.IntN(10) {
	case 0, 1:
		s.kind = clusterv1alpha1.All
	case 2, 3, 4:
		s.kind = clusterv1alpha1.ProgressivePerGroup
	}
	if r.IntN(4) > 0 {
		drawn := drawAmount(r, 1)
		s.concurrency = &drawn
	}
	if r.IntN(2) == 0 {
		drawn := drawAmount(r, 1)
		s.groupSize = &drawn
	}
	if r.IntN(2) == 0 {
		s.failures = drawAmount(r, 0)
	}
	if r.IntN(2) == 0 {
		s.soak = time.Duration(1+r.IntN(600)) * time.Second
	}
	deadline := "None"
	if r.IntN(5) < 3 {
		unit := []time.Duration{time.Second, time.Minute, time.Hour}[r.IntN(3)]
		count := r.IntN(20)
		drawn := time.Duration(count) * unit
		s.deadline = &drawn
		deadline = fmt.Sprintf("%d%s", count, map[time.Duration]string{
			time.Second: "s", time.Minute: "m", time.Hour: "h",
		}[unit])
	} else if r.IntN(2) == 0 {
		deadline = ""
	}
	for r.IntN(5) < 2 {
		entry := clusterv1alpha1.MandatoryDecisionGroup{GroupName: drawGroupName(r)}
		if entry.GroupName == "" || r.IntN(3) == 0 {
			entry.GroupIndex = r.Int32N(5)
		}
		s.mandatory = append(s.mandatory, entry)
	}
	if s.kind == clusterv1alpha1.All && r.IntN(8) == 0 {
		s.deadline, deadline, s.passedOver = nil, "soon", true
	}
	s.write(deadline)
	return s
}

// write writes the settings as a strategy.
func (s *settings) write(deadline string) {
	config := clusterv1alpha1.RolloutConfig{
		MinSuccessTime: metav1.Duration{Duration: s.soak}, ProgressDeadline: deadline, MaxFailures: s.failures.value(),
	}
	mandatory := clusterv1alpha1.MandatoryDecisionGroups{MandatoryDecisionGroups: s.mandatory}
	s.strategy.Type = s.kind
	switch s.kind {
	case clusterv1alpha1.All:
		s.strategy.All = &clusterv1alpha1.RolloutAll{RolloutConfig: config}
		// These settings order clusters, so All has no use for them.
		s.soak, s.mandatory = 0, nil
	case clusterv1alpha1.Progressive:
		s.strategy.Progressive = &clusterv1alpha1.RolloutProgressive{
			RolloutConfig: config, MandatoryDecisionGroups: mandatory,
		}
		if s.concurrency != nil {
			s.strategy.Progressive.MaxConcurrency = s.concurrency.value()
		}
	case clusterv1alpha1.ProgressivePerGroup:
		s.strategy.ProgressivePerGroup = &clusterv1alpha1.RolloutProgressivePerGroup{
			RolloutConfig: config, MandatoryDecisionGroups: mandatory,
		}
	}
}

// drawUnusable draws a strategy that cannot be used.
func drawUnusable(r *rand.Rand) settings {
	s := drawSettings(r)
	s.unusable, s.passedOver, s.soak, s.deadline = true, false, 0, nil
	bad := clusterv1alpha1.RolloutProgressive{}
	switch r.IntN(4) {
	case 0:
		s.strategy.Type = "RollingUpdate"
		return s
	case 1:
		bad.MaxConcurrency = intstr.FromString([]string{"0", "0%", "-1", "101%", "1.5", "all", ""}[r.IntN(7)])
	case 2:
		bad.MaxFailures = intstr.FromString([]string{"-1", "101%", "1.5", "none", "", "%"}[r.IntN(6)])
	case 3:
		bad.ProgressDeadline = []string{"7|", "soon", "10", "m", "1h30m", "10m!", "-1m"}[r.IntN(7)]
	}
	s.kind = clusterv1alpha1.Progressive
	s.strategy = clusterv1alpha1.RolloutStrategy{Type: s.kind, Progressive: &bad}
	return s
}
