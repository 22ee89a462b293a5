package timed

import (
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// people changes what people write, and what agents say of their clusters.
func (w *world) people() {
	s := w.sites[w.Random.IntN(len(w.sites))]
	switch w.Random.IntN(24) {
	case 0, 1:
		w.rules.exists, w.rules.paused = true, !w.rules.paused
		w.rules.reason = pick(w.Random, "", "incident 7")
	case 2:
		w.rules.paused = false
	case 3, 4, 5:
		w.approve()
	case 6:
		w.takeBack()
	case 7:
		w.rules.exists, w.rules.asks = true, !w.rules.asks
	case 8:
		w.rules = rules{exists: w.chance(2)}
		for _, s := range w.sites {
			clear(s.returned)
		}
	case 9, 10, 11, 12:
		w.edit()
	case 13, 14, 15:
		w.rewrite()
	case 16:
		s.labels = drawLabels(w.Random)
	case 17:
		s.claims = drawClaims(w.Random, w.era)
	case 18:
		w.comeAndGo(s)
	default:
		return
	}
	w.changes++
}

// edit gives the add-on another content, or one that it had before.
func (w *world) edit() {
	if next := strconv.Itoa(1 + w.Random.IntN(4)); next != w.content {
		w.content = next
		for _, s := range w.sites {
			clear(s.returned)
		}
	}
}

// approve adds a name that the hub manager told, or one that resembles it.
func (w *world) approve() {
	for _, name := range w.names() {
		w.rules.exists = true
		if w.told[name] == w.content || w.chance(6) {
			w.rules.approved = append(slices.Clone(w.rules.approved), name)
		} else if w.chance(3) && !w.calm {
			w.rules.approved = append(slices.Clone(w.rules.approved), name[:len(name)-1], strings.ToUpper(name)+"0")
		}
	}
	w.changes++
}

// names returns the names that the hub manager told, in order.
func (w *world) names() []string {
	all := make([]string, 0, len(w.told))
	for name := range w.told {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func (w *world) takeBack() {
	if n := len(w.rules.approved); n > 0 {
		w.rules.approved = slices.Delete(slices.Clone(w.rules.approved), n-1, n)
	}
}

// rewrite writes a window, writes one again, or deletes one.
func (w *world) rewrite() {
	w.rewrites++
	if n := len(w.windows); n > 0 && w.chance(3) {
		w.windows = slices.Delete(slices.Clone(w.windows), n-1, n)
		return
	}
	name := "w" + strconv.Itoa(w.Random.IntN(3))
	next := drawWindow(w.Random, w.era, name)
	w.windows = slices.DeleteFunc(slices.Clone(w.windows), func(o *window) bool { return o.name == name })
	w.windows = append(w.windows, next)
}

// comeAndGo lets a cluster leave or come back, or its add-on be deleted and created again.
func (w *world) comeAndGo(s *site) {
	switch {
	case s.addOn == nil:
		s.selected = true
		w.install(s)
	case len(w.managers) > 1: // Each would remember another way of a cluster whose add-on is created again.
	default:
		s.selected = w.chance(2) || w.manual
		if w.failures != nil {
			w.failures.troubled[s.has] = true // It may take too long until it is there again.
		}
		s.addOn, s.has, s.applied, s.once, s.down, s.again = nil, "", false, false, false, true
		clear(s.returned)
	}
}

// install creates the add-on of a cluster.
func (w *world) install(s *site) {
	w.born++
	w.changes++
	s.addOn = fixture.AddOn(s.name)
	s.addOn.UID = types.UID(strconv.Itoa(w.born))
	fixture.With(s.addOn, fixture.Condition(
		addonv1beta1.ManagedClusterAddOnManifestApplied, metav1.ConditionTrue, "Because", w.now))
}

// move lets a cluster go on by itself.
func (w *world) move(s *site) {
	switch {
	case s.addOn == nil:
		if s.selected && w.chance(2) {
			w.install(s)
		}
	case s.has == "":
	case !s.applied:
		if w.chance(2) {
			w.apply(s)
		}
	case s.down:
		if w.chance(3) && !w.failures.breaks(s) {
			w.report(s, false)
		}
	case len(w.managers) == 1 && w.chance(12): // Two would dispute about when that was.
		w.report(s, true)
	case w.chance(40):
		s.applied, s.fell = false, true // A webhook on the cluster, a quota.
		w.changes++
	}
}

// apply lets a cluster have what its works have, and be well with that if it can.
func (w *world) apply(s *site) {
	if w.failures.sticks(s) {
		return
	}
	s.applied, s.once = true, true
	w.changes++
	if w.failures.breaks(s) {
		w.report(s, true)
	}
}

// heal lets a cluster be well.
func (w *world) heal(s *site) {
	if s.addOn == nil || s.has == "" {
		return
	}
	if !s.applied {
		w.apply(s)
	}
	if s.down && !w.failures.breaks(s) {
		w.report(s, false)
	}
}

// report lets the agent of a cluster report its health.
func (w *world) report(s *site, down bool) {
	s.down, s.fell = down, s.fell || down
	status := metav1.ConditionTrue
	if down {
		status = metav1.ConditionFalse
	}
	next := s.addOn.DeepCopy()
	next.Status.Conditions = slices.DeleteFunc(next.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == addonv1beta1.ManagedClusterAddOnConditionAvailable
	})
	s.addOn = fixture.With(next, fixture.Condition(
		addonv1beta1.ManagedClusterAddOnConditionAvailable, status, "Lease", w.now))
	w.changes++
}
