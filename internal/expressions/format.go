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
		if text.Len()+sizeUpTo(value, maxText) > maxText {
			return celTooLong()
		}
		if err := celFormatValue(&text, verb, precision, value); err != nil {
			return types.WrapErr(err)
		}
		if text.Len() > maxText {
			return celTooLong()
		}
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
func celFormatValue(text *strings.Builder, verb byte, precision int, value ref.Val) error {
	base := map[byte]int{'b': 2, 'o': 8, 'd': 10, 'x': 16, 'X': 16}[verb]
	var filled string
	var err error
	switch {
	case verb == 's':
		return celWrite(text, value, 0)
	case verb == 'f' || verb == 'e':
		filled, err = celDecimal(verb, precision, value)
	case base == 0:
		err = fmt.Errorf("unrecognized formatting clause \"%c\"", verb)
	default:
		filled, err = celInBase(verb, base, value)
	}
	text.WriteString(filled)
	return err
}

// celWrongVerb is the error about a value that a verb cannot format.
func celWrongVerb(verb byte, value ref.Val) error {
	return fmt.Errorf("a value of type %s cannot be formatted with %%%c", value.Type().TypeName(), verb)
}

// celInBase formats a value in the base of a verb.
func celInBase(verb byte, base int, value ref.Val) (string, error) {
	text, fits := "", true
	switch value := value.(type) {
	case types.Int:
		text = strconv.FormatInt(int64(value), base)
	case types.Uint:
		text = strconv.FormatUint(uint64(value), base)
	case types.Bool:
		text, fits = map[types.Bool]string{types.True: "1", types.False: "0"}[value], verb == 'b'
	case types.Double:
		text, fits = celDouble(value), verb == 'd'
	case types.String:
		text, fits = fmt.Sprintf("%x", string(value)), base == 16
	case types.Bytes:
		text, fits = fmt.Sprintf("%x", []byte(value)), base == 16
	default:
		fits = false
	}
	switch {
	case !fits:
		return "", celWrongVerb(verb, value)
	case verb == 'X':
		text = strings.ToUpper(text)
	}
	return text, nil
}

// celDecimal formats a number with a fraction.
func celDecimal(verb byte, precision int, value ref.Val) (string, error) {
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
		return "", celWrongVerb(verb, value)
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

// celWrite writes any value as %s does. Maps have sorted keys. It ends above maxText.
func celWrite(text *strings.Builder, value ref.Val, depth int) error {
	switch {
	case depth > maxDepth:
		return fmt.Errorf("the value is nested too deeply")
	case text.Len() > maxText:
		return nil // The caller refuses it.
	}
	switch value := value.(type) {
	case traits.Mapper:
		return celWriteMap(text, value, depth)
	case traits.Lister:
		return celWriteList(text, value, depth)
	}
	filled, err := celScalar(value)
	text.WriteString(filled)
	return err
}

// celScalar formats a value that has no others for %s.
func celScalar(value ref.Val) (string, error) {
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
	}
	return "", celWrongVerb('s', value)
}

// celWriteList writes a list.
func celWriteList(text *strings.Builder, list traits.Lister, depth int) error {
	text.WriteByte('[')
	separator := ""
	for each := list.Iterator(); each.HasNext() == types.True && text.Len() <= maxText; separator = ", " {
		text.WriteString(separator)
		if err := celWrite(text, each.Next(), depth+1); err != nil {
			return err
		}
	}
	text.WriteByte(']')
	return nil
}

// celWriteMap writes a map.
func celWriteMap(text *strings.Builder, fields traits.Mapper, depth int) error {
	values := map[string]ref.Val{}
	for each := fields.Iterator(); each.HasNext() == types.True; {
		key := each.Next()
		name, err := celScalar(key)
		if err != nil {
			return err
		}
		values[name], _ = fields.Find(key)
	}
	text.WriteByte('{')
	separator := ""
	for _, name := range slices.Sorted(maps.Keys(values)) {
		text.WriteString(separator + name + ": ")
		if err := celWrite(text, values[name], depth+1); err != nil {
			return err
		}
		separator = ", "
	}
	text.WriteByte('}')
	return nil
}
