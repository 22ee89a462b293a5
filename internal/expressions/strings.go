package expressions

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/api/resource"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// stringFunctions declares the extension of CEL for strings, with the functions and the meaning of its specification.
// ADR 0001 has the reasons why it is not the package of cel-go: the results of that one have no limit.
func stringFunctions() []cel.EnvOption {
	text, number, texts := cel.StringType, cel.IntType, cel.ListType(cel.StringType)
	member := func(name, id string, result *cel.Type, body func([]ref.Val) ref.Val, args ...*cel.Type) cel.EnvOption {
		return cel.Function(name, cel.MemberOverload(id, args, result, celBinding(len(args), body)))
	}
	return []cel.EnvOption{
		member("charAt", "string_char_at_int", text, celCharAt, text, number),
		member("format", "string_format", text, celFormat, text, cel.ListType(cel.DynType)),
		member("indexOf", "string_index_of_string", number, celIndexOf, text, text),
		member("indexOf", "string_index_of_string_int", number, celIndexOf, text, text, number),
		member("join", "list_join", text, celJoin, texts),
		member("join", "list_join_string", text, celJoin, texts, text),
		member("lastIndexOf", "string_last_index_of_string", number, celLastIndexOf, text, text),
		member("lastIndexOf", "string_last_index_of_string_int", number, celLastIndexOf, text, text, number),
		member("lowerAscii", "string_lower_ascii", text, celMapped(celLower), text),
		member("upperAscii", "string_upper_ascii", text, celMapped(celUpper), text),
		member("replace", "string_replace_string_string", text, celReplace, text, text, text),
		member("replace", "string_replace_string_string_int", text, celReplace, text, text, text, number),
		member("reverse", "string_reverse", text, celMapped(celReverse), text),
		member("split", "string_split_string", texts, celSplit, text, text),
		member("split", "string_split_string_int", texts, celSplit, text, text, number),
		member("substring", "string_substring_int", text, celSubstring, text, number),
		member("substring", "string_substring_int_int", text, celSubstring, text, number, number),
		member("trim", "string_trim", text, celMapped(strings.TrimSpace), text),
		cel.Function("strings.quote", cel.Overload("strings_quote", []*cel.Type{text}, text,
			celBinding(1, celMapped(celQuote)))),
	}
}

// celBinding binds a function with a number of arguments.
func celBinding(args int, body func([]ref.Val) ref.Val) cel.OverloadOpt {
	switch args {
	case 1:
		return cel.UnaryBinding(func(value ref.Val) ref.Val { return body([]ref.Val{value}) })
	case 2:
		return cel.BinaryBinding(func(a, b ref.Val) ref.Val { return body([]ref.Val{a, b}) })
	}
	return cel.FunctionBinding(func(values ...ref.Val) ref.Val { return body(values) })
}

// textAt and numberAt return an argument, whose type CEL has checked. A missing number is the other one.
func textAt(args []ref.Val, at int) string {
	if at >= len(args) {
		return ""
	}
	text, _ := args[at].(types.String) // To ask a list of lists for its Value would copy all of it.
	return string(text)
}

func numberAt(args []ref.Val, at, other int) int {
	if at >= len(args) {
		return other
	}
	number, _ := args[at].(types.Int)
	return int(number)
}

// celMapped implements a function of one string.
func celMapped(change func(string) string) func([]ref.Val) ref.Val {
	return func(args []ref.Val) ref.Val { return types.String(change(textAt(args, 0))) }
}

func celLower(text string) string { return asciiCase(text, 'A', 'Z') }

func celUpper(text string) string { return asciiCase(text, 'a', 'z') }

// asciiCase switches the case of the letters from first to last.
func asciiCase(text string, first, last rune) string {
	const other = 'a' - 'A'
	return strings.Map(func(r rune) rune {
		if r >= first && r <= last {
			return r ^ other
		}
		return r
	}, text)
}

func celReverse(text string) string {
	runes := []rune(text)
	slices.Reverse(runes)
	return string(runes)
}

