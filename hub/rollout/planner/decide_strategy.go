package planner

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/spokelet/spokelet/internal/message"
)

// maxValue is how many bytes of a value a problem quotes.
const maxValue = 60

// rules are a strategy in a form that can be followed.
type rules struct {
	kind clusterv1alpha1.RolloutType
	// deadline is how long a cluster may take, when expires is set.
	expires  bool
	deadline time.Duration
	// soak is how long a cluster must have succeeded.
	soak time.Duration
	// concurrency is how many clusters of a wave move at a time, failures how many of them may fail.
	concurrency, failures share
	mandatory             []clusterv1alpha1.MandatoryDecisionGroup
	// tolerant is set where no failure stops anything.
	tolerant bool
	// remark explains which field is passed over; empty when none is.
	remark string
}

// share is a number of clusters, or a percentage of the clusters of a wave.
type share struct {
	amount  int
	percent bool
}

// all returns the share that every cluster fits into.
func all() share { return share{amount: 100, percent: true} }

// of returns the share of a number of clusters, rounded up.
func (s share) of(clusters int) int {
	if s.percent {
		return (clusters*s.amount + 99) / 100
	}
	return s.amount
}

func (s share) String() string {
	if s.percent {
		return strconv.Itoa(s.amount) + "%"
	}
	return strconv.Itoa(s.amount)
}

// Deadline returns how long a cluster may be on its way to the target of a strategy; zero for ever, and where the
// strategy cannot be used.
func Deadline(strategy clusterv1alpha1.RolloutStrategy) time.Duration {
	if r, problem := rulesOf(Placement{Strategy: strategy}); problem == "" && r.expires {
		return r.deadline
	}
	return 0
}

// rulesOf returns the rules of the strategy of a placement. The problem, when there is one, explains which field cannot
// be used; the rules are those without limits then.
func rulesOf(p Placement) (r rules, problem string) {
	free := rules{kind: clusterv1alpha1.All, concurrency: all(), failures: all()}
	r = free
	var config clusterv1alpha1.RolloutConfig
	field := "rolloutStrategy."
	switch strategy := p.Strategy; strategy.Type {
	case clusterv1alpha1.All, "":
		return rulesOfAll(field+"all", strategy.All), ""
	case clusterv1alpha1.Progressive:
		field += "progressive"
		var progressive clusterv1alpha1.RolloutProgressive
		if strategy.Progressive != nil {
			progressive = *strategy.Progressive
		}
		r.mandatory = progressive.MandatoryDecisionGroups.MandatoryDecisionGroups
		problem = r.configure(field, progressive.RolloutConfig)
		if problem == "" {
			r.concurrency, problem = concurrency(field, progressive.MaxConcurrency, p.GroupSize)
		}
	case clusterv1alpha1.ProgressivePerGroup:
		field += "progressivePerGroup"
		if strategy.ProgressivePerGroup != nil {
			config = strategy.ProgressivePerGroup.RolloutConfig
			r.mandatory = strategy.ProgressivePerGroup.MandatoryDecisionGroups.MandatoryDecisionGroups
		}
		problem = r.configure(field, config)
	default:
		problem = unusable(field+"type", string(strategy.Type), "All, Progressive or ProgressivePerGroup")
	}
	if problem == "" {
		problem = r.checkMandatory(field)
	}
	if problem != "" {
		return free, problem
	}
	r.kind = p.Strategy.Type
	return r, ""
}

// rulesOfAll returns the rules of strategy All. Nobody asks whether a cluster may move, so a deadline that cannot be
// used stops none. Soak and failures concern the order of clusters, and here there is none.
func rulesOfAll(field string, strategy *clusterv1alpha1.RolloutAll) rules {
	r := rules{kind: clusterv1alpha1.All, concurrency: all(), failures: all()}
	if strategy == nil {
		return r
	}
	var ok bool
	if r.deadline, r.expires, ok = parseDeadline(strategy.ProgressDeadline); !ok {
		r.remark = passedOver(field+".progressDeadline", strategy.ProgressDeadline, "no cluster times out", deadlines)
	}
	return r
}

