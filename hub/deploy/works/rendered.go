package works

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// shortHash is the length of a recorded hash, in bytes.
const shortHash = 8

// Rendered is the record on a work of what the works of its set were rendered from and of what was written. Works whose
// records agree with the inputs of the present and with each other need no rendering.
type Rendered struct {
	// Inputs is the fingerprint of the inputs.
	Inputs string `json:"inputs"`
	// Manifests is how many manifests all works of the set have.
	Manifests int `json:"manifests"`
	// Hooks are the sides with pre-delete hooks, whose finalizers the add-on must have.
	Hooks []Side `json:"hooks,omitempty"`
	// Spec is the hash of the spec of this work as it was written.
	Spec string `json:"spec"`
}

// Fingerprint returns the short hash of all inputs of a rendering: a key for what the agent renders from, the
// configurations, the health probe, and the hosting cluster, which is empty in default mode.
func Fingerprint(key string, configs []addon.ChosenConfig, health addon.HealthProbe, hosting string) string {
	sum := sha256.New()
	for _, text := range []string{key, ConfigHashes(configs), string(health), hosting} {
		_, _ = sum.Write([]byte(text)) // A hash takes everything.
		_, _ = sum.Write([]byte{0})
	}
	return hex.EncodeToString(sum.Sum(nil)[:shortHash])
}

// key returns the key of a rendering for Fingerprint, from its content: it is known only after the rendering.
func (d Divided) key(options []workv1.ManifestConfigOption) string {
	sum := sha256.New()
	for _, of := range []map[Side][]Manifest{d.Deploy, d.Hooks} {
		for _, side := range []Side{Managed, Hosting} {
			_, _ = sum.Write([]byte(side))
			for _, m := range of[side] {
				_, _ = sum.Write(m.sum[:])
			}
		}
	}
	if raw, err := json.Marshal(options); err == nil {
		_, _ = sum.Write(raw)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Current reports whether the works of a set are exactly what was written for the given inputs, with the given hashes
// of configurations, so that nothing has to be rendered and nothing written. It returns the sides with hooks. It is
// false for a set without works.
func Current(set Set, have []*workv1.ManifestWork, inputs, hashes string) (hooks []Side, current bool) {
	own := set.Select(have)
	total := manifestsIn(own)
	for i, work := range own {
		var r Rendered
		if json.Unmarshal([]byte(work.Annotations[names.AnnotationRenderedFrom]), &r) != nil ||
			r.Inputs != inputs || r.Manifests != total || !intact(set, work, hashes) || r.Spec != specHash(&work.Spec) {
			return nil, false
		}
		if i > 0 && !slices.Equal(hooks, r.Hooks) {
			return nil, false
		}
		hooks = r.Hooks
	}
	return hooks, len(own) > 0 && inputs != ""
}

// intact reports whether a work is in its place with the labels, annotations and owners of its set, and without an
// executor.
func intact(set Set, work *workv1.ManifestWork, hashes string) bool {
	if work.DeletionTimestamp != nil || work.Namespace != set.Namespace || work.Spec.Executor != nil ||
		work.Annotations[names.AnnotationConfigSpecHash] != hashes {
		return false
	}
	for key, value := range set.labels() {
		if got, found := work.Labels[key]; !found || got != value {
			return false
		}
	}
	return equality.Semantic.DeepEqual(reconcile.WithOwners(work.OwnerReferences, set.owners()), work.OwnerReferences)
}

// rendered returns the record for a work with the manifests of a slot.
func rendered(o Options, total int, s *slot) string {
	sums := make([][sha256.Size]byte, len(s.manifests))
	for i := range s.manifests {
		sums[i] = s.manifests[i].sum
	}
	raw, err := json.Marshal(Rendered{
		Inputs: o.Inputs, Manifests: total, Hooks: o.Hooks, Spec: hashOf(sums, o.Configs, o.Delete),
	})
	if err != nil {
		return "" // Strings and numbers can always be encoded.
	}
	return string(raw)
}

// specHash returns the short hash of the spec of a work, which is the same for manifests and for their digests.
func specHash(spec *workv1.ManifestWorkSpec) string {
	sums := make([][sha256.Size]byte, len(spec.Workload.Manifests))
	for i := range spec.Workload.Manifests {
		stored, err := Read(&spec.Workload.Manifests[i])
		if err != nil {
			return ""
		}
		sums[i] = stored.Sum
	}
	return hashOf(sums, spec.ManifestConfigs, spec.DeleteOption)
}

// hashOf returns the short hash of a spec with these manifests and options.
func hashOf(sums [][sha256.Size]byte, configs []workv1.ManifestConfigOption, deletion *workv1.DeleteOption) string {
	sum := sha256.New()
	for i := range sums {
		_, _ = sum.Write(sums[i][:])
	}
	options, err := json.Marshal(workv1.ManifestWorkSpec{ManifestConfigs: defaulted(configs), DeleteOption: deletion})
	if err != nil {
		return ""
	}
	_, _ = sum.Write(options)
	return hex.EncodeToString(sum.Sum(nil)[:shortHash])
}
