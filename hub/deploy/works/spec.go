package works

import (
	"encoding/json"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Options are the part that all deploy works of an add-on on a cluster share.
type Options struct {
	// Hashes is the value of names.AnnotationConfigSpecHash; empty for none.
	Hashes string
	// Order is the value of names.AnnotationConfigOrder; empty for none.
	Order string
	// Configs are the feedback rules and update strategies.
	Configs []workv1.ManifestConfigOption
	// Delete lists the objects that outlive the add-on; nil for none.
	Delete *workv1.DeleteOption
	// Inputs identifies what the works are rendered from, see Fingerprint.
	Inputs string
	// By is the version of the code that renders; empty when Inputs are the content itself.
	By string
	// Keeps is set where the works keep definitions that nothing renders.
	Keeps bool
	// Hooks are the sides with pre-delete hooks, in the order of the sides.
	Hooks []Side
}

// OptionsOf returns the options for a rendering. probe are the feedback rules that the health probe needs; inputs
// returns the fingerprint of the inputs for the key of the content.
func OptionsOf(
	rendering addon.Rendering, probe []workv1.ManifestConfigOption, inputs func(key string) string, d Divided,
) Options {
	o := Options{
		Hashes: ConfigHashes(rendering.Configs), Order: ConfigOrder(rendering.Configs),
		Configs: ManifestConfigs(probe, rendering.ManifestConfigs),
		Delete:  orphans(rendering.Objects),
	}
	o.Inputs = inputs(d.key(o.Configs))
	for _, side := range []Side{Managed, Hosting} {
		if len(d.Hooks[side]) > 0 {
			o.Hooks = append(o.Hooks, side)
		}
	}
	return o
}

// Holding returns the options for works that hold objects until others have them: such works are planned again in every
// pass.
func (o Options) Holding(held []Manifest) Options {
	if len(held) > 0 {
		o.Inputs = ""
	}
	return o
}

// ConfigHashes returns the value of the annotation with the configurations that a work was rendered from: a JSON object
// of "<resource>[.<group>]/<namespace>/<name>" to spec hash (docs/reference/hub.md, "Works of an add-on"). Empty when
// there are none.
func ConfigHashes(configs []addon.ChosenConfig) string {
	hashes := make(map[string]string, len(configs))
	for _, config := range configs {
		hashes[confighash.Key(config.ConfigGroupResource, config.ConfigReferent)] = config.SpecHash
	}
	if len(hashes) == 0 {
		return ""
	}
	raw, err := json.Marshal(hashes)
	if err != nil {
		return "" // A map of strings can always be encoded.
	}
	return string(raw)
}

// ConfigOrder returns the value of the annotation with the order of these configurations.
func ConfigOrder(configs []addon.ChosenConfig) string {
	keys := make([]string, 0, len(configs))
	for _, config := range configs {
		keys = append(keys, confighash.Key(config.ConfigGroupResource, config.ConfigReferent))
	}
	return confighash.Order(keys)
}

// configurations returns the annotations that say what a work was rendered from; one that is empty must not be there.
func (o Options) configurations() map[string]string {
	return map[string]string{names.AnnotationConfigSpecHash: o.Hashes, names.AnnotationConfigOrder: o.Order}
}

// newWork returns the desired work for a slot. The record of what it was rendered from follows when all works of the
// set are known.
func newWork(set Set, o Options, s *slot) *workv1.ManifestWork {
	work := &workv1.ManifestWork{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: set.Name(s.index), Labels: set.labels(), OwnerReferences: set.owners(),
			Annotations: set.annotations(),
		},
		Spec: workv1.ManifestWorkSpec{
			Workload:        workv1.ManifestsTemplate{Manifests: workload(s.manifests)},
			ManifestConfigs: o.Configs,
			DeleteOption:    o.Delete,
		},
	}
	for key, value := range o.configurations() {
		if value != "" {
			work.Annotations = reconcile.WithEntries(work.Annotations, map[string]string{key: value})
		}
	}
	return work
}