// configure takes over the settings that all types of strategies have.
func (r *rules) configure(field string, config clusterv1alpha1.RolloutConfig) (problem string) {
	var ok bool
	if r.deadline, r.expires, ok = parseDeadline(config.ProgressDeadline); !ok {
		return unusable(field+".progressDeadline", config.ProgressDeadline, deadlines)
	}
	if r.soak = config.MinSuccessTime.Duration; r.soak < 0 {
		return unusable(field+".minSuccessTime", r.soak.String(), "0 or a duration, such as 10m")
	}
	if r.failures, ok = parseShare(config.MaxFailures); !ok {
		return unusable(field+".maxFailures", config.MaxFailures.String(),
			"a number of clusters, or a percentage from 0% to 100%")
	}
	return ""
}

// checkMandatory complains about groups that no decision can be in.
func (r *rules) checkMandatory(field string) (problem string) {
	for n, group := range r.mandatory {
		if group.GroupName == "" && group.GroupIndex < 0 {
			return unusable(fmt.Sprintf("%s.mandatoryDecisionGroups[%d].groupIndex", field, n),
				strconv.Itoa(int(group.GroupIndex)), "0 or the higher index of a decision group")
		}
	}
	return ""
}

// concurrency returns how many clusters may move at a time. A number of 0 cannot be told from an absent field in Go, so
// it means the default; a text of 0 was written by a user.
func concurrency(field string, value, groupSize intstr.IntOrString) (s share, problem string) {
	field += ".maxConcurrency"
	if value == (intstr.IntOrString{}) {
		value = groupSize
		field += ", which follows clustersPerDecisionGroup of the Placement,"
	}
	if value == (intstr.IntOrString{}) {
		return all(), ""
	}
	s, ok := parseShare(value)
	if !ok || s.amount == 0 {
		return all(), unusable(field, value.String(),
			"a number of clusters from 1, or a percentage from 1% to 100%")
	}
	return s, ""
}

// deadlines are the values that a progressDeadline may have.
const deadlines = "None, or digits and one unit of h, m and s, such as 90m"

// unusable is the problem with a field that stops a rollout.
func unusable(field, value, allowed string) string {
	return passedOver(field, value, "no cluster is changed", allowed)
}

// passedOver explains that a field cannot be used, and what follows.
func passedOver(field, value, follows, allowed string) string {
	return fmt.Sprintf("%s is %q, which cannot be used, so %s; allowed is %s",
		field, message.Cut(value, maxValue), follows, allowed)
}

// parseShare parses a number of clusters: an integer, digits, or a percentage up to 100.
func parseShare(value intstr.IntOrString) (s share, ok bool) {
	switch value.Type {
	case intstr.Int:
		return share{amount: int(value.IntVal)}, value.IntVal >= 0
	case intstr.String:
		text, percent := strings.CutSuffix(value.StrVal, "%")
		amount, ok := parseDigits(text)
		if percent && len(text) > 2 && text != "100" {
			return share{}, false
		}
		return share{amount: amount, percent: percent}, ok
	}
	return share{}, false
}

// parseDeadline parses a progressDeadline: digits and a unit. An absent one, like None, means that clusters have all
// the time they need.
func parseDeadline(text string) (deadline time.Duration, expires, ok bool) {
	if text == "" || text == "None" {
		return 0, false, true
	}
	unit := map[byte]time.Duration{'h': time.Hour, 'm': time.Minute, 's': time.Second}[text[len(text)-1]]
	amount, ok := parseDigits(text[:len(text)-1])
	if !ok || unit == 0 || amount > int(math.MaxInt64/unit) {
		return 0, false, false
	}
	return time.Duration(amount) * unit, true, true
}

// parseDigits parses a decimal number of digits only. One that is too large becomes the largest.
func parseDigits(text string) (number int, ok bool) {
	if text == "" || slices.ContainsFunc([]byte(text), func(c byte) bool { return c < '0' || c > '9' }) {
		return 0, false
	}
	number, err := strconv.Atoi(text)
	if err != nil {
		return math.MaxInt, true
	}
	return number, true
}
