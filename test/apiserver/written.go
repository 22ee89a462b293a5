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
	if sets(map[string]any(before), map[string]any(after)) {
		entries = slices.DeleteFunc(slices.Clone(entries), func(e any) bool {
			entry, is := e.(map[string]any)
			return is && entry["subresource"] == nonEmpty(subresource)
		})
		entries = append(entries, entryOf(subresource, now))
	}
	if len(entries) > 0 {
		after.setMeta("managedFields", entries)
	} else {
		after.setMeta("managedFields", nil)
	}
}

// entryOf is who wrote an object, or its subresource, now.
func entryOf(subresource string, now time.Time) map[string]any {
	entry := map[string]any{"manager": "client", "operation": "Update", "time": instant(now)}
	if subresource != "" {
		entry["subresource"] = subresource
	}
	return entry
}

// nonEmpty is a text as it is in an entry, in which an empty one is left out.
func nonEmpty(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// sets reports whether an object has a field that it did not have, or with another value.
func sets(before, after map[string]any) bool {
	return anyOf(after, func(name string, is any) bool {
		was := before[name]
		if name == "metadata" {
			return setsIn(ofClients(was), ofClients(is))
		}
		return setsIn(was, is)
	})
}

func setsIn(before, after any) bool {
	was, wasMap := before.(map[string]any)
	is, isMap := after.(map[string]any)
	if !wasMap || !isMap {
		return !reflect.DeepEqual(before, after)
	}
	return anyOf(is, func(name string, value any) bool { return setsIn(was[name], value) })
}

func anyOf(fields map[string]any, does func(name string, value any) bool) bool {
	for name, value := range fields {
		if does(name, value) {
			return true
		}
	}
	return false
}

// ofClients are the metadata that clients write, and not the API server.
func ofClients(metadata any) any {
	m, is := metadata.(map[string]any)
	if !is {
		return metadata
	}
	m = maps.Clone(m)
	for _, name := range []string{
		"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "deletionTimestamp",
		"deletionGracePeriodSeconds",
	} {
		delete(m, name)
	}
	return m
}
