package works

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
)

const (
	// maxOptions is the number of bytes of manifest configs, and of a delete option, that a cache keeps of a work.
	maxOptions = 32 << 10
	// summed is the value of a field by which options say that they stand for others. The definition of ManifestWorks
	// refuses it, so that no stored work can pretend to have what is wanted.
	summed = "Sum"
)

// IsSummed reports whether a cached work has only the hash of its manifest configs, which are too many to be kept.
func IsSummed(work *workv1.ManifestWork) bool {
	configs := work.Spec.ManifestConfigs
	return len(configs) == 1 && configs[0].FeedbackScrapeType == summed
}

// kept returns manifest configs with the defaults of the API server, or one that has the hash of all if these are
// large. What it returned before it returns unchanged.
func kept(configs []workv1.ManifestConfigOption) []workv1.ManifestConfigOption {
	all := defaulted(configs)
	sum, large := sumOf(all)
	if !large {
		return all
	}
	return []workv1.ManifestConfigOption{{
		ResourceIdentifier: workv1.ResourceIdentifier{Name: sum}, FeedbackScrapeType: summed,
	}}
}

// keptDeletion returns a delete option, or one that has the hash of its rules if these are large.
func keptDeletion(o *workv1.DeleteOption) *workv1.DeleteOption {
	if o == nil || o.SelectivelyOrphan == nil {
		return o
	}
	sum, large := sumOf(o.SelectivelyOrphan.OrphaningRules)
	if !large {
		return o
	}
	return &workv1.DeleteOption{
		PropagationPolicy: summed, TTLSecondsAfterFinished: o.TTLSecondsAfterFinished,
		SelectivelyOrphan: &workv1.SelectivelyOrphan{OrphaningRules: []workv1.OrphaningRule{{Name: sum}}},
	}
}

// sumOf returns the hash of options if they are large.
func sumOf(options any) (string, bool) {
	raw, err := json.Marshal(options)
	if err != nil || len(raw) <= maxOptions {
		return "", false
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), true
}

// trimOptions replaces the options of a work that are too large to be kept.
func trimOptions(spec *workv1.ManifestWorkSpec) {
	if all := kept(spec.ManifestConfigs); len(all) == 1 && all[0].FeedbackScrapeType == summed {
		spec.ManifestConfigs = all
	}
	spec.DeleteOption = keptDeletion(spec.DeleteOption)
}

// sameConfigs compares manifest configs, of which either may be large.
func sameConfigs(a, b []workv1.ManifestConfigOption) bool {
	return equality.Semantic.DeepEqual(kept(a), kept(b))
}

// sameDeletion compares delete options, of which either may be large.
func sameDeletion(a, b *workv1.DeleteOption) bool {
	return equality.Semantic.DeepEqual(keptDeletion(a), keptDeletion(b))
}

const (
	// maxReported is the number of bytes of messages and of texts fed back that are kept of the status of a work. An
	// agent can report more than a megabyte for each work of its cluster.
	maxReported = 128 << 10
	// maxEntries is the number of manifests whose status is kept.
	maxEntries = 2000
	// maxObjectName is the longest string that names an object, longer than any of Kubernetes.
	maxObjectName = 320
)

// bounds counts what is kept of the status of a work.
type bounds struct{ bytes, entries int }

// take returns a text if there is room for it, and otherwise nothing.
func (b *bounds) take(text string) string {
	if b.bytes+len(text) > maxReported {
		return ""
	}
	b.bytes += len(text)
	return text
}

// conditions empties the messages that there is no room for. What they say of the status is kept.
func (b *bounds) conditions(all []metav1.Condition) {
	for i := range all {
		all[i].Message = b.take(all[i].Message)
	}
}

// manifest bounds the status of one manifest, and reports whether there is room for it. A text that is too much counts
// as not fed back, which decides nothing. The first manifest that is not well is always kept.
func (b *bounds) manifest(m *workv1.ManifestCondition) bool {
	if b.entries++; b.entries > maxEntries {
		return false
	}
	b.conditions(m.Conditions)
	about := &m.ResourceMeta
	for _, name := range []*string{
		&about.Group, &about.Version, &about.Kind, &about.Resource, &about.Namespace, &about.Name,
	} {
		*name = (*name)[:min(len(*name), maxObjectName)]
	}
	var values []workv1.FeedbackValue
	for _, v := range m.StatusFeedbacks.Values {
		size := 0
		for _, text := range []*string{v.Value.String, v.Value.JsonRaw} {
			if text != nil {
				size += len(*text)
			}
		}
		if len(v.Name) <= maxObjectName && b.bytes+size <= maxReported {
			b.bytes += size
			values = append(values, v)
		}
	}
	m.StatusFeedbacks.Values = values
	return true
}
