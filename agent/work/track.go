package work

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
)

// AnnotationIntent on an AppliedManifestWork lists, as a JSON list of group/version/resource/namespace/name, what
// may have been made beyond the objects in status.appliedResources. An object is written there before it is made, so
// that a crash right after leaves none that nobody knows of. It is Spokelet's own addition; other agents ignore it.
const AnnotationIntent = "work.spokelet.io/intent"

// maxIntent bounds the annotation, in bytes: the API server takes 256 KiB for all annotations together.
const maxIntent = 192 << 10

// tracked returns the objects that the AppliedManifestWork says it may have made: those of its status with their UIDs,
// and those of its intent, which have none.
func tracked(applied *workv1.AppliedManifestWork) []workv1.AppliedManifestResourceMeta {
	if applied == nil {
		return nil
	}
	intended := intentOf(applied)
	if len(intended) == 0 {
		return applied.Status.AppliedResources
	}
	list := slices.Clone(applied.Status.AppliedResources)
	listed := identities(list)
	for _, entry := range intended {
		if _, known := listed[entryIdentity(entry)]; !known {
			list = append(list, entry)
		}
	}
	return list
}

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

// intentParts is how many parts an object has in the intent.
const intentParts = 5

// setIntent writes the intent into an AppliedManifestWork. What does not fit is left out; the owner references of such
// objects still take them down with the AppliedManifestWork.
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
		delete(applied.Annotations, AnnotationIntent)
		return
	}
	text, _ := json.Marshal(lines)
	if applied.Annotations == nil {
		applied.Annotations = map[string]string{}
	}
	applied.Annotations[AnnotationIntent] = string(text)
}

// widen returns the intent with every object that a task may make and that stands neither there nor in the status, and
// whether there was such an object. Only then what the status has taken over leaves the intent.
func widen(tasks []task, applied *workv1.AppliedManifestWork) ([]workv1.AppliedManifestResourceMeta, bool) {
	listed := identities(applied.Status.AppliedResources)
	var intent []workv1.AppliedManifestResourceMeta
	for _, entry := range intentOf(applied) {
		if _, known := listed[entryIdentity(entry)]; !known {
			intent = append(intent, entry)
		}
	}
	for id, uid := range identities(intent) {
		listed[id] = uid
	}
	wider := false
	for i := range tasks {
		t := &tasks[i]
		if t.err != nil || t.holds() || !t.writes() {
			continue
		}
		if _, known := listed[t.id()]; !known {
			listed[t.id()] = ""
			intent, wider = append(intent, t.entry("")), true
		}
	}
	return intent, wider
}

// narrow returns the intent without the objects that no manifest means any more and that are gone, and whether there
// was such an object. pending are the objects that were told to go and did not yet.
func narrow(manifests []manifest, applied *workv1.AppliedManifestWork, pending []workv1.AppliedManifestResourceMeta,
) ([]workv1.AppliedManifestResourceMeta, bool) {
	intent := intentOf(applied)
	if len(intent) == 0 {
		return nil, false
	}
	resolved := identities(stale(manifests, intent))
	for _, entry := range pending {
		delete(resolved, entryIdentity(entry))
	}
	kept := slices.DeleteFunc(slices.Clone(intent), func(entry workv1.AppliedManifestResourceMeta) bool {
		_, gone := resolved[entryIdentity(entry)]
		return gone
	})
	return kept, len(resolved) > 0
}

// identities maps the objects of a list to their UIDs.
func identities(list []workv1.AppliedManifestResourceMeta) map[identity]string {
	ids := make(map[identity]string, len(list))
	for _, entry := range list {
		ids[entryIdentity(entry)] = entry.UID
	}
	return ids
}

