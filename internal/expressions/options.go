package expressions

import (
	"github.com/google/cel-go/cel"
	"k8s.io/apiserver/pkg/cel/library"
)

// Options returns the functions and settings of an environment, without variables.
func Options() []cel.EnvOption {
	return append(stringFunctions(),
		cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true),
		cel.OptionalTypes(),
		library.Lists(), library.Regex(), library.URLs(), library.Quantity(), library.IP(), library.CIDR(),
		library.Format(), library.SemverLib(library.SemverVersion(1)),
	)
}
