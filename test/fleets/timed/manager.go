package timed

import (
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/configure"
	"github.com/spokelet/spokelet/hub/rollout"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/policies"
)

// Bend changes what hub managers know or say, as a bug does. Its zero value changes nothing.
type Bend struct {
	// Policy, Window and Cluster change what gates are made of, and World what the planner knows.
	Policy  func(*policies.AddOnPolicy)
	Window  func(*policies.MaintenanceWindow)
	Cluster func(*gate.Cluster)
	World   func(*rollout.World)
	// Said changes what a plan says, and Written an add-on before it is written.
	Said    func(*rollout.Rehearsed)
	Written func(before, after *addonv1beta1.ManagedClusterAddOn)
	// Wake changes when a hub manager looks again.
	Wake func(time.Time) time.Time
	// Later limits World and Said to hub managers that were started later than the first.
	Later bool
}

// manager is a process of the hub manager.
type manager struct {
	planner    *rollout.Reconciler
	configurer *configure.Configurer
	// sees is its cache, which is up to date unless it lags for so many steps.
	sees    *view
	lagging int
	// said is what its last plan said, and wake when it looks again by itself; zero for never.
	said rollout.Rehearsed
	wake time.Time
	// later reports whether it is not the first one.
	later bool
}

// start starts a hub manager: it knows nothing but what there is.
func (w *world) start() *manager {
	m := &manager{planner: &rollout.Reconciler{}, later: len(w.managers) > 0 || w.Steps > 0}
	m.configurer = &configure.Configurer{Admission: m.planner.Admission}
	return m
}

// lags lets caches fall behind and catch up, and hub managers be restarted. Of two, the one that was behind stops when
// it sees that the other leads: what it thinks of clusters that it did not see goes with it.
func (w *world) lags() {
	for i, m := range w.managers {
		switch {
		case m.lagging > 0:
			if m.lagging--; m.lagging == 0 && len(w.managers) > 1 {
				w.managers[i] = w.start()
			}
		case w.chance(8):
			m.lagging = 1 + w.Random.IntN(2)
		case w.chance(7):
			w.managers[i] = w.start()
		}
	}
}

// settle lets the hub managers look until nothing changes any more, and judges what there is then.
func (w *world) settle() {
	const most = 30
	for rounds := 0; ; rounds++ {
		looked := false
		for _, m := range w.managers {
			current := w.view()
			due := !m.wake.IsZero() && !w.now.Before(m.wake)
			if m.sees == nil || m.lagging == 0 && m.sees != current {
				m.sees, due = current, true
			}
			if due {
				looked = true
				w.look(m)
			}
			if w.Violated() {
				return
			}
		}
		if !looked {
			break
		}
		if w.Rule("settles", rounds < most, "the hub managers write for ever"); rounds >= most {
			return
		}
	}
	w.forget()
	for _, m := range w.managers {
		if m.sees == w.view() {
			w.judge(m)
		}
	}
}

// forget takes note that all hub managers have seen another content: what they remember is about it from now on.
func (w *world) forget() {
	behind := slices.ContainsFunc(w.managers, func(m *manager) bool { return m.sees != w.view() })
	if behind || w.known == w.content {
		return
	}
	w.known = w.content
	for _, s := range w.sites {
		s.again = false
	}
}

// look is one pass of a hub manager: it plans, and configures the add-on on each cluster.
func (w *world) look(m *manager) {
	v := m.sees
	m.said = w.plan(m)
	m.wake = m.said.Wake
	if w.failures != nil {
		w.noteLate(m)
	}
	w.writePolicy(m)
	for _, s := range w.sites {
		addOn := v.addOns[s.name]
		if addOn == nil {
			continue
		}
		next, recheck := m.configurer.RehearseGated(configure.Rehearsal{
			CMA: w.cma, AddOn: addOn, States: v.states(), Gate: v.gate, Cluster: v.clusters[s.name], Now: w.now,
			Progress: func(r []addonv1beta1.ConfigReference) addon.Progress { return w.progress(s, r) },
		})
		if w.bend.Written != nil {
			w.bend.Written(addOn, next)
		}
		if !recheck.IsZero() && (m.wake.IsZero() || recheck.Before(m.wake)) {
			m.wake = recheck
		}
		switch {
		case s.addOn != addOn: // It is refused, and the hub manager remembers whom it admitted.
			s.again = s.again || desired(next) != desired(addOn)
		case !reflect.DeepEqual(addOn.Status, next.Status):
			w.write(m, s, next)
		}
	}
	if w.bend.Wake != nil {
		m.wake = w.bend.Wake(m.wake)
	}
	w.Rule("wakes", m.wake.IsZero() || m.wake.After(w.now), "it is %s, and it is to wake at %s", w.now, m.wake)
}

