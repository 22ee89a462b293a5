package ignore

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/spokelet/spokelet/internal/expressions"
)

// maxRegexp is the greatest length of a regular expression in a jq expression, in bytes, and maxRegexpSize its greatest
// size, in instructions: repetitions multiply it. Nothing interrupts one.
const maxRegexp, maxRegexpSize = 256, 500

// jqArguments returns the numbers of arguments that a jq function may have; none if it is not supported. No supported
// function returns more than it receives, so no expression can take much more memory than the object.
func jqArguments(function string) []int {
	switch function {
	case "arrays", "ascii_downcase", "ascii_upcase", "booleans", "empty", "iterables", "keys", "keys_unsorted", "length",
		"not", "nulls", "numbers", "objects", "recurse", "scalars", "strings", "tostring", "type", "utf8bytelength", "values":
		return []int{0}
	case "contains", "endswith", "getpath", "has", "IN", "inside", "isempty", "ltrimstr", "rtrimstr",
		"select", "startswith":
		return []int{1}
	case "limit":
		return []int{2}
	case "error", "first", "last":
		return []int{0, 1}
	case "nth", "test":
		return []int{1, 2}
	case "all", "any":
		return []int{0, 1, 2}
	}
	return nil
}

// jqConstant reports whether the arguments of a function must be constants: its time grows with their size, for every
// value that it is applied to.
func jqConstant(function string) bool {
	switch function {
	case "contains", "getpath", "inside", "test":
		return true
	}
	return false
}

// checkJQ returns an error if a jq expression could take unbounded memory or time: jq has no limit of memory, and one
// function cannot be interrupted. Everything that selects fields without creating new values is supported.
func checkJQ(query *gojq.Query) error {
	switch {
	case query == nil:
		return nil
	case len(query.FuncDefs) > 0 || len(query.Imports) > 0 || query.Meta != nil || query.Func != "":
		return unsupportedJQ("def, import and include")
	case query.Term != nil:
		return checkJQTerm(query.Term)
	case query.Left == nil || query.Right == nil:
		return errors.New("it is empty")
	}
	switch query.Op {
	case gojq.OpPipe, gojq.OpComma, gojq.OpAlt, gojq.OpAnd, gojq.OpOr,
		gojq.OpEq, gojq.OpNe, gojq.OpGt, gojq.OpLt, gojq.OpGe, gojq.OpLe:
	case gojq.OpAdd, gojq.OpSub, gojq.OpMod:
		if !isNumber(query.Left) && !isNumber(query.Right) {
			return unsupportedJQ(fmt.Sprintf("the operator %s without a number", query.Op))
		}
	default:
		return unsupportedJQ(fmt.Sprintf("the operator %s", query.Op))
	}
	return checkAll(query.Left, query.Right)
}

// unsupportedJQ is the error about a part of jq that is not supported.
func unsupportedJQ(what string) error {
	return fmt.Errorf("%s is not supported in ignoreFields, because nothing bounds the memory that it takes; "+
		"use paths and select()", what)
}

// checkAll checks several expressions.
func checkAll(queries ...*gojq.Query) error {
	for _, query := range queries {
		if err := checkJQ(query); err != nil {
			return err
		}
	}
	return nil
}

// checkJQTerm is checkJQ for one term.
func checkJQTerm(term *gojq.Term) error {
	for _, suffix := range term.SuffixList {
		if err := checkJQSuffix(suffix); err != nil {
			return err
		}
	}
	switch term.Type {
	case gojq.TermTypeIdentity, gojq.TermTypeRecurse, gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse,
		gojq.TermTypeNumber:
		return nil
	case gojq.TermTypeIndex:
		return checkJQIndex(term.Index)
	case gojq.TermTypeFunc:
		return checkJQFunc(term.Func)
	case gojq.TermTypeUnary:
		return checkJQTerm(term.Unary.Term)
	case gojq.TermTypeQuery:
		return checkJQ(term.Query)
	case gojq.TermTypeTry:
		return checkAll(term.Try.Body, term.Try.Catch)
	case gojq.TermTypeIf:
		for _, other := range term.If.Elif {
			if err := checkAll(other.Cond, other.Then); err != nil {
				return err
			}
		}
		return checkAll(term.If.Cond, term.If.Then, term.If.Else)
	case gojq.TermTypeString, gojq.TermTypeArray, gojq.TermTypeObject:
		if !isLiteral(term) && !isOneField(term) {
			return unsupportedJQ("a string, list or object that is not a constant")
		}
		return nil
	case gojq.TermTypeFormat, gojq.TermTypeReduce, gojq.TermTypeForeach, gojq.TermTypeLabel, gojq.TermTypeBreak:
	}
	return unsupportedJQ("a format, reduce, foreach or label")
}