// stale returns the tracked objects that no manifest means any more. A manifest that cannot be read far enough to know
// its object keeps every entry that it could mean: unknown never deletes.
func stale(manifests []manifest, list []workv1.AppliedManifestResourceMeta) []workv1.AppliedManifestResourceMeta {
	mapped := make(map[identity]struct{}, len(manifests))
	var unknown []*manifest
	for i := range manifests {
		if manifests[i].mapped() {
			mapped[manifests[i].id()] = struct{}{}
		} else {
			unknown = append(unknown, &manifests[i])
		}
	}
	var left []workv1.AppliedManifestResourceMeta
	for _, entry := range list {
		if _, wanted := mapped[entryIdentity(entry)]; wanted {
			continue
		}
		if !slices.ContainsFunc(unknown, func(m *manifest) bool { return m.couldBe(entry) }) {
			left = append(left, entry)
		}
	}
	return left
}

// prunable divides the objects that no manifest means any more: those that may be deleted, and those for which it is
// not known whether a manifest means them under another group, because what has their name could not be read in this
// pass.
func prunable(manifests []manifest, results []result, unwanted []workv1.AppliedManifestResourceMeta,
) (ready, unsure []workv1.AppliedManifestResourceMeta) {
	for _, entry := range unwanted {
		same := false
		for i := range results {
			m := &manifests[i]
			same = same || (m.mapped() && results[i].presence == presenceUnknown && !results[i].lasting &&
				m.resource.Group != entry.Group && m.namespace == entry.Namespace && m.name == entry.Name)
		}
		if same {
			unsure = append(unsure, entry)
		} else {
			ready = append(ready, entry)
		}
	}
	return ready, unsure
}

// appliedUIDs are the UIDs of the objects that manifests mean, as they were seen in this pass.
func appliedUIDs(results []result) map[types.UID]bool {
	uids := map[types.UID]bool{}
	for i := range results {
		if results[i].presence == presencePresent && results[i].uid != "" {
			uids[types.UID(results[i].uid)] = true
		}
	}
	return uids
}

// track returns the new list of applied resources, sorted: every object that is known to exist, with its UID, and from
// the list before every object of which that is not known and every one that is not wanted but pending.
func track(manifests []manifest, results []result, before, pending []workv1.AppliedManifestResourceMeta,
) []workv1.AppliedManifestResourceMeta {
	var list []workv1.AppliedManifestResourceMeta
	placed := map[identity]struct{}{}
	put := func(entry workv1.AppliedManifestResourceMeta) {
		if _, twice := placed[entryIdentity(entry)]; !twice {
			placed[entryIdentity(entry)] = struct{}{}
			list = append(list, entry)
		}
	}
	for i, result := range results {
		if m := &manifests[i]; m.mapped() && result.presence == presencePresent {
			put(m.entry(result.uid))
		}
	}
	going := identities(pending)
	for _, entry := range before {
		if _, waits := going[entryIdentity(entry)]; waits {
			put(entry)
		}
		for i, result := range results {
			if result.presence == presenceUnknown && manifests[i].couldBe(entry) {
				put(entry)
			}
		}
	}
	slices.SortFunc(list, compareEntries)
	return list
}

// listed keeps of the entries those that stand in the list of applied resources.
func listed(applied *workv1.AppliedManifestWork, entries []workv1.AppliedManifestResourceMeta,
) []workv1.AppliedManifestResourceMeta {
	known := identities(applied.Status.AppliedResources)
	return slices.DeleteFunc(slices.Clone(entries), func(entry workv1.AppliedManifestResourceMeta) bool {
		_, stands := known[entryIdentity(entry)]
		return !stands
	})
}

// compareEntries orders the list of applied resources as the contract wants it (section 1.11).
func compareEntries(a, b workv1.AppliedManifestResourceMeta) int {
	return cmp.Or(
		cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Resource, b.Resource),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
	)
}

// Transform is for the cache of ManifestWorks and AppliedManifestWorks: it drops the managed fields, of which nobody
// reads anything.
func Transform(obj any) (any, error) {
	if object, ok := obj.(metav1.Object); ok {
		object.SetManagedFields(nil)
	}
	return obj, nil
}
