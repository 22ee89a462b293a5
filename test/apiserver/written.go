package apiserver

import (
	"maps"
	"reflect"
	"slices"
	"time"
)

// noteWritten notes in managedFields when a request last wrote an object, or its subresource. Which fields these were,
// and who wrote them, is left out. As with real API servers, a write that only takes fields away has no time. What the
// client says of managedFields counts for nothing.
func noteWritten(before, after object, subresource string, now time.Time) {
	metadata, _ := before["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	if sets(before.ofClients(), after.ofClients()) {
		entries = slices.DeleteFunc(slices.Clone(entries), func(e any) bool {
			entry, _ := e.(map[string]any)
			of, _ := entry["subresource"].(string)
			return of == subresource
		})
		entries = append(entries, entryOf(subresource, now))
	}
	after.setMeta("managedFields", entries)
}

// entryOf is who wrote an object, or its subresource, now.
func entryOf(subresource string, now time.Time) map[string]any {
	entry := map[string]any{"manager": "client", "operation": "Update", "time": instant(now)}
	if subresource != "" {
		entry["subresource"] = subresource
	}
	return entry
}

// sets reports whether a value has a field that it did not have, or with another value.
func sets(before, after any) bool {
	was, wasMap := before.(map[string]any)
	is, isMap := after.(map[string]any)
	if !wasMap || !isMap {
		return !reflect.DeepEqual(before, after)
	}
	for name, value := range is {
		if sets(was[name], value) {
			return true
		}
	}
	return false
}

// ofClients is the object without the metadata that only the API server writes.
func (o object) ofClients() map[string]any {
	rest := maps.Clone(o)
	if m, is := o["metadata"].(map[string]any); is {
		rest["metadata"] = map[string]any(object(m).without("managedFields", "resourceVersion", "generation", "uid",
			"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"))
	}
	return rest
}
