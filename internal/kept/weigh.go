package kept

// Weigh estimates how many bytes a decoded JSON value takes: for text little more than its JSON, for many small values
// twenty times that or more.
func Weigh(value any) int {
	const (
		boxed = 16 // a string or a list behind an interface, or the pointer to a map
		slot  = 36 // key and value of a map
		least = 8  // even a map with one entry has so many slots
	)
	switch v := value.(type) {
	case map[string]any:
		sum := 3 * boxed
		if n := len(v); n > 0 {
			sum += slot * max(least, 2*n)
		}
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
