package inventory

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/manifest"
)

// Tracked returns the objects that the AppliedManifestWork may have created: those of its status with their UIDs, and
// those of its intent, which have none.
func Tracked(applied *workv1.AppliedManifestWork) []workv1.AppliedManifestResourceMeta {
	if applied == nil {
		return nil
	}
	intended := intentOf(applied)
	if len(intended) == 0 {
		return applied.Status.AppliedResources
	}
	list := slices.Clone(applied.Status.AppliedResources)
	listed := IDs(list)
	for _, entry := range intended {
		if _, known := listed[manifest.IDOf(entry)]; !known {
			list = append(list, entry)
		}
	}
	return list
}

// IDs maps the objects of a list to their UIDs.
func IDs(list []workv1.AppliedManifestResourceMeta) map[manifest.ID]string {
	ids := make(map[manifest.ID]string, len(list))
	for _, entry := range list {
		ids[manifest.IDOf(entry)] = entry.UID
	}
	return ids
}

// Unwanted returns the tracked objects that no manifest means any more. A manifest that cannot be read far enough to
// know its object keeps every entry that it may mean: unknown never deletes.
func Unwanted(manifests []manifest.Manifest, list []workv1.AppliedManifestResourceMeta,
) []workv1.AppliedManifestResourceMeta {
	located := make(map[manifest.ID]struct{}, len(manifests))
	var unknown []*manifest.Manifest
	for i := range manifests {
		if manifests[i].Located() {
			located[manifests[i].ID()] = struct{}{}
		} else {
			unknown = append(unknown, &manifests[i])
		}
	}
	var left []workv1.AppliedManifestResourceMeta
	for _, entry := range list {
		if _, wanted := located[manifest.IDOf(entry)]; wanted {
			continue
		}
		if !slices.ContainsFunc(unknown, func(m *manifest.Manifest) bool { return m.CouldBe(entry) }) {
			left = append(left, entry)
		}
	}
	return left
}

// Found holds what a pass learned about the object of one manifest.
type Found struct {
	// Presence is whether the object exists, and UID its UID then.
	Presence manifest.Presence
	UID      string
	// Final reports whether repeating the pass would find no more.
	Final bool
}

// Prunable divides the objects that no manifest means any more into those that may be deleted and those of which it is
// unknown whether a manifest means them under another group, because the object of that name could not be read in this
// pass.
func Prunable(manifests []manifest.Manifest, found []Found, unwanted []workv1.AppliedManifestResourceMeta,
) (ready, unknown []workv1.AppliedManifestResourceMeta) {
	for _, entry := range unwanted {
		same := false
		for i := range found {
			m := &manifests[i]
			same = same || (m.Mapped() && found[i].Presence == manifest.Unknown && !found[i].Final &&
				m.Resource.Group != entry.Group && m.Namespace == entry.Namespace && m.Name == entry.Name)
		}
		if same {
			unknown = append(unknown, entry)
		} else {
			ready = append(ready, entry)
		}
	}
	return ready, unknown
}

// UIDs are the UIDs of the objects that manifests mean, as this pass found them.
func UIDs(found []Found) map[types.UID]bool {
	uids := map[types.UID]bool{}
	for i := range found {
		if found[i].Presence == manifest.Present && found[i].UID != "" {
			uids[types.UID(found[i].UID)] = true
		}
	}
	return uids
}

