package webhook

// keep sets a field of the status or the metadata in the other version of an object, whose schema decides what becomes
// of it. A field in an element that the other version does not have goes with the element.
func keep(object map[string]any, path []any, value any) {
	var at any = object
	for i, step := range path {
		switch step := step.(type) {
		case string:
			typed, ok := at.(map[string]any)
			switch {
			case !ok:
				return
			case i == len(path)-1:
				typed[step] = merge(typed[step], value)
				return
			}
			if _, there := typed[step]; !there {
				if _, isName := path[i+1].(string); !isName {
					return
				}
				typed[step] = map[string]any{}
			}
			at = typed[step]
		case int:
			list, ok := at.([]any)
			if !ok || step < 0 || step >= len(list) {
				return
			}
			at = list[step]
		}
	}
}

// merge returns a value with the fields of another one. Of two values that are not both objects it returns the latter.
func merge(into, from any) any {
	object, ok := into.(map[string]any)
	fields, are := from.(map[string]any)
	if !ok || !are {
		return from
	}
	for name, value := range fields {
		object[name] = merge(object[name], value)
	}
	return object
}