// plan lets a hub manager plan.
func (w *world) plan(m *manager) rollout.Rehearsed {
	v := m.sees
	of := rollout.World{
		Now: w.now, CMA: w.cma, States: v.states(), Served: v.served, Gate: v.gate, Clusters: v.clusters,
	}
	if !w.manual {
		of.Placements = append(of.Placements, v.decisions)
	}
	for _, s := range w.sites {
		if addOn := v.addOns[s.name]; addOn != nil {
			of.AddOns = append(of.AddOns, addOn)
		}
	}
	bent := !w.bend.Later || m.later
	if w.bend.World != nil && bent {
		w.bend.World(&of)
	}
	w.Decisions++
	said := m.planner.Rehearse(of)
	if w.bend.Said != nil && bent {
		w.bend.Said(&said)
	}
	return said
}

// writePolicy writes the status of the policy, if nobody wrote to it since the hub manager saw it.
func (w *world) writePolicy(m *manager) {
	if m.said.Policy == nil || !m.sees.isOf(w) || reflect.DeepEqual(w.status, m.said.Policy.Status) {
		return
	}
	if w.failures != nil {
		w.judgePolicy(m)
	}
	w.status = m.said.Policy.Status
	w.written++
	w.changes++
}

// isOf reports whether the policy of a view is the present one.
func (v *view) isOf(w *world) bool {
	return v.written == w.written && reflect.DeepEqual(v.rules, w.rules)
}

func (v *view) states() addonconfig.States {
	return addonconfig.States{fixture.Template("t"): {Hash: v.content}}
}

// write writes an add-on, which nobody wrote since the hub manager saw it.
func (w *world) write(m *manager, s *site, next *addonv1beta1.ManagedClusterAddOn) {
	before, after := desired(s.addOn), desired(next)
	if s.applied && completed(next) == s.has {
		s.had[s.has] = true
	}
	if s.addOn = next; before != after {
		if w.failures != nil {
			w.judgeUndo(m, s, before, after)
		} else {
			w.judgeBegin(m, s, after)
		}
		s.has, s.began, s.applied, s.once, s.late, s.fell = after, w.now, false, false, false, false
		if s.down {
			w.report(s, false)
		}
	}
	w.changes++
}

// progress is what is known of the works of an add-on with references.
func (w *world) progress(s *site, references []addonv1beta1.ConfigReference) addon.Progress {
	if len(references) == 0 {
		return addon.Progress{Now: w.now}
	}
	hashes, _ := json.Marshal(confighash.Map(references)) // Strings can be encoded.
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Generation: 1, Annotations: map[string]string{names.AnnotationConfigSpecHash: string(hashes)},
	}}
	if s.applied && s.has == references[0].DesiredConfig.SpecHash {
		for _, kind := range []string{workv1.WorkApplied, workv1.WorkAvailable} {
			work.Status.Conditions = append(work.Status.Conditions, metav1.Condition{
				Type: kind, Status: metav1.ConditionTrue, ObservedGeneration: 1,
			})
		}
	}
	return addon.Progress{Now: w.now, Works: []*workv1.ManifestWork{work}}
}

// desired is the content that an add-on is to have.
func desired(addOn *addonv1beta1.ManagedClusterAddOn) string {
	for _, r := range addOn.Status.ConfigReferences {
		return r.DesiredConfig.SpecHash
	}
	return ""
}

// completed is the content that an add-on completed last.
func completed(addOn *addonv1beta1.ManagedClusterAddOn) string {
	for _, r := range addOn.Status.ConfigReferences {
		if r.LastAppliedConfig != nil {
			return r.LastAppliedConfig.SpecHash
		}
	}
	return ""
}

// sentence is what an add-on says of its configuration; empty where it is configured.
func sentence(addOn *addonv1beta1.ManagedClusterAddOn) string {
	c := meta.FindStatusCondition(addOn.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionConfigured)
	if c == nil || c.Status == metav1.ConditionTrue {
		return ""
	}
	return c.Message
}
