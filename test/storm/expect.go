package storm

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"
)

// world is all that hub and cluster say.
type world struct {
	// hubHash holds what the names of applied records begin with, agentID whose they are.
	hubHash, agentID string
	// objects are those that exist, by the number of the thing.
	objects map[int]*unstructured.Unstructured
	works   map[string]*workv1.ManifestWork
	applied map[string]*workv1.AppliedManifestWork
}

// recordName is the name of the applied record of a work.
func (w *world) recordName(work string) string { return w.hubHash + "-" + work }

// served reports whether the cluster serves objects of a kind.
func (w *world) served(m *Model, k kind) bool {
	if k == gadget {
		return m.gadgets
	}
	return k != widget || slices.ContainsFunc(m.things, func(t *thing) bool {
		live := w.objects[t.id]
		return t.kind == definition && live != nil && live.GetDeletionTimestamp() == nil
	})
}

// Check compares the world with the model and returns every difference in a line, sorted.
func (m *Model) Check(w *world) []string {
	var wrong []string
	for _, t := range m.things {
		for _, what := range m.checkThing(w, t) {
			wrong = append(wrong, t.String()+": "+what)
		}
	}
	for _, o := range m.works {
		for _, what := range m.checkWork(w, o) {
			wrong = append(wrong, o.name+": "+what)
		}
	}
	for name := range w.works {
		if m.present()[name] == nil {
			wrong = append(wrong, name+": the work is still on the hub")
		}
	}
	for name, applied := range w.applied {
		if m.present()[strings.TrimPrefix(name, w.hubHash+"-")] == nil {
			wrong = append(wrong, applied.Spec.ManifestWorkName+": the applied record "+name+" has no work")
		}
	}
	slices.Sort(wrong)
	return wrong
}

// checkThing compares one object.
func (m *Model) checkThing(w *world, t *thing) []string {
	live := w.objects[t.id]
	must, may := m.existence(w, t)
	switch {
	case live == nil && must:
		return []string{"it does not exist, but " + m.why(t)}
	case live == nil:
		return nil
	case !may:
		return []string{fmt.Sprintf("it still exists, although no work has it (owners %v, finalizers %v, deleted %t)",
			ownerNames(live), live.GetFinalizers(), live.GetDeletionTimestamp() != nil)}
	}
	var wrong []string
	if live.GetDeletionTimestamp() != nil {
		wrong = append(wrong, "it is being deleted")
	}
	if slices.Contains(live.GetFinalizers(), finalizer) {
		wrong = append(wrong, "it has the foreign finalizer")
	}
	wrong = append(wrong, m.checkOwners(w, t, live)...)
	wrong = append(wrong, m.checkContent(t, live)...)
	for _, key := range slices.Sorted(maps.Keys(t.keeps)) {
		kept := t.keeps[key]
		if have := fieldsOf(t, live)[key]; kept.uid == string(live.GetUID()) && have != kept.value {
			wrong = append(wrong, fmt.Sprintf("%s was set to %s by hand, which should stay, but is %q", key, kept.value, have))
		}
	}
	return wrong
}

// existence reports whether an object must exist, and whether it may.
func (m *Model) existence(w *world, t *thing) (must, may bool) {
	if t.byHand {
		return t.exists, t.exists
	}
	if m.written(t) {
		served := w.served(m, t.kind)
		return served, served
	}
	return t.presence == left, t.presence != gone
}

// why returns why an object must exist.
func (m *Model) why(t *thing) string {
	if all := m.holders(t); len(all) > 0 {
		return "it is a manifest of " + all[0].name + " with strategy " + string(t.strategy)
	}
	return "it was left there"
}

// ownerNames are the applied records that own an object.
func ownerNames(live *unstructured.Unstructured) []string {
	var all []string
	for _, ref := range live.GetOwnerReferences() {
		all = append(all, ref.Name[max(0, len(ref.Name)-8):]+"/"+string(ref.UID))
	}
	return all
}

// checkOwners compares the owner references.
func (m *Model) checkOwners(w *world, t *thing, live *unstructured.Unstructured) []string {
	want := map[string]string{}
	for _, o := range m.holders(t) {
		if record := w.applied[w.recordName(o.name)]; t.writes() && o.owns(t) && record != nil {
			want[o.name] = string(record.UID)
		}
	}
	have := map[string]string{}
	for _, ref := range live.GetOwnerReferences() {
		if ref.Kind == "AppliedManifestWork" {
			have[strings.TrimPrefix(ref.Name, w.hubHash+"-")] = string(ref.UID)
		}
	}
	if maps.Equal(want, have) {
		return nil
	}
	return []string{fmt.Sprintf("its owners are %v, but should be %v", have, want)}
}

