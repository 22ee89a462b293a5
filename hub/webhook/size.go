package webhook

import "fmt"

const (
	// maxObject, maxContainers and maxValues bound one object: its bytes, its objects and lists, and what they contain. An
	// API server takes requests of 3 MiB and stores 1.5 MiB. The numbers bound what the decoded object takes: the smallest
	// objects of JSON need two bytes, and decoded some hundred.
	maxObject, maxContainers, maxValues = 4 << 20, 200_000, 1_000_000
)

// weigh returns the share of maxObject that an object takes while it is converted. It refuses an object that no API
// server stores, before it is decoded.
func weigh(raw []byte) (int64, error) {
	if len(raw) > maxObject {
		return maxObject, fmt.Errorf("it has %d bytes, more than %d", len(raw), maxObject)
	}
	return weighValues(raw)
}

// weighValues does the same by the number of values alone.
func weighValues(raw []byte) (int64, error) {
	containers, values := 0, 0
	for inText, i := false, 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{', c == '[':
			containers++
		case c == ',':
			values++
		}
	}
	if containers > maxContainers || values > maxValues {
		return maxObject, fmt.Errorf("it consists of more than %d objects and lists or %d values", maxContainers, maxValues)
	}
	most := max(len(raw), containers*(maxObject/maxContainers), values*(maxObject/maxValues), 1)
	return int64(min(most, maxObject)), nil
}
