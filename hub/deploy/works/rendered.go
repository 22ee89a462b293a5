package works

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

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
	// By is the version of the code that first rendered this from the inputs; empty when Inputs are the content itself.
	By string `json:"by,omitempty"`
	// Manifests is how many manifests all works of the set have, without those that are held.
	Manifests int `json:"manifests"`
	// Held is how many manifests of this work, the last ones, another work of the set is to have. While there are any, the
	// works of the set are planned again in every pass.
	Held int `json:"held,omitempty"`
	// Hooks are the sides with pre-delete hooks, whose finalizers the add-on must have.
	Hooks []Side `json:"hooks,omitempty"`
	// Keeps is set where the works keep definitions that nothing renders, because their content replaced one that was
	// undone.
	Keeps bool `json:"keeps,omitempty"`
	// Spec is the hash of the spec of this work as it was written.
	Spec string `json:"spec"`
	// Order is the hash of names.AnnotationConfigOrder as it was written; empty where it was not, see OrderOf.
	Order string `json:"order,omitempty"`
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

// Sum identifies the records of works; zero for none.
type Sum [shortHash]byte

// Standing says what the records say of works that are as they were written.
type Standing struct {
	// Hooks are the sides with pre-delete hooks.
	Hooks []Side
	// Foreign reports whether other code than the present rendered any of the works. The present code may render something
	// else from the same inputs.
	Foreign bool
	// Sum identifies the records.
	Sum Sum
}

// Current reports whether the works of some sets are exactly what was written for the inputs and the hashes of
// configurations of the options, by any version of the code. It is false without any work. No record says whether
// another set should have works.
func Current(have []*workv1.ManifestWork, o Options, sets ...Set) (Standing, bool) {
	var texts []string
	var standing Standing
	for _, set := range sets {
		own := set.Select(have)
		total := manifestsIn(own)
		for _, work := range own {
			r, err := recordOf(work)
			if err != nil || r.Inputs != o.Inputs || r.Manifests != total || r.Held != 0 || !intact(set, work, o) ||
				r.Spec != specHash(&work.Spec) || (len(texts) > 0 && !slices.Equal(standing.Hooks, r.Hooks)) {
				return Standing{}, false
			}
			standing.Hooks, standing.Foreign = r.Hooks, standing.Foreign || r.By != o.By
			texts = append(texts, work.Namespace+"/"+work.Name+" "+work.Annotations[names.AnnotationRenderedFrom])
		}
	}
	slices.Sort(texts)
	sum := sha256.Sum256([]byte(strings.Join(texts, "\n")))
	copy(standing.Sum[:], sum[:])
	return standing, len(texts) > 0 && o.Inputs != ""
}

// OrderOf returns the order of configurations, as ConfigOrder has it, from which a work is known to be rendered; empty
// where it is not known. Programs of others and earlier versions of ours write works and leave annotations that they do
// not know. So what is noted counts only with a record that is of it, and of the spec that the work has.
func OrderOf(work *workv1.ManifestWork) string {
	order := work.Annotations[names.AnnotationConfigOrder]
	if order == "" {
		return ""
	}
	if r, err := recordOf(work); err != nil || r.Order != orderHash(order) || r.Spec != specHash(&work.Spec) {
		return ""
	}
	return order
}

// Keeps reports whether a work of some configurations, as ConfigHashes has them, keeps definitions that none renders.
func Keeps(work *workv1.ManifestWork, hashes string) bool {
	r, err := recordOf(work)
	return err == nil && r.Keeps && work.Annotations[names.AnnotationConfigSpecHash] == hashes
}

// orderHash returns the short hash of an order of configurations; empty for none.
func orderHash(order string) string {
	if order == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(order))
	return hex.EncodeToString(sum[:shortHash])
}

// heldBy returns how many of the manifests of a work, the last ones, it only holds for another one. A work with another
// content than was written holds none.
func heldBy(work *workv1.ManifestWork) int {
	r, err := recordOf(work)
	if err != nil || r.Held < 0 || r.Held > len(work.Spec.Workload.Manifests) || r.Spec != specHash(&work.Spec) {
		return 0
	}
	return r.Held
}

// recordOf reads the record of a work.
func recordOf(work *workv1.ManifestWork) (Rendered, error) {
	var r Rendered
	if err := json.Unmarshal([]byte(work.Annotations[names.AnnotationRenderedFrom]), &r); err != nil {
		return Rendered{}, fmt.Errorf("decoding annotation %s: %w", names.AnnotationRenderedFrom, err)
	}
	return r, nil
}

// intact reports whether a work is in its place with the labels, annotations and owners of its set, and without an
// executor.
func intact(set Set, work *workv1.ManifestWork, o Options) bool {
	if work.DeletionTimestamp != nil || work.Namespace != set.Namespace || work.Spec.Executor != nil ||
		work.Annotations[names.AnnotationConfigSpecHash] != o.Hashes {
		return false
	}
	// Where the order is not known, the next content has it; an upgrade does not write all works of a fleet.
	if order := OrderOf(work); order != "" && order != o.Order {
		return false
	}
	for key, value := range set.annotations() {
		if work.Annotations[key] != value {
			return false
		}
	}
	for key, value := range set.labels() {
		if got, found := work.Labels[key]; !found || got != value {
			return false
		}
	}
	return equality.Semantic.DeepEqual(reconcile.WithOwners(work.OwnerReferences, set.owners()), work.OwnerReferences)
}

// rendered returns the record for a work with the manifests of a slot. A record that says the same of another version
// stays, also one without an order: a new version that renders the same writes no work.
func rendered(o Options, total int, s *slot) Rendered {
	sums := make([][sha256.Size]byte, len(s.manifests))
	for i := range s.manifests {
		sums[i] = s.manifests[i].sum
	}
	record := Rendered{
		Inputs: o.Inputs, By: o.By, Manifests: total, Held: s.held, Hooks: o.Hooks, Spec: hashOf(sums, o.Configs, o.Delete),
		Order: orderHash(o.Order), Keeps: o.Keeps,
	}
	if s.there != nil {
		if former, err := recordOf(s.there); err == nil {
			same := former
			same.By, same.Order = record.By, cmp.Or(former.Order, record.Order)
			if reflect.DeepEqual(same, record) {
				return former
			}
		}
	}
	return record
}

// annotation returns the value of names.AnnotationRenderedFrom.
func (r Rendered) annotation() string {
	raw, err := json.Marshal(r)
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
	spec := workv1.ManifestWorkSpec{ManifestConfigs: kept(configs), DeleteOption: keptDeletion(deletion)}
	options, err := json.Marshal(spec)
	if err != nil {
		return ""
	}
	_, _ = sum.Write(options)
	return hex.EncodeToString(sum.Sum(nil)[:shortHash])
}

// manifestsIn counts the manifests of works.
func manifestsIn(works []*workv1.ManifestWork) int {
	total := 0
	for _, work := range works {
		total += len(work.Spec.Workload.Manifests)
	}
	return total
}
