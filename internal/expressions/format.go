package expressions

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/spokelet/spokelet/internal/message"
)

// maxPrecision is the greatest number of digits after the point.
const maxPrecision = 100

// celFormat implements the function format of CEL: %s, %d, %f, %e, %b, %o, %x, %X, and %% for a percent sign.
func celFormat(args []ref.Val) ref.Val {
	list, ok := args[1].(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(args[1])
	}
	pattern := textAt(args, 0)
	var text strings.Builder
	next := 0
	for pattern != "" {
		before, clause, found := strings.Cut(pattern, "%")
		text.WriteString(before)
		if !found {
			break
		}
		if rest, ok := strings.CutPrefix(clause, "%"); ok {
			text.WriteByte('%')
			pattern = rest
			continue
		}
		verb, precision, rest, err := celClause(clause)
		if err != nil {
			return types.WrapErr(err)
		}
		value := list.Get(types.Int(next))
		if types.IsError(value) {
			return types.NewErr("index %d out of range", next)
		}
		next++
		if text.Len()+celSize(value, 0) > maxText {
			return celTooLong()
		}
		filled, err := celFormatValue(verb, precision, value)
		if err != nil {
			return types.WrapErr(err)
		}
		text.WriteString(filled)
		pattern = rest
	}
	return types.String(text.String())
}

// celClause parses the text after a percent sign: a precision, if any, and a verb.
func celClause(clause string) (verb byte, precision int, rest string, err error) {
	precision = -1
	if after, ok := strings.CutPrefix(clause, "."); ok {
		end := strings.IndexFunc(after, func(r rune) bool { return r < '0' || r > '9' })
		if end < 0 {
			end = len(after)
		}
		precision, err = strconv.Atoi(after[:end])
		if err != nil || precision > maxPrecision {
			return 0, 0, "", fmt.Errorf("the precision %q is no number from 0 to %d", message.Cut(after[:end], 10), maxPrecision)
		}
		clause = after[end:]
	}
	if clause == "" {
		return 0, 0, "", fmt.Errorf("unexpected end of format string")
	}
	return clause[0], precision, clause[1:], nil
}

// celFormatValue formats one value.
func celFormatValue(verb byte, precision int, value ref.Val) (string, error) {
	typeErr := fmt.Errorf("a value of type %s cannot be formatted with %%%c", value.Type().TypeName(), verb)
	base := map[byte]int{'b': 2, 'o': 8, 'd': 10, 'x': 16, 'X': 16}[verb]
	switch {
	case verb == 's':
		return celString(value, 0)
	case verb == 'f' || verb == 'e':
		return celDecimal(verb, precision, value, typeErr)
	case base == 0:
		return "", fmt.Errorf("unrecognized formatting clause \"%c\"", verb)
	}
	var text string
	switch value := value.(type) {
	case types.Int:
		text = strconv.FormatInt(int64(value), base)
	case types.Uint:
		text = strconv.FormatUint(uint64(value), base)
	case types.Bool:
		if verb != 'b' {
			return "", typeErr
		}
		text = map[types.Bool]string{types.True: "1", types.False: "0"}[value]
	case types.Double:
		if verb != 'd' {
			return "", typeErr
		}
		text = celDouble(value)
	case types.String:
		if base != 16 {
			return "", typeErr
		}
		text = fmt.Sprintf("%x", string(value))
	case types.Bytes:
		if base != 16 {
			return "", typeErr
		}
		text = fmt.Sprintf("%x", []byte(value))
	default:
		return "", typeErr
	}
	if verb == 'X' {
		text = strings.ToUpper(text)
	}
	return text, nil
}

// celDecimal formats a number with a fraction.
func celDecimal(verb byte, precision int, value ref.Val, typeErr error) (string, error) {
	const defaultPrecision = 6
	if precision < 0 {
		precision = defaultPrecision
	}
	var number float64
	switch value := value.(type) {
	case types.Double:
		number = float64(value)
	case types.Int:
		number = float64(value)
	case types.Uint:
		number = float64(value)
	default:
		return "", typeErr
	}
	if math.IsNaN(number) || math.IsInf(number, 0) {
		return celDouble(types.Double(number)), nil
	}
	return strconv.FormatFloat(number, verb, precision, 64), nil
}

// celDouble formats a number with as many digits as it needs.
func celDouble(value types.Double) string {
	switch number := float64(value); {
	case math.IsNaN(number):
		return "NaN"
	case math.IsInf(number, 1):
		return "Infinity"
	case math.IsInf(number, -1):
		return "-Infinity"
	default:
		return strconv.FormatFloat(number, 'f', -1, 64)
	}
}

// celString formats any value for %s. Maps have sorted keys.
func celString(value ref.Val, depth int) (string, error) {
	if depth > maxDepth {
		return "", fmt.Errorf("the value is nested too deeply")
	}
	switch value := value.(type) {
	case types.String:
		return string(value), nil
	case types.Bytes:
		return string(value), nil
	case types.Bool:
		return strconv.FormatBool(bool(value)), nil
	case types.Int:
		return strconv.FormatInt(int64(value), 10), nil
	case types.Uint:
		return strconv.FormatUint(uint64(value), 10), nil
	case types.Double:
		return celDouble(value), nil
	case types.Null:
		return "null", nil
	case types.Duration:
		return strconv.FormatFloat(value.Seconds(), 'f', -1, 64) + "s", nil
	case types.Timestamp:
		return value.UTC().Format(time.RFC3339Nano), nil
	case *types.Type:
		return value.TypeName(), nil
	case traits.Mapper:
		return celMapString(value, depth)
	case traits.Lister:
		return celListString(value, depth)
	}
	return "", fmt.Errorf("a value of type %s cannot be formatted with %%s", value.Type().TypeName())
}

// celListString formats a list.
func celListString(list traits.Lister, depth int) (string, error) {
	var items []string
	for each := list.Iterator(); each.HasNext() == types.True; {
		text, err := celString(each.Next(), depth+1)
		if err != nil {
			return "", err
		}
		items = append(items, text)
	}
	return "[" + strings.Join(items, ", ") + "]", nil
}

// celMapString formats a map.
func celMapString(fields traits.Mapper, depth int) (string, error) {
	texts := map[string]string{}
	for each := fields.Iterator(); each.HasNext() == types.True; {
		key := each.Next()
		name, err := celString(key, depth+1)
		if err != nil {
			return "", err
		}
		found, _ := fields.Find(key)
		text, err := celString(found, depth+1)
		if err != nil {
			return "", err
		}
		texts[name] = name + ": " + text
	}
	var items []string
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		items = append(items, texts[name])
	}
	return "{" + strings.Join(items, ", ") + "}", nil
}
