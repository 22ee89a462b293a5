package expressions

import (
	"github.com/google/cel-go/cel"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/spokelet/spokelet/internal/kept"
)

// Programs keeps compiled expressions, and why others do not compile.
type Programs struct {
	// Limit is how many bytes the programs may take, as estimated.
	Limit int

	kept kept.Texts[program]
}

// program is a compiled expression, or the error of its compilation.
type program struct {
	program cel.Program
	err     error
}

// Of returns the program of an expression in some environment, which compile makes if it is not kept.
func (p *Programs) Of(text string, compile func() (cel.Program, error)) (cel.Program, error) {
	made := p.kept.Of(text, p.Limit, func() (program, int) {
		compiled, err := compile()
		return program{compiled, err}, sizeOf(text)
	})
	return made.program, made.err
}

// Has reports whether the program of an expression is kept.
func (p *Programs) Has(text string) bool { return p.kept.Has(text) }

// sizeOf estimates how many bytes the program of a text takes: each has a table of all functions.
func sizeOf(text string) int {
	const least, perCharacter = 48 << 10, 160
	return least + perCharacter*len(text)
}

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
