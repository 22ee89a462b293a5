package inventory

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/manifest"
)

// AnnotationIntent on an AppliedManifestWork lists, as a JSON list of group/version/resource/namespace/name, the
// objects that may have been created beyond those in status.appliedResources. An object is written there before it is
// created, so that a crash right after leaves none that nobody knows of. It is Spokelet's own addition; other agents
// ignore it.
const AnnotationIntent = "work.spokelet.io/intent"

const (
	// maxIntent bounds the annotation, in bytes: the API server takes 256 KiB for all annotations together.
	maxIntent = 192 << 10
	// intentParts is how many parts an object has in the intent.
	intentParts = 5
)

// intentOf decodes the intent of an AppliedManifestWork; what cannot be read is not ours.
func intentOf(applied *workv1.AppliedManifestWork) []workv1.AppliedManifestResourceMeta {
	text := applied.Annotations[AnnotationIntent]
	if text == "" {
		return nil
	}
	var lines []string
	if json.Unmarshal([]byte(text), &lines) != nil {
		return nil
	}
	list := make([]workv1.AppliedManifestResourceMeta, 0, len(lines))
	for _, line := range lines {
		part := strings.Split(line, "/")
		if len(part) != intentParts {
			continue
		}
		list = append(list, workv1.AppliedManifestResourceMeta{
			Version: part[1],
			ResourceIdentifier: workv1.ResourceIdentifier{
				Group: part[0], Resource: part[2], Namespace: part[3], Name: part[4],
			},
		})
	}
	return list
}

// setIntent writes the intent into an AppliedManifestWork. Objects that do not fit are left out; their owner references
// still delete them with the AppliedManifestWork.
func setIntent(applied *workv1.AppliedManifestWork, list []workv1.AppliedManifestResourceMeta) {
	var lines []string
	size := 0
	for _, e := range list {
		line := strings.Join([]string{e.Group, e.Version, e.Resource, e.Namespace, e.Name}, "/")
		if size += len(line) + len(`"",`); size > maxIntent {
			break
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		setAnnotation(applied, AnnotationIntent, "")
		return
	}
	text, _ := json.Marshal(lines)
	setAnnotation(applied, AnnotationIntent, string(text))
}

// widen returns the intent with each of the objects that stands neither there nor in the status, and whether there was
// such an object. Only then objects that the status has by now leave the intent.
func widen(objects []workv1.AppliedManifestResourceMeta, applied *workv1.AppliedManifestWork,
) ([]workv1.AppliedManifestResourceMeta, bool) {
	listed := IDs(applied.Status.AppliedResources)
	var intent []workv1.AppliedManifestResourceMeta
	for _, entry := range intentOf(applied) {
		if _, known := listed[manifest.IDOf(entry)]; !known {
			intent = append(intent, entry)
		}
	}
	for id, uid := range IDs(intent) {
		listed[id] = uid
	}
	wider := false
	for _, entry := range objects {
		if _, known := listed[manifest.IDOf(entry)]; !known {
			listed[manifest.IDOf(entry)] = ""
			intent, wider = append(intent, entry), true
		}
	}
	return intent, wider
}

// narrow returns the intent without the objects that no manifest means any more and that are gone, and whether there
// was such an object. pending are the objects whose deletion was requested and that are not gone yet.
func narrow(manifests []manifest.Manifest, applied *workv1.AppliedManifestWork,
	pending []workv1.AppliedManifestResourceMeta,
) ([]workv1.AppliedManifestResourceMeta, bool) {
	intent := intentOf(applied)
	if len(intent) == 0 {
		return nil, false
	}
	resolved := IDs(Unwanted(manifests, intent))
	for _, entry := range pending {
		delete(resolved, manifest.IDOf(entry))
	}
	kept := slices.DeleteFunc(slices.Clone(intent), func(entry workv1.AppliedManifestResourceMeta) bool {
		_, gone := resolved[manifest.IDOf(entry)]
		return gone
	})
	return kept, len(resolved) > 0
}

// AnnotationHeld on an AppliedManifestWork says since when its objects are held, although its work is missing on the
// hub, until a person confirms their deletion or the work is back. Meanwhile no grace period runs, so that another
// agent, which ignores the annotation, begins one. It is Spokelet's own addition.
const AnnotationHeld = "work.spokelet.io/held"

// AnnotationEvictionConfirmed on an AppliedManifestWork that is held is the name of the list of works with which a
// person confirmed the deletion of its objects. It is Spokelet's own addition.
const AnnotationEvictionConfirmed = "work.spokelet.io/eviction-confirmed"

// IsHeld reports whether the objects of an AppliedManifestWork are held.
func IsHeld(applied *workv1.AppliedManifestWork) bool {
	return HeldSince(applied) != ""
}

// HeldSince returns since when the objects of an AppliedManifestWork are held, as it is recorded; empty when they are
// not.
func HeldSince(applied *workv1.AppliedManifestWork) string {
	return applied.Annotations[AnnotationHeld]
}

// Confirmed returns with which list of works a person confirmed the deletion of what is held; empty for none.
func Confirmed(applied *workv1.AppliedManifestWork) string {
	return applied.Annotations[AnnotationEvictionConfirmed]
}

// MissingSince returns since when the work of an AppliedManifestWork is missing, as it is recorded; zero when it is
// not.
func MissingSince(applied *workv1.AppliedManifestWork) time.Time {
	if since, err := time.Parse(time.RFC3339, applied.Annotations[AnnotationHeld]); err == nil {
		return since
	}
	if start := applied.Status.EvictionStartTime; start != nil {
		return start.Time
	}
	return time.Time{}
}

// Hold writes since when the objects of an AppliedManifestWork are held; zero means that they are not, and that nothing
// is confirmed any more.
func (w *Writer) Hold(ctx context.Context, applied *workv1.AppliedManifestWork, since time.Time,
) (*workv1.AppliedManifestWork, error) {
	if IsHeld(applied) != since.IsZero() {
		return applied, nil
	}
	after, value := applied.DeepCopy(), ""
	if !since.IsZero() {
		value = since.UTC().Format(time.RFC3339)
	}
	setAnnotation(after, AnnotationHeld, value)
	setAnnotation(after, AnnotationEvictionConfirmed, "")
	return w.patch(ctx, applied, after, "marking the AppliedManifestWork whose work is missing")
}

// Confirm writes with which list of works a person confirmed the deletion of what is held.
func (w *Writer) Confirm(ctx context.Context, applied *workv1.AppliedManifestWork, list string,
) (*workv1.AppliedManifestWork, error) {
	if Confirmed(applied) == list {
		return applied, nil
	}
	after := applied.DeepCopy()
	setAnnotation(after, AnnotationEvictionConfirmed, list)
	return w.patch(ctx, applied, after, "recording on the AppliedManifestWork that its eviction is confirmed")
}
