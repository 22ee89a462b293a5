package addonconfig

import (
	"slices"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// Undo says what the add-ons of a placement return to from a content that was undone.
type Undo struct {
	// Completed are contents that completed for the placement and were not undone, the last one first.
	Completed [][]Chosen
	// Failed is set where only clusters return that failed: each to what was applied there last.
	Failed bool
	// Undone reports whether contents were undone, so that nothing returns to them; nil where none were. Any is set where
	// others than those that are returned from were. LeavesOut is set where Completed lacks some that were undone on the
	// cluster itself.
	Undone         func([]Chosen) bool
	Any, LeavesOut bool
}

// Return returns what an add-on with references is to have in place of a target that was undone; false where nothing is
// known that it could return to. One that does not have the target has returned already, or never got it.
func (u Undo) Return(undone Target, have []addonv1beta1.ConfigReference) (to []Chosen, known bool) {
	rolled := undone.rolledOf(have)
	returned := !SameDesired(rolled, undone.Rolled())
	applied, all := lastApplied(rolled)
	all = all && !returned && !slices.Equal(applied, ChosenBy(rolled)) && !u.undone(applied, undone)
	switch {
	case returned && (u.Failed || len(u.Completed) == 0):
		return ChosenBy(rolled), len(rolled) > 0
	case u.Failed && all && u.plausible(applied, undone):
		return applied, true
	case len(u.Completed) > 0:
		return u.Completed[0], true
	case all:
		return applied, true
	}
	return nil, false
}

// undone reports whether what was applied was undone. Where the add-on itself names configurations, nothing says of
// which content it was a part: once others were undone, it counts as a part of one that completed.
func (u Undo) undone(applied []Chosen, of Target) bool {
	if u.Undone == nil || u.Undone(applied) {
		return u.Undone != nil
	}
	own := ownKinds(of.Desired)
	return len(own) > 0 && u.Any && !slices.ContainsFunc(u.Completed, func(all []Chosen) bool {
		return slices.Equal(applied, slices.DeleteFunc(slices.Clone(all), func(c Chosen) bool {
			return own[c.ConfigGroupResource]
		}))
	})
}

// plausible reports whether what was applied is of the kinds that completed last: of a kind that the content that was
// undone does not have any more, nothing is known on the cluster.
func (u Undo) plausible(applied []Chosen, undone Target) bool {
	if len(u.Completed) == 0 {
		return true
	}
	own, kinds := ownKinds(undone.Desired), map[addonv1beta1.ConfigGroupResource]bool{}
	for _, c := range u.Completed[0] {
		if !own[c.ConfigGroupResource] {
			kinds[c.ConfigGroupResource] = true
		}
	}
	has := map[addonv1beta1.ConfigGroupResource]bool{}
	for _, c := range applied {
		if has[c.ConfigGroupResource] = true; !kinds[c.ConfigGroupResource] {
			return false
		}
	}
	return len(has) == len(kinds)
}

// rolledOf returns those of the references of an add-on that a rollout controls.
func (t Target) rolledOf(have []addonv1beta1.ConfigReference) []addonv1beta1.ConfigReference {
	own := ownKinds(t.Desired)
	rolled := make([]addonv1beta1.ConfigReference, 0, len(have))
	for _, reference := range have {
		if !own[reference.ConfigGroupResource] {
			rolled = append(rolled, reference)
		}
	}
	return rolled
}

// ContentsOfRollout returns the contents of the target that a rollout controls.
func (t Target) ContentsOfRollout() []Chosen { return ChosenBy(t.Rolled()) }

// NamesOwn reports whether the spec of the add-on itself names a configuration of the kind of one of the contents.
func (t Target) NamesOwn(contents []Chosen) bool {
	own := ownKinds(t.Desired)
	return len(own) > 0 && slices.ContainsFunc(contents, func(c Chosen) bool { return own[c.ConfigGroupResource] })
}

// ChosenBy returns the contents that references desire.
func ChosenBy(references []addonv1beta1.ConfigReference) []Chosen {
	all := make([]Chosen, 0, len(references))
	for _, r := range references {
		if r.DesiredConfig != nil {
			all = append(all, Chosen{r.ConfigGroupResource, *r.DesiredConfig})
		}
	}
	return all
}

// lastApplied returns the contents that were applied last; false where that is not known of all references.
func lastApplied(references []addonv1beta1.ConfigReference) (contents []Chosen, all bool) {
	for _, r := range references {
		if r.LastAppliedConfig == nil {
			return nil, false
		}
		contents = append(contents, Chosen{r.ConfigGroupResource, *r.LastAppliedConfig})
	}
	return contents, len(contents) > 0
}

// Instead returns the target with other contents in the place of those that a rollout gives, for an add-on that has
// references. What the spec of the add-on itself names stays. A content that the add-on returns to counts as applied
// when it is in place again.
func (t Target) Instead(rolled []Chosen, have []addonv1beta1.ConfigReference) Target {
	out, own := t, ownKinds(t.Desired)
	out.Desired, out.References, out.Unsupported = nil, nil, nil
	for i, d := range t.Desired {
		if d.Level == FromAddOn {
			out.Desired, out.References = append(out.Desired, d), append(out.References, t.References[i])
		}
	}
	var beneath []addonv1beta1.ConfigReference
	for _, c := range rolled {
		reference := c.reference(have)
		if own[c.ConfigGroupResource] {
			beneath = append(beneath, reference)
			continue
		}
		out.Desired = append(out.Desired, DesiredConfig{AddOnConfig: c.Config()})
		out.References = append(out.References, reference)
	}
	if len(beneath) > 0 {
		out.beneath = beneath
	}
	slices.SortStableFunc(out.Desired, func(a, b DesiredConfig) int {
		return CompareResources(a.ConfigGroupResource, b.ConfigGroupResource)
	})
	slices.SortStableFunc(out.References, func(a, b addonv1beta1.ConfigReference) int {
		return CompareResources(a.ConfigGroupResource, b.ConfigGroupResource)
	})
	return out
}

// reference returns the reference to a content, with the history that references have of it.
func (c Chosen) reference(have []addonv1beta1.ConfigReference) addonv1beta1.ConfigReference {
	spec := c.ConfigSpecHash
	reference := addonv1beta1.ConfigReference{ConfigGroupResource: c.ConfigGroupResource, DesiredConfig: &spec}
	for _, old := range have {
		if !(Reference{old.ConfigGroupResource, old.DesiredConfig}).Is(c.Config()) {
			continue
		}
		reference.LastObservedGeneration = old.LastObservedGeneration
		if *old.DesiredConfig == spec {
			reference.LastAppliedConfig = old.LastAppliedConfig.DeepCopy()
		}
	}
	return reference
}

// Has reports whether a content completed for the placement, so that it is no agent who says that it was there.
func (u Undo) Has(c Chosen) bool {
	return slices.ContainsFunc(u.Completed, func(all []Chosen) bool { return slices.Contains(all, c) })
}