// checkJQSuffix is checkJQ for the suffix of a term.
func checkJQSuffix(suffix *gojq.Suffix) error {
	if suffix.Bind == nil {
		return checkJQIndex(suffix.Index)
	}
	for _, pattern := range suffix.Bind.Patterns {
		if pattern.Name == "" {
			return unsupportedJQ("a destructuring pattern")
		}
	}
	return checkJQ(suffix.Bind.Body)
}

// checkJQIndex is checkJQ for an index or a slice.
func checkJQIndex(index *gojq.Index) error {
	if index == nil {
		return nil
	}
	if !isConstant(index.Str) {
		return unsupportedJQ("a string, list or object that is not a constant")
	}
	if start := index.Start; !index.IsSlice && start != nil && !literalItems(start) && !isNumeric(start) {
		return unsupportedJQ("an index that is neither a constant nor a sum with a number")
	}
	return checkAll(index.Start, index.End)
}

// isNumeric reports whether every result of an expression is a number.
func isNumeric(query *gojq.Query) bool {
	if query.Term != nil {
		return query.Term.Type == gojq.TermTypeUnary
	}
	return slices.Contains([]gojq.Operator{gojq.OpAdd, gojq.OpSub, gojq.OpMod}, query.Op)
}

// checkJQFunc is checkJQ for a function or a variable.
func checkJQFunc(call *gojq.Func) error {
	if strings.HasPrefix(call.Name, "$") && call.Name != "$ENV" && call.Name != "$__loc__" {
		return nil
	}
	if !slices.Contains(jqArguments(call.Name), len(call.Args)) {
		return unsupportedJQ(fmt.Sprintf("%s with %d arguments", call.Name, len(call.Args)))
	}
	for _, argument := range call.Args {
		if !jqConstant(call.Name) {
			continue
		}
		if argument.Term == nil || len(argument.Term.SuffixList) > 0 || !isLiteral(argument.Term) {
			return unsupportedJQ(fmt.Sprintf("%s with an argument that is not a constant", call.Name))
		}
	}
	if call.Name == "test" {
		if err := checkRegexp(call.Args[0].Term.Str); err != nil {
			return err
		}
	}
	return checkAll(call.Args...)
}

// checkRegexp returns an error if a constant is a regular expression that could take much memory or time. Other
// constants fail by themselves.
func checkRegexp(text *gojq.String) error {
	switch {
	case text == nil:
		return nil
	case len(text.Str) > maxRegexp:
		return fmt.Errorf("the regular expression has %d bytes, more than the limit of %d", len(text.Str), maxRegexp)
	}
	// jq puts flags before it, which change classes of characters little.
	return expressions.CheckPattern(strings.ReplaceAll(text.Str, "(?<", "(?P<"), maxRegexpSize)
}

// isNumber reports whether an expression is a constant number.
func isNumber(query *gojq.Query) bool {
	return query != nil && query.Term != nil && query.Term.Type == gojq.TermTypeNumber && len(query.Term.SuffixList) == 0
}

// isLiteral reports whether a term is a constant.
func isLiteral(term *gojq.Term) bool {
	scalars := []gojq.TermType{
		gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber, gojq.TermTypeString,
	}
	switch {
	case term.Array != nil:
		return literalItems(term.Array.Query)
	case term.Object != nil:
		return !slices.ContainsFunc(term.Object.KeyVals, func(pair *gojq.ObjectKeyVal) bool {
			return pair.KeyQuery != nil || !isConstant(pair.KeyString) || pair.Val == nil || !literalItems(pair.Val)
		})
	}
	return slices.Contains(scalars, term.Type) && isConstant(term.Str)
}

// isOneField reports whether a term is a list of one field. A longer list could repeat a value, and a list of such
// lists would multiply it.
func isOneField(term *gojq.Term) bool {
	if term.Array == nil || term.Array.Query == nil || term.Array.Query.Term == nil {
		return false
	}
	field := term.Array.Query.Term
	named := func(index *gojq.Index) bool {
		return index != nil && (index.Name != "" || index.Str != nil && isConstant(index.Str))
	}
	return (field.Type == gojq.TermTypeIdentity || field.Type == gojq.TermTypeIndex && named(field.Index)) &&
		!slices.ContainsFunc(field.SuffixList, func(suffix *gojq.Suffix) bool { return !named(suffix.Index) })
}

// isConstant reports whether a string, if there is one, contains no expression.
func isConstant(text *gojq.String) bool { return text == nil || len(text.Queries) == 0 }

// literalItems reports whether the items of a list, or the value of a key, are constants.
func literalItems(query *gojq.Query) bool {
	switch {
	case query == nil:
		return true
	case query.Term != nil:
		return len(query.Term.SuffixList) == 0 && isLiteral(query.Term)
	}
	return query.Op == gojq.OpComma && literalItems(query.Left) && literalItems(query.Right)
}