// changedWork returns the desired work and whether it differs from the existing one. Labels, annotations and owners of
// others stay; the spec is ours alone. Defaults of the API are no difference.
func changedWork(set Set, o Options, s *slot, record Rendered) (*workv1.ManifestWork, bool) {
	want := newWork(set, o, s)
	there := s.there
	after := there.DeepCopy()
	after.Labels = reconcile.WithEntries(after.Labels, want.Labels)
	after.Annotations = reconcile.WithEntries(after.Annotations, want.Annotations)
	after.Annotations[names.AnnotationRenderedFrom] = record.annotation()
	for key, value := range o.configurations() {
		if value == "" {
			delete(after.Annotations, key)
		}
	}
	if set.AddOn.DeletionTimestamp.IsZero() || !ownedBy(there, set.AddOn) {
		after.OwnerReferences = reconcile.WithOwners(after.OwnerReferences, want.OwnerReferences)
	}
	specChanged := there.Spec.Executor != nil
	after.Spec.Executor = nil
	if !sameManifests(there.Spec.Workload.Manifests, s.manifests) {
		after.Spec.Workload.Manifests, specChanged = want.Spec.Workload.Manifests, true
	}
	if !sameConfigs(there.Spec.ManifestConfigs, want.Spec.ManifestConfigs) {
		after.Spec.ManifestConfigs, specChanged = want.Spec.ManifestConfigs, true
	}
	if !sameDeletion(there.Spec.DeleteOption, want.Spec.DeleteOption) {
		after.Spec.DeleteOption, specChanged = want.Spec.DeleteOption, true
	}
	const written = names.AnnotationRenderedFrom
	if !specChanged && OrderOf(there) == "" && after.Annotations[written] == there.Annotations[written] {
		keepOrder(after, there) // See intact.
	}
	metaChanged := !maps.Equal(after.Labels, there.Labels) || !maps.Equal(after.Annotations, there.Annotations) ||
		!equality.Semantic.DeepEqual(after.OwnerReferences, there.OwnerReferences)
	return after, metaChanged || specChanged
}

// keepOrder leaves the note of the order as it is on a work, also where there is none: it is written with the record.
func keepOrder(after, there *workv1.ManifestWork) {
	delete(after.Annotations, names.AnnotationConfigOrder)
	if order, noted := there.Annotations[names.AnnotationConfigOrder]; noted {
		after.Annotations[names.AnnotationConfigOrder] = order
	}
}

// Adopted returns an existing work with the labels, annotations, owners and the spec of the desired one; what others
// added to its metadata stays.
func Adopted(want, there *workv1.ManifestWork) *workv1.ManifestWork {
	after := there.DeepCopy()
	after.Labels = reconcile.WithEntries(after.Labels, want.Labels)
	after.Annotations = reconcile.WithEntries(after.Annotations, want.Annotations)
	after.OwnerReferences = reconcile.WithOwners(after.OwnerReferences, want.OwnerReferences)
	after.Spec = want.Spec
	return after
}

func workload(manifests []Manifest) []workv1.Manifest {
	all := make([]workv1.Manifest, 0, len(manifests))
	for _, m := range manifests {
		all = append(all, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: m.Raw}})
	}
	return all
}

// sameManifests compares the manifests of a work with the desired ones by their digests.
func sameManifests(have []workv1.Manifest, want []Manifest) bool {
	if len(have) != len(want) {
		return false
	}
	for i := range have {
		if stored, err := Read(&have[i]); err != nil || stored.Sum != want[i].sum {
			return false
		}
	}
	return true
}

// defaulted returns manifest configs with the defaults that the API server sets.
func defaulted(options []workv1.ManifestConfigOption) []workv1.ManifestConfigOption {
	all := make([]workv1.ManifestConfigOption, 0, len(options))
	for i := range options {
		option := options[i].DeepCopy()
		if option.FeedbackScrapeType == "" {
			option.FeedbackScrapeType = workv1.FeedbackPollType
		}
		if strategy := option.UpdateStrategy; strategy != nil {
			if strategy.Type == "" {
				strategy.Type = workv1.UpdateStrategyTypeUpdate
			}
			if apply := strategy.ServerSideApply; apply != nil {
				defaultApply(apply)
			}
		}
		all = append(all, *option)
	}
	return all
}

func defaultApply(apply *workv1.ServerSideApplyConfig) {
	if apply.FieldManager == "" {
		apply.FieldManager = workv1.DefaultFieldManager
	}
	for i := range apply.IgnoreFields {
		if apply.IgnoreFields[i].Condition == "" {
			apply.IgnoreFields[i].Condition = workv1.IgnoreFieldsConditionOnSpokePresent
		}
	}
}
