package kept

import "strings"

const (
	boxed = 16 // a string, a number or a list behind an interface
	slot  = 36 // key and value of a map
	least = 8  // even a map with one entry has so many slots
)

// weighMap is the size that a map takes beside its keys and values.
func weighMap(entries int) int {
	if entries == 0 {
		return 3 * boxed
	}
	return 3*boxed + slot*max(least, 2*entries)
}

// Weigh estimates how many bytes a decoded JSON value takes: for text little more than its JSON, for many small values
// twenty times that or more.
func Weigh(value any) int {
	switch v := value.(type) {
	case map[string]any:
		sum := weighMap(len(v))
		for key, one := range v {
			sum += len(key) + Weigh(one)
		}
		return sum
	case []any:
		sum := 2 * boxed
		for _, one := range v {
			sum += boxed + Weigh(one)
		}
		return sum
	case string:
		return boxed + len(v)
	default:
		return boxed
	}
}

// WeighJSON is Weigh of what a text decodes to, which it does not decode. Of a text that is not JSON it says little.
func WeighJSON(text string) int {
	const list = -1
	sum := 0
	var around []int // of each object around the number of its entries; of a list, that it is one
	for i := 0; i < len(text); i++ {
		last := len(around) - 1
		switch c := text[i]; {
		case c == '"':
			from := i + 1
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			sum += boxed + min(i, len(text)) - from
		case c == '{':
			around = append(around, 0)
		case c == '[':
			around, sum = append(around, list), sum+3*boxed
		case c == ',' && last >= 0 && around[last] == list:
			sum += boxed
		case c == ':' && last >= 0 && around[last] != list:
			around[last]++
			sum -= boxed // what is before it is a key
		case (c == '}' || c == ']') && last >= 0:
			if entries := around[last]; entries != list {
				sum += weighMap(entries)
			}
			around = around[:last]
		case strings.IndexByte("-0123456789tfn", c) >= 0:
			sum += boxed
			for i+1 < len(text) && strings.IndexByte(",]} \t\r\n", text[i+1]) < 0 {
				i++
			}
		}
	}
	return sum
}
