package expressions

import (
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/spokelet/spokelet/internal/kept"
)

const (
	// maxPattern is the greatest length of a regular expression, in bytes, and maxPatternSize its greatest size once it is
	// compiled, in instructions: repetitions multiply it. An instruction takes some 500 bytes while it is compiled and
	// used.
	maxPattern, maxPatternSize = 1024, 5000
	// maxPatternCost is how much one use of a regular expression may cost, in units of CEL, because nothing interrupts
	// it: a quarter of a second.
	maxPatternCost = 1_000_000
	// maxPatternsKept limits the size of all regular expressions that an environment keeps: some five megabytes.
	maxPatternsKept = 50_000
	// runesForAnInstruction is how many bounds of a class of characters take as much memory as an instruction.
	runesForAnInstruction = 16
)

// CheckPattern returns an error if a regular expression is wrong or would have more instructions than a limit.
func CheckPattern(text string, most int) error {
	_, err := patternSize(text, most)
	return err
}

// patternSize returns how many instructions a regular expression has, without compiling it.
func patternSize(text string, most int) (int, error) {
	if len(text) > maxPattern {
		return 0, fmt.Errorf("the regular expression has %d bytes, more than the limit of %d", len(text), maxPattern)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0, fmt.Errorf("the regular expression cannot be used: %w", err)
	}
	size := instructions(parsed) + bounds(parsed)/runesForAnInstruction
	if size > most {
		return 0, fmt.Errorf("the regular expression with its repetitions has %d instructions, more than the limit of %d",
			size, most)
	}
	return size, nil
}

// instructions returns how many instructions a part of a regular expression becomes. The parser allows no nested
// repetitions of more than 1000 together, and no more parts than the text has bytes, so the number cannot overflow.
func instructions(part *syntax.Regexp) int {
	inner := 0
	for _, sub := range part.Sub {
		inner += instructions(sub)
	}
	switch part.Op {
	case syntax.OpLiteral:
		return len(part.Rune)
	case syntax.OpConcat:
		return inner
	case syntax.OpAlternate:
		return inner + len(part.Sub) - 1
	case syntax.OpCapture:
		return inner + 2 // its begin and its end
	case syntax.OpRepeat:
		if part.Max < 0 {
			return inner*max(part.Min, 1) + 1
		}
		return inner*max(part.Max, 1) + part.Max - part.Min
	default:
		return inner + 1
	}
}

// bounds returns how many bounds the classes of characters in a part of a regular expression have. Repetitions share
// them.
func bounds(part *syntax.Regexp) int {
	total := 0
	if part.Op == syntax.OpCharClass {
		total = len(part.Rune)
	}
	for _, inner := range part.Sub {
		total += bounds(inner)
	}
	return total
}

// pattern is a compiled regular expression, or why it is refused.
type pattern struct {
	compiled *regexp.Regexp
	size     int
	err      error
}

// patterns are the regular expressions of an environment, some of which are kept.
type patterns struct{ kept kept.Texts[pattern] }

// of returns a regular expression.
func (p *patterns) of(text string) pattern {
	if len(text) > maxPattern { // not kept, either
		return pattern{size: maxPatternSize, err: CheckPattern(text, maxPatternSize)}
	}
	return p.kept.Of(text, maxPatternsKept, func() (pattern, int) {
		made := compilePattern(text)
		return made, made.size
	})
}

// compilePattern compiles a regular expression. One that is refused counts like a large one, because it was parsed.
func compilePattern(text string) pattern {
	size, err := patternSize(text, maxPatternSize)
	if err != nil {
		return pattern{size: maxPatternSize, err: err}
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		return pattern{size: maxPatternSize, err: fmt.Errorf("the regular expression cannot be used: %w", err)}
	}
	const least = 20 // the parts that even an empty one has
	return pattern{compiled: compiled, size: size + least}
}

// cost estimates what it costs to compile a regular expression and to use it on a text of some length, in units of CEL.
// It takes the factors of Kubernetes, and the number of instructions for the length of the regular expression.
func (p pattern) cost(length int) uint64 {
	const ofText, ofInstructions = 0.1, 0.25
	use := math.Ceil(float64(1+length)*ofText) * math.Ceil(float64(p.size)*ofInstructions)
	if p.err != nil {
		use = 0
	}
	return uint64(float64(p.size) + use)
}

// use returns the text and the regular expression in the arguments of a function, or an error of CEL.
func (p *patterns) use(args []ref.Val) (string, *regexp.Regexp, ref.Val) {
	for _, arg := range args[:2] {
		if _, ok := arg.(types.String); !ok {
			return "", nil, types.MaybeNoSuchOverloadErr(arg)
		}
	}
	text, found := textAt(args, 0), p.of(textAt(args, 1))
	switch {
	case found.err != nil:
		return "", nil, types.WrapErr(found.err)
	case found.cost(len(text)) > maxPatternCost:
		return "", nil, types.NewErr("the regular expression takes too long for a text of %d characters",
			utf8.RuneCountInString(text))
	}
	return text, found.compiled, nil
}

// matches implements the function matches of CEL.
func (p *patterns) matches(args ...ref.Val) ref.Val {
	text, expression, failed := p.use(args)
	if failed != nil {
		return failed
	}
	return types.Bool(expression.MatchString(text))
}

// find implements the function find of Kubernetes.
func (p *patterns) find(args ...ref.Val) ref.Val {
	text, expression, failed := p.use(args)
	if failed != nil {
		return failed
	}
	return types.String(expression.FindString(text))
}

// findAll implements the function findAll of Kubernetes. It finds no more than shows that the list is too long.
func (p *patterns) findAll(args ...ref.Val) ref.Val {
	text, expression, failed := p.use(args)
	if failed != nil {
		return failed
	}
	most := numberAt(args, 2, -1)
	if most < 0 || most > maxItems {
		most = maxItems + 1
	}
	return types.NewStringList(types.DefaultTypeAdapter, expression.FindAllString(text, most))
}
