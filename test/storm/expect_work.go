package storm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/names"
)

// annotationIntent is where the agent writes down what it is about to make.
const annotationIntent = "work.spokelet.io/intent"

// checkWork compares one work and its applied record.
func (m *Model) checkWork(w *world, o *work) []string {
	if !o.exists {
		return nil
	}
	live := w.works[o.name]
	if live == nil {
		return []string{"the work is not on the hub"}
	}
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if !live.DeletionTimestamp.IsZero() || !slices.Equal(live.Finalizers, []string{names.FinalizerManifestWork}) {
		say("the work has the finalizers %v, deleted %t", live.Finalizers, !live.DeletionTimestamp.IsZero())
	}
	applied, available := metav1.ConditionTrue, metav1.ConditionTrue
	for _, t := range o.things {
		switch {
		case !w.served(m, t.kind):
			applied = metav1.ConditionFalse
			if available == metav1.ConditionTrue {
				available = metav1.ConditionUnknown
			}
		case w.objects[t.id] == nil:
			available = metav1.ConditionFalse
		}
	}
	for kind, want := range map[string]metav1.ConditionStatus{
		workv1.WorkApplied: applied, workv1.WorkAvailable: available,
	} {
		if have, at := condition(live.Status.Conditions, kind); have != want || at != live.Generation {
			say("%s is %s at generation %d, but should be %s at %d", kind, have, at, want, live.Generation)
		}
	}
	if have := live.Status.ResourceStatus.Manifests; len(have) != len(o.things) {
		say("the status has %d manifests of %d", len(have), len(o.things))
	} else {
		for i, t := range o.things {
			wrong = append(wrong, m.checkManifest(w, o, t, i, &have[i], live.Generation)...)
		}
	}
	return append(wrong, m.checkRecord(w, o)...)
}

// checkManifest compares what the status says of one manifest.
func (m *Model) checkManifest(w *world, o *work, t *thing, at int, have *workv1.ManifestCondition, generation int64,
) []string {
	var wrong []string
	say := func(format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("manifest %d, %s: ", at, t)+fmt.Sprintf(format, args...))
	}
	_, name, resource := t.kind.names()
	live, served := w.objects[t.id], w.served(m, t.kind)
	want := workv1.ManifestResourceMeta{
		Ordinal: int32(at), Group: t.kind.gvk().Group, Version: t.kind.gvk().Version,
		Kind: name, Resource: resource, Namespace: t.namespace, Name: t.name,
	}
	if !served {
		want.Resource = ""
	}
	if have.ResourceMeta != want {
		say("its meta is %v, but should be %v", have.ResourceMeta, want)
	}
	applied, available := metav1.ConditionTrue, metav1.ConditionTrue
	switch {
	case !served:
		applied, available = metav1.ConditionFalse, metav1.ConditionUnknown
	case live == nil:
		available = metav1.ConditionFalse
	}
	if is, seen := condition(have.Conditions, workv1.ManifestApplied); is != applied || seen != generation {
		say("Applied is %s at generation %d, but should be %s at %d", is, seen, applied, generation)
	}
	if is, _ := condition(have.Conditions, workv1.ManifestAvailable); is != available {
		say("Available is %s, but should be %s", is, available)
	}
	if value, known := feedbackOf(have); o.rules && t.kind == configMap && live != nil {
		s0, exists := fieldsOf(t, live)["s0"]
		if value != s0 || known != exists {
			say("its feedback is %q, but s0 is %q", value, s0)
		}
		rule := metav1.ConditionFalse
		if strings.HasPrefix(s0, "r") {
			rule = metav1.ConditionTrue
		}
		if is, seen := condition(have.Conditions, ruleName); exists && (is != rule || seen != generation) {
			say("%s is %s at generation %d, but should be %s at %d", ruleName, is, seen, rule, generation)
		}
	} else if !o.rules && known {
		say("there is feedback, for which nobody asks")
	}
	return wrong
}

// feedbackOf is the value that was asked for.
func feedbackOf(have *workv1.ManifestCondition) (string, bool) {
	for _, value := range have.StatusFeedbacks.Values {
		if value.Name == feedbackName && value.Value.String != nil {
			return *value.Value.String, true
		}
	}
	return "", false
}

// checkRecord compares the AppliedManifestWork of a work.
func (m *Model) checkRecord(w *world, o *work) []string {
	record := w.applied[w.recordName(o.name)]
	if record == nil {
		return []string{"it has no applied record"}
	}
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	ours := []string{names.FinalizerAppliedManifestWork}
	if !record.DeletionTimestamp.IsZero() || !slices.Equal(record.Finalizers, ours) {
		say("its record has the finalizers %v, deleted %t", record.Finalizers, !record.DeletionTimestamp.IsZero())
	}
	want := workv1.AppliedManifestWorkSpec{HubHash: w.hubHash, AgentID: w.agentID, ManifestWorkName: o.name}
	if record.Spec != want {
		say("the spec of its record is %v", record.Spec)
	}
	if record.Status.EvictionStartTime != nil {
		say("its record is being evicted")
	}
	if have := record.Labels["storm"]; have != o.label {
		say("the label of its record is %q, but should be %q", have, o.label)
	}
	wrong = append(wrong, m.checkList(w, o, record.Status.AppliedResources)...)
	var intent []string
	_ = json.Unmarshal([]byte(record.Annotations[annotationIntent]), &intent)
	for _, line := range intent {
		if !slices.ContainsFunc(o.things, func(t *thing) bool { return line == intentOf(t) }) {
			say("its intent has %s, which is no manifest of it", line)
		}
	}
	return wrong
}

// intentOf is how an object is in the intent.
func intentOf(t *thing) string {
	at := t.kind.resource()
	return strings.Join([]string{at.Group, at.Version, at.Resource, t.namespace, t.name}, "/")
}

// checkList compares the list of applied resources.
func (m *Model) checkList(w *world, o *work, have []workv1.AppliedManifestResourceMeta) []string {
	want := map[string]string{}
	unserved := map[string]bool{}
	for _, t := range o.things {
		switch live := w.objects[t.id]; {
		case !w.served(m, t.kind):
			unserved[intentOf(t)] = true
		case live != nil:
			want[intentOf(t)] = string(live.GetUID())
		}
	}
	var wrong []string
	listed := map[string]bool{}
	for _, entry := range have {
		line := strings.Join([]string{entry.Group, entry.Version, entry.Resource, entry.Namespace, entry.Name}, "/")
		listed[line] = true
		switch uid, known := want[line]; {
		case !known && !unserved[line]:
			wrong = append(wrong, "its record lists "+line+", which is not its own or does not exist")
		case known && uid != entry.UID:
			wrong = append(wrong, "its record lists "+line+" with another UID")
		}
	}
	for line := range want {
		if !listed[line] {
			wrong = append(wrong, "its record does not list "+line)
		}
	}
	sorted := slices.IsSortedFunc(have, func(a, b workv1.AppliedManifestResourceMeta) int {
		return slices.Compare([]string{a.Group, a.Version, a.Resource, a.Namespace, a.Name},
			[]string{b.Group, b.Version, b.Resource, b.Namespace, b.Name})
	})
	if !sorted {
		wrong = append(wrong, "the list of its record is not sorted")
	}
	return wrong
}

// size is the field of a custom resource that the API server fills in.
func size(live *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(live.Object, "size")
	return n
}
