package works

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
)

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