// celQuote implements strings.quote.
func celQuote(text string) string {
	escaped := strings.NewReplacer("\a", `\a`, "\b", `\b`, "\f", `\f`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\v", `\v`,
		`\`, `\\`, `"`, `\"`).Replace(strings.ToValidUTF8(text, "\uFFFD"))
	return `"` + escaped + `"`
}

// celOutOfRange is the error about an index.
func celOutOfRange(index int) ref.Val { return types.NewErr("index out of range: %d", index) }

func celCharAt(args []ref.Val) ref.Val {
	runes, at := []rune(textAt(args, 0)), numberAt(args, 1, 0)
	switch {
	case at < 0 || at > len(runes):
		return celOutOfRange(at)
	case at == len(runes):
		return types.String("")
	}
	return types.String(runes[at : at+1])
}

func celSubstring(args []ref.Val) ref.Val {
	runes := []rune(textAt(args, 0))
	start, end := numberAt(args, 1, 0), numberAt(args, 2, len(runes))
	switch {
	case start < 0 || start > len(runes):
		return celOutOfRange(start)
	case end < 0 || end > len(runes):
		return celOutOfRange(end)
	case start > end:
		return types.NewErr("invalid substring range. start: %d, end: %d", start, end)
	}
	return types.String(runes[start:end])
}

func celIndexOf(args []ref.Val) ref.Val {
	runes, wanted, from := []rune(textAt(args, 0)), textAt(args, 1), numberAt(args, 2, 0)
	switch {
	case from < 0:
		return celOutOfRange(from)
	case wanted == "":
		return types.Int(min(from, len(runes)))
	case from >= len(runes):
		return types.Int(-1)
	}
	at := strings.Index(string(runes[from:]), wanted)
	if at < 0 {
		return types.Int(at)
	}
	return types.Int(from + len([]rune(string(runes[from:])[:at])))
}

func celLastIndexOf(args []ref.Val) ref.Val {
	runes, wanted := []rune(textAt(args, 0)), []rune(textAt(args, 1))
	last := numberAt(args, 2, len(runes))
	switch {
	case last < 0:
		return celOutOfRange(last)
	case len(wanted) == 0:
		return types.Int(min(last, len(runes)))
	case len(args) > 2 && last >= len(runes):
		return types.Int(-1)
	}
	end := min(last+len(wanted), len(runes))
	at := strings.LastIndex(string(runes[:end]), string(wanted))
	if at < 0 {
		return types.Int(at)
	}
	return types.Int(len([]rune(string(runes[:end])[:at])))
}

func celJoin(args []ref.Val) ref.Val {
	list, ok := args[0].(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(args[0])
	}
	separator := textAt(args, 1)
	var text strings.Builder
	for items := list.Iterator(); items.HasNext() == types.True; {
		item, ok := items.Next().(types.String)
		if !ok {
			return types.NewErr("join takes a list of strings")
		}
		if text.Len()+len(separator)+len(item) > maxText {
			return celTooLong()
		}
		text.WriteString(string(item))
		if items.HasNext() == types.True {
			text.WriteString(separator)
		}
	}
	return types.String(text.String())
}

func celReplace(args []ref.Val) ref.Val {
	text, before, after, times := textAt(args, 0), textAt(args, 1), textAt(args, 2), numberAt(args, 3, -1)
	found := strings.Count(text, before)
	if times >= 0 {
		found = min(found, times)
	}
	if len(text)+found*len(after)-found*len(before) > maxText {
		return celTooLong()
	}
	return types.String(strings.Replace(text, before, after, times))
}

func celSplit(args []ref.Val) ref.Val {
	text, separator, times := textAt(args, 0), textAt(args, 1), numberAt(args, 2, -1)
	return types.NewStringList(types.DefaultTypeAdapter, strings.SplitN(text, separator, times))
}

// maxQuantity is the greatest length of a quantity, in bytes, and maxExponent the greatest exponent. Kubernetes rounds
// 1e-2147483640 digit by digit.
const maxQuantity, maxExponent = 40, 30

// ParseQuantity reads a quantity of Kubernetes. Texts of others must not be read by anything else: Kubernetes has no
// limit of the exponent.
func ParseQuantity(text string) (resource.Quantity, error) {
	if len(text) > maxQuantity {
		return resource.Quantity{}, fmt.Errorf("the quantity has %d bytes, more than the limit of %d", len(text), maxQuantity)
	}
	if at := strings.LastIndexAny(text, "eE"); at >= 0 {
		exponent, err := strconv.Atoi(text[at+1:])
		if err == nil && (exponent > maxExponent || exponent < -maxExponent) {
			return resource.Quantity{}, fmt.Errorf("the exponent of the quantity %q is not from -%d to %d",
				text, maxExponent, maxExponent)
		}
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return resource.Quantity{}, fmt.Errorf("reading a quantity: %w", err)
	}
	return quantity, nil
}

// celQuantity implements the function quantity of Kubernetes.
func celQuantity(args ...ref.Val) ref.Val {
	text, ok := args[0].(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(args[0])
	}
	quantity, err := ParseQuantity(string(text))
	if err != nil {
		return types.WrapErr(err)
	}
	return apiservercel.Quantity{Quantity: &quantity}
}

// celIsQuantity implements the function isQuantity of Kubernetes: whether the function quantity takes a text.
func celIsQuantity(args ...ref.Val) ref.Val {
	text, ok := args[0].(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(args[0])
	}
	_, err := ParseQuantity(string(text))
	return types.Bool(err == nil)
}