// fieldsOf are the values of an object that a hand may have set, by name.
func fieldsOf(t *thing, live *unstructured.Unstructured) map[string]string {
	fields := map[string]string{}
	switch t.kind {
	case configMap:
		fields, _, _ = unstructured.NestedStringMap(live.Object, "data")
	case widget, gadget:
		fields, _, _ = unstructured.NestedStringMap(live.Object, "spec")
	case secret:
		encoded, _, _ := unstructured.NestedStringMap(live.Object, "data")
		for key, text := range encoded {
			raw, _ := base64.StdEncoding.DecodeString(text)
			fields[key] = string(raw)
		}
	case role, clusterRole:
		fields["s0"] = scalar(live.Object, "rules", "resourceNames")
	case roleBinding:
		fields["s0"] = scalar(live.Object, "subjects", "name")
	case deployment:
		containers, _, _ := unstructured.NestedFieldNoCopy(live.Object, "spec", "template", "spec")
		spec, _ := containers.(map[string]any)
		image := scalar(spec, "containers", "image")
		fields["s0"] = image[strings.LastIndex(image, ":")+1:]
		if ready, ok, _ := unstructured.NestedInt64(live.Object, "spec", "minReadySeconds"); ok && ready != 0 {
			fields[handKey(t)] = fmt.Sprint(ready)
		}
	case serviceAccount, namespace, definition:
	}
	return fields
}

// scalar is the value, or the first of the values, of a field of the only element of a list.
func scalar(object map[string]any, list, field string) string {
	items, _ := object[list].([]any)
	if len(items) != 1 {
		return fmt.Sprintf("%d %s", len(items), list)
	}
	item, _ := items[0].(map[string]any)
	if many, ok := item[field].([]any); ok && len(many) == 1 {
		return fmt.Sprint(many[0])
	}
	return fmt.Sprint(item[field])
}

// handKey is the name of what hands add to an object.
func handKey(t *thing) string { return fmt.Sprintf("hand-%d", t.id%2) }

// wanted are the values that a revision of the manifest sets, as fieldsOf reads them.
func (t *thing) wanted(revision int) map[string]string {
	switch t.kind {
	case configMap, secret, widget, gadget:
		return t.fields(revision)
	case role, clusterRole, roleBinding, deployment:
		return map[string]string{"s0": fmt.Sprintf("r%d", revision)}
	case serviceAccount, namespace, definition:
	}
	return map[string]string{}
}

// checkContent compares content, labels and annotations.
func (m *Model) checkContent(t *thing, live *unstructured.Unstructured) []string {
	have, want := fieldsOf(t, live), t.wanted(t.revision)
	strict := m.written(t) && t.strategy != workv1.UpdateStrategyTypeCreateOnly
	if !strict && !t.byHand {
		return t.checkLoosely(have)
	}
	var wrong []string
	for _, key := range slices.Sorted(maps.Keys(want)) {
		value, there := have[key]
		ignored := t.ignores && key == "s1" && t.strategy == workv1.UpdateStrategyTypeServerSideApply
		if !there || (value != want[key] && !ignored) {
			wrong = append(wrong, fmt.Sprintf("%s is %q, but revision %d has %s", key, value, t.revision, want[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(have)) {
		foreign := key == handKey(t) && t.strategy == workv1.UpdateStrategyTypeServerSideApply
		if _, mine := want[key]; !mine && !foreign {
			wrong = append(wrong, fmt.Sprintf("%s is %q, but revision %d does not have it", key, have[key], t.revision))
		}
	}
	if t.kind == secret {
		if kind, _, _ := unstructured.NestedString(live.Object, "type"); kind != t.secretType(t.revision) {
			wrong = append(wrong, "its type is "+kind)
		}
	}
	if (t.kind == widget || t.kind == gadget) && size(live) != defaultSize {
		wrong = append(wrong, fmt.Sprintf("its size is %d, but the API server fills in %d", size(live), defaultSize))
	}
	return append(wrong, t.checkMeta(live)...)
}

// checkMeta compares labels and annotations. Update leaves labels that went from the manifest, ServerSideApply removes
// them.
func (t *thing) checkMeta(live *unstructured.Unstructured) []string {
	var wrong []string
	want, have := t.labels(t.revision), live.GetLabels()
	for _, key := range []string{labelSteady, labelFickle} {
		stays := t.strategy == workv1.UpdateStrategyTypeUpdate && want[key] == ""
		if have[key] != want[key] && !stays {
			wrong = append(wrong, fmt.Sprintf("label %s is %q, but revision %d has %q", key, have[key], t.revision, want[key]))
		}
	}
	if have := live.GetAnnotations()[annotationRevision]; have != fmt.Sprint(t.revision) {
		wrong = append(wrong, fmt.Sprintf("it shows revision %q, but should be at %d", have, t.revision))
	}
	return wrong
}

// checkLoosely is for an object whose manifest is not kept in force: what it says must come from some revision, or from
// a hand.
func (t *thing) checkLoosely(have map[string]string) []string {
	var wrong []string
	for _, key := range slices.Sorted(maps.Keys(have)) {
		var revision int
		_, err := fmt.Sscanf(have[key], "r%d", &revision)
		past := err == nil && revision >= 1 && revision <= t.revision && t.wanted(revision)[key] == have[key]
		if !past && key != handKey(t) && !strings.HasPrefix(have[key], "hand") {
			wrong = append(wrong, fmt.Sprintf("%s is %q, which nobody ever set", key, have[key]))
		}
	}
	return wrong
}

// condition finds a condition and says how it is.
func condition(list []metav1.Condition, kind string) (status metav1.ConditionStatus, generation int64) {
	for i := range list {
		if list[i].Type == kind {
			return list[i].Status, list[i].ObservedGeneration
		}
	}
	return "missing", 0
}
