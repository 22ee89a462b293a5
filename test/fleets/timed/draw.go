package timed

import (
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/internal/policies"
)

const (
	addOnName = "hello"
	zoneClaim = "timezone.example.com"
	kindLabel = "kind"
)

// place is what a cluster is known by.
type place struct{ labels, claims map[string]string }

// window is a MaintenanceWindow as the judge understands it. One that is written again is another value.
type window struct {
	name   string
	denies bool
	schedule
	// length is how long an occurrence is, in minutes; until is when none begins any more, zero for never.
	length int
	until  time.Time
	// zone is the time zone that it names, and byClaim whether the cluster names it.
	zone    string
	byClaim bool
	// kinds are the values of the label that it selects; nil for all clusters. unlike selects the others.
	kinds  []string
	unlike bool
	// others reports whether it is for another add-on.
	others bool
	// broken is set where its schedule cannot be used.
	broken bool
}

// selects reports whether a window is for the add-on on a cluster.
func (w *window) selects(at place) bool {
	if w.others || w.kinds == nil {
		return !w.others
	}
	found := false
	for _, kind := range w.kinds {
		found = found || at.labels[kindLabel] == kind
	}
	return found != w.unlike
}

// object returns the window as people write it.
func (w *window) object() policies.MaintenanceWindow {
	o := policies.MaintenanceWindow{ObjectMeta: metav1.ObjectMeta{Name: w.name}}
	o.Spec.Kind, o.Spec.Schedule = "Allow", w.String()
	if w.denies {
		o.Spec.Kind = "Deny"
	}
	if w.broken {
		o.Spec.Schedule = "0 25 * * *"
	}
	o.Spec.Duration.Duration = time.Duration(w.length) * time.Minute
	if o.Spec.TimeZone = w.zone; w.byClaim {
		o.Spec.TimeZone, o.Spec.TimeZoneClaim = "", zoneClaim
	}
	switch {
	case w.kinds == nil:
	case len(w.kinds) == 1 && !w.unlike:
		o.Spec.ClusterSelector.MatchLabels = map[string]string{kindLabel: w.kinds[0]}
	default:
		operator := metav1.LabelSelectorOpIn
		if w.unlike {
			operator = metav1.LabelSelectorOpNotIn
		}
		o.Spec.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{
			{Key: kindLabel, Operator: operator, Values: w.kinds},
		}
	}
	if w.others {
		o.Spec.AddOns = []string{"other"}
	}
	if !w.until.IsZero() {
		o.Spec.Until = &metav1.Time{Time: w.until}
	}
	return o
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// drawWindow draws a window of a name for an era.
func drawWindow(r *rand.Rand, e era, name string) *window {
	w := &window{name: name, denies: r.IntN(3) == 0, zone: pick(r, append(e.zones, "")...)}
	w.schedule = schedule{
		minutes:  pick(r, []int{0}, []int{0}, []int{30}, []int{15, 45}),
		hours:    pick(r, []int{0}, []int{1}, []int{2}, []int{0, 1, 2, 3}, []int{23}, []int{0, 6, 12, 18}, nil),
		days:     pick(r, nil, nil, nil, []int{1}, []int{28, 29, 30, 31}),
		weekdays: pick(r, nil, nil, nil, []int{0}, []int{1, 2, 3, 4, 5}),
	}
	w.length = pick(r, 20, 45, 60, 90, 120, 240, 360, 1500)
	if r.IntN(12) == 0 { // It is frozen for a month.
		w.schedule = schedule{minutes: []int{0}, hours: []int{0}, days: []int{1}, months: []int{12}}
		w.length, w.denies = 31*24*60, true
	}
	if r.IntN(5) == 0 {
		w.until = e.from.Add(time.Duration(1+r.IntN(6)) * 12 * time.Hour)
	}
	if r.IntN(3) == 0 {
		w.byClaim, w.zone = true, ""
	}
	switch r.IntN(4) {
	case 0:
		w.kinds = []string{pick(r, "shop", "ship")}
	case 1:
		w.kinds, w.unlike = []string{pick(r, "shop", "ship")}, r.IntN(2) == 0
	}
	w.others = r.IntN(12) == 0
	if w.broken = r.IntN(60) == 0; !w.broken && r.IntN(60) == 0 && !w.byClaim {
		w.zone = "Europe/Nowhere"
	}
	return w
}

// drawClaims draws what the agent of a cluster says of its time zone.
func drawClaims(r *rand.Rand, e era) map[string]string {
	switch r.IntN(12) {
	case 0:
		return nil
	case 1:
		return map[string]string{zoneClaim: "somewhere"}
	}
	return map[string]string{zoneClaim: pick(r, e.zones...)}
}

func drawLabels(r *rand.Rand) map[string]string {
	if kind := pick(r, "shop", "ship", ""); kind != "" {
		return map[string]string{kindLabel: kind}
	}
	return nil
}
