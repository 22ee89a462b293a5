package works

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/equality"
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
