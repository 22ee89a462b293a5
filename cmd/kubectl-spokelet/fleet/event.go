package fleet

import (
	"encoding/json"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Event is an Event, as the API server shows those of both of its APIs.
type Event struct {
	Metadata struct {
		Meta `json:",inline"`

		ResourceVersion string `json:"resourceVersion,omitempty"`
	} `json:"metadata"`
	Object struct {
		APIVersion string `json:"apiVersion,omitempty"`
		Kind       string `json:"kind,omitempty"`
		Namespace  string `json:"namespace,omitempty"`
		Name       string `json:"name,omitempty"`
	} `json:"involvedObject"`
	Type    string           `json:"type,omitempty"`
	Reason  string           `json:"reason,omitempty"`
	Message string           `json:"message,omitempty"`
	Count   int              `json:"count,omitempty"`
	First   *metav1.Time     `json:"firstTimestamp,omitempty"`
	Last    *metav1.Time     `json:"lastTimestamp,omitempty"`
	At      metav1.MicroTime `json:"eventTime,omitzero"`
	Series  *struct {
		Count int              `json:"count,omitempty"`
		Last  metav1.MicroTime `json:"lastObservedTime,omitzero"`
	} `json:"series,omitempty"`
	Reporter string `json:"reportingComponent,omitempty"`
	Source   struct {
		Component string `json:"component,omitempty"`
	} `json:"source,omitzero"`
}

// Began returns when the Event happened first, of what is known.
func (e *Event) Began() time.Time {
	if e.First != nil {
		if at := Known(e.First.Time); !at.IsZero() {
			return at
		}
	}
	if at := Known(e.At.Time); !at.IsZero() {
		return at
	}
	return Known(e.Metadata.CreationTimestamp.Time)
}

// Ended returns when the Event happened last, of what is known.
func (e *Event) Ended() time.Time {
	if e.Series != nil {
		if at := Known(e.Series.Last.Time); !at.IsZero() {
			return at
		}
	}
	if e.Last != nil {
		if at := Known(e.Last.Time); !at.IsZero() {
			return at
		}
	}
	return e.Began()
}

// Times returns how often the Event happened.
func (e *Event) Times() int {
	times := e.Count
	if e.Series != nil {
		times = e.Series.Count
	}
	return max(times, 1)
}

// From names who reported the Event.
func (e *Event) From() string {
	if e.Reporter != "" {
		return e.Reporter
	}
	return e.Source.Component
}

// concernsFleet reports whether an Event is about an object of a fleet, and not about anything else that a hub runs.
func concernsFleet(event map[string]any) bool {
	about := child(event, "involvedObject")
	version, _ := about["apiVersion"].(string)
	kind, _ := about["kind"].(string)
	return OfFleet(version, kind)
}

// OfFleet reports whether a kind is one of a fleet.
func OfFleet(version, kind string) bool {
	group, _, _ := strings.Cut(version, "/")
	return strings.HasSuffix(group, "open-cluster-management.io") || kind == "CertificateSigningRequest"
}

// matchesFields reports whether an object has the values of some fields.
func matchesFields(raw json.RawMessage, fields map[string]string) bool {
	if len(fields) == 0 {
		return true
	}
	var object map[string]any
	if json.Unmarshal(raw, &object) != nil {
		return false
	}
	for path, want := range fields {
		at := object
		names := strings.Split(path, ".")
		for _, name := range names[:len(names)-1] {
			at = child(at, name)
		}
		if got, _ := at[names[len(names)-1]].(string); got != want {
			return false
		}
	}
	return true
}
