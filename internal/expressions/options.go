package expressions

import (
	"github.com/google/cel-go/cel"
	"k8s.io/apiserver/pkg/cel/library"
)

// MaxLength is the greatest length of an expression, in characters. To compile one takes some three kilobytes for each.
const MaxLength = 4096

// Options returns the functions and settings of an environment, without variables. Its programs have a cost.
func Options() []cel.EnvOption {
	return append(stringFunctions(),
		cel.ParserExpressionSizeLimit(MaxLength),
		cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true),
		cel.OptionalTypes(),
		library.Lists(), library.Regex(), library.URLs(), library.Quantity(), library.IP(), library.CIDR(),
		library.Format(), library.SemverLib(library.SemverVersion(1)),
		cel.Lib(limited{patterns: &patterns{}}),
	)
}
