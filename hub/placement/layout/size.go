package layout

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Size is the limit of clusters in a decision group: a number, or else a percentage of all selected clusters.
type Size struct{ number, percent int }

// ParseSize parses clustersPerDecisionGroup. An unset one is 100 %. The error begins with the value.
func ParseSize(from intstr.IntOrString) (Size, error) {
	const all = 100
	text, isPercent := strings.CutSuffix(from.StrVal, "%")
	switch {
	case from == intstr.IntOrString{} || from == intstr.FromString(""):
		return Size{percent: all}, nil
	case from.Type == intstr.Int:
		text = strconv.Itoa(from.IntValue())
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return Size{}, fmt.Errorf("%q is neither a number nor a percentage", from.String())
	case n < 1:
		return Size{}, fmt.Errorf("%q must be at least 1", from.String())
	case isPercent && n > all:
		return Size{}, fmt.Errorf("%q must be at most 100%%", from.String())
	case isPercent:
		return Size{percent: n}, nil
	}
	return Size{number: n}, nil
}

// Of returns the limit where total clusters are selected; it is at least 1.
func (s Size) Of(total int) int {
	const all = 100
	if s.number > 0 {
		return s.number
	}
	return max((total*s.percent+all-1)/all, 1)
}

// String returns the size as a Placement has it.
func (s Size) String() string {
	if s.number > 0 {
		return strconv.Itoa(s.number)
	}
	return strconv.Itoa(s.percent) + "%"
}
