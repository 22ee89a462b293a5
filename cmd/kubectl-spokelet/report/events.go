package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
)

// Event is one row of equal Events: of one object, or of objects of one name in several namespaces.
type Event struct {
	// Side is "cluster" for one of the managed cluster; empty for one of the hub.
	Side    string `json:"side,omitempty"`
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Message string `json:"message"`
	From    string `json:"from,omitempty"`
	// Namespaces are those of the objects, by the alphabet; none for an object without one.
	Namespaces []string `json:"namespaces,omitempty"`
	// Count is how often it happened, and First and Last when.
	Count int       `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// Events puts equal Events together, and sorts them by when they happened last. side is that of an Event.
func Events(all []fleet.Event, side string) []Event {
	type key struct{ kind, reason, object, name, message, from string }
	at := map[key]int{}
	var rows []Event
	for i := range all {
		e := &all[i]
		row := EventOf(e, side)
		k := key{e.Type, e.Reason, e.Object.Kind, e.Object.Name, e.Message, e.From()}
		before, found := at[k]
		if !found {
			at[k] = len(rows)
			rows = append(rows, row)
			continue
		}
		same := &rows[before]
		same.Count += row.Count
		same.Namespaces = append(same.Namespaces, row.Namespaces...)
		if row.First.Before(same.First) {
			same.First = row.First
		}
		if row.Last.After(same.Last) {
			same.Last = row.Last
		}
	}
	for i := range rows {
		slices.Sort(rows[i].Namespaces)
		rows[i].Namespaces = slices.Compact(rows[i].Namespaces)
	}
	SortEvents(rows)
	return rows
}

// SortEvents sorts rows by when they happened last.
func SortEvents(rows []Event) {
	slices.SortStableFunc(rows, func(a, b Event) int {
		return cmp.Or(a.Last.Compare(b.Last), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
}

// EventOf is the row of one Event.
func EventOf(e *fleet.Event, side string) Event {
	row := Event{
		Side: side, Type: e.Type, Reason: e.Reason, Kind: e.Object.Kind, Name: e.Object.Name, Message: e.Message,
		From: e.From(), Count: e.Times(), First: e.Began(), Last: e.Ended(),
	}
	if e.Object.Namespace != "" {
		row.Namespaces = []string{e.Object.Namespace}
	}
	return row
}
