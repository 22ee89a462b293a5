package addonconfig

import (
	"slices"
	"strings"
)

// undoneHere is before the names of contents in the message of condition addon.spokelet.io/RolloutFailed.
const undoneHere = "; undone on this cluster: "

// NoteUndone returns the part of a message that says which contents a cluster failed with and returned from; empty for
// none.
func NoteUndone(contents []string) string {
	if len(contents) == 0 {
		return ""
	}
	return undoneHere + strings.Join(contents, ", ")
}

// ReadUndone returns the contents of which a message says that the cluster returned from them.
func ReadUndone(message string) []string {
	_, text, found := strings.Cut(message, undoneHere)
	if !found {
		return nil
	}
	text, _, _ = strings.Cut(text, ";")
	return slices.DeleteFunc(strings.Split(text, ", "), func(name string) bool { return name == "" })
}
