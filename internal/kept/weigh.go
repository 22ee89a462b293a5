package kept

// Weigh estimates how many bytes a decoded JSON value takes, which is a few times its JSON for text and twenty times
// for many small values.
func Weigh(value any) int {
	const header, entry = 48, 16
	sum := header
	switch v := value.(type) {
	case map[string]any:
		for key, one := range v {
			sum += 2*entry + len(key) + Weigh(one)
		}
	case []any:
		for _, one := range v {
			sum += Weigh(one)
		}
	case string:
		sum += len(v)
	}
	return sum
}
