package monitoring

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Program is whose metrics an alert is about.
type Program string

// The programs. Each has a group of rules, and is scraped under a job of its name.
const (
	Hub   Program = "spokelet-hub"
	Agent Program = "klusterlet-agent"
)

// Severity is how soon a person should look.
type Severity string

const (
	// Critical wakes a person.
	Critical Severity = "critical"
	// Warning waits for working hours.
	Warning Severity = "warning"
)

// DefaultRunbooks is where the pages about alerts are unless a user has copies of them elsewhere.
const DefaultRunbooks = "https://github.com/spokelet/spokelet/blob/main/docs/operations/runbooks"

// placeholder stands for the threshold in an expression.
const placeholder = "THRESHOLD"

// Alert is an alerting rule.
type Alert struct {
	// Name begins with Spokelet, as alerts of all programs share one list.
	Name     string
	Program  Program
	Severity Severity
	// For is how long the expression has to hold before the alert fires.
	For time.Duration
	// Expr is the expression in PromQL, with THRESHOLD for the threshold.
	Expr string
	// Threshold is above what the alert fires, and Unit what it counts; both are empty for one without.
	Threshold int
	Unit      string
	// Summary is a sentence for a list, and Description says what is wrong and what to run. Both are templates of
	// Prometheus.
	Summary, Description string
}

// Alerts returns all alerts, those of the hub first.
func Alerts() []Alert { return slices.Concat(hubAlerts(), agentAlerts()) }

// of returns the alerts of a program.
func of(p Program) []Alert {
	return slices.DeleteFunc(Alerts(), func(a Alert) bool { return a.Program != p })
}

// HasThreshold reports whether the alert has a threshold.
func (a Alert) HasThreshold() bool { return strings.Contains(a.Expr, placeholder) }

// Query returns the expression with the default threshold.
func (a Alert) Query() string {
	return strings.ReplaceAll(a.Expr, placeholder, strconv.Itoa(a.Threshold))
}

// duration prints how long an alert waits, as Prometheus does.
func (a Alert) duration() string {
	if a.For%time.Hour == 0 {
		return strconv.Itoa(int(a.For/time.Hour)) + "h"
	}
	return strconv.Itoa(int(a.For/time.Minute)) + "m"
}