// List returns the new list of applied resources, sorted: every object that is known to exist, with its UID, and from
// the list before every object of which that is unknown and every one whose deletion is pending.
func List(manifests []manifest.Manifest, found []Found, before, pending []workv1.AppliedManifestResourceMeta,
) []workv1.AppliedManifestResourceMeta {
	var list []workv1.AppliedManifestResourceMeta
	placed := map[manifest.ID]struct{}{}
	put := func(entry workv1.AppliedManifestResourceMeta) {
		if _, twice := placed[manifest.IDOf(entry)]; !twice {
			placed[manifest.IDOf(entry)] = struct{}{}
			list = append(list, entry)
		}
	}
	for i, f := range found {
		if m := &manifests[i]; m.Mapped() && f.Presence == manifest.Present {
			put(m.Entry(f.UID))
		}
	}
	going := IDs(pending)
	for _, entry := range before {
		if _, waits := going[manifest.IDOf(entry)]; waits {
			put(entry)
		}
		for i, f := range found {
			if f.Presence == manifest.Unknown && manifests[i].CouldBe(entry) {
				put(entry)
			}
		}
	}
	slices.SortFunc(list, CompareEntries)
	return list
}

// Listed keeps of the entries those that are in the list of applied resources.
func Listed(applied *workv1.AppliedManifestWork, entries []workv1.AppliedManifestResourceMeta,
) []workv1.AppliedManifestResourceMeta {
	known := IDs(applied.Status.AppliedResources)
	return slices.DeleteFunc(slices.Clone(entries), func(entry workv1.AppliedManifestResourceMeta) bool {
		_, stands := known[manifest.IDOf(entry)]
		return !stands
	})
}

// CompareEntries orders the list of applied resources (docs/reference/work.md, "AppliedManifestWork").
func CompareEntries(a, b workv1.AppliedManifestResourceMeta) int {
	return cmp.Or(
		cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Resource, b.Resource),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
	)
}

// HubHash returns the identity of a hub: the lower-case hex SHA-256 of server, which is the server field of the hub
// kubeconfig exactly as written there. Any textual change makes another hub (docs/reference/work.md, "Names and
// identity").
func HubHash(server string) string {
	sum := sha256.Sum256([]byte(server))
	return hex.EncodeToString(sum[:])
}

// Name is the name of the AppliedManifestWork of a work under a hub.
func Name(hubHash, work string) string { return hubHash + "-" + work }

// nameFailure returns why no AppliedManifestWork can have the name that belongs to a work; nil when one can.
func nameFailure(work, name string) *manifest.PermanentError {
	over := len(name) - validation.DNS1123SubdomainMaxLength
	if over <= 0 {
		return nil
	}
	return manifest.Failed(fmt.Sprintf(
		"the name of a ManifestWork may have %d characters at most and this one has %d; create the work under a shorter name",
		len(work)-over, len(work)))
}

// Resource is where AppliedManifestWorks are served.
func Resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{
		Group: workv1.GroupVersion.Group, Version: workv1.GroupVersion.Version, Resource: "appliedmanifestworks",
	}
}

// AnnotationLabels on an AppliedManifestWork lists, separated by commas, the keys of the labels that it has from its
// ManifestWork, so that those which the work loses can be removed and those of others stay. It is Spokelet's own
// addition; other agents ignore it.
const AnnotationLabels = "work.spokelet.io/labels"

// copyLabels gives an AppliedManifestWork the labels of its work, removes those that it had from the work and that the
// work has no more, and leaves all others. Without the annotation, as other agents leave it, none is removed.
func copyLabels(applied *workv1.AppliedManifestWork, labels map[string]string) {
	merged := maps.Clone(applied.Labels)
	for _, key := range strings.Split(applied.Annotations[AnnotationLabels], ",") {
		if _, stays := labels[key]; !stays {
			delete(merged, key)
		}
	}
	if merged == nil && len(labels) > 0 {
		merged = map[string]string{}
	}
	maps.Copy(merged, labels)
	applied.Labels = merged
	setAnnotation(applied, AnnotationLabels, strings.Join(slices.Sorted(maps.Keys(labels)), ","))
}

// setAnnotation sets an annotation, or removes it when the value is empty.
func setAnnotation(applied *workv1.AppliedManifestWork, key, value string) {
	switch {
	case value == "":
		delete(applied.Annotations, key)
		return
	case applied.Annotations == nil:
		applied.Annotations = map[string]string{}
	}
	applied.Annotations[key] = value
}
