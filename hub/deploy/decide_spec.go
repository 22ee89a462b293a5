package deploy

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/names"
)

// common is the part that all ManifestWorks of an add-on on a cluster share.
type common struct {
	hashes  string
	configs []workv1.ManifestConfigOption
	delete  *workv1.DeleteOption
}

func commonSpec(f facts) common {
	return common{
		hashes:  configHashes(f.rendering.Configs),
		configs: manifestConfigs(f.rendering, f.setup),
		delete:  deleteOption(f.rendering.Objects),
	}
}

// newWork returns the desired work for a slot.
func newWork(f facts, c common, s *slot) *workv1.ManifestWork {
	work := &workv1.ManifestWork{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       f.cluster.Name,
			Name:            workName(f.addOn.Name, s.index),
			Labels:          map[string]string{names.LabelAddonName: f.addOn.Name},
			OwnerReferences: []metav1.OwnerReference{ownerReference(f.addOn, true)},
		},
		Spec: workv1.ManifestWorkSpec{
			Workload:        workv1.ManifestsTemplate{Manifests: workload(s.manifests)},
			ManifestConfigs: c.configs,
			DeleteOption:    c.delete,
		},
	}
	if c.hashes != "" {
		work.Annotations = map[string]string{names.AnnotationConfigSpecHash: c.hashes}
	}
	return work
}

// changedWork returns the desired work and whether it differs from the existing one. Labels, annotations and owners of
// others stay; the spec is ours alone. Defaults of the API are no difference.
func changedWork(f facts, c common, s *slot) (*workv1.ManifestWork, bool) {
	want := newWork(f, c, s)
	there := s.there
	after := there.DeepCopy()
	after.Labels = withEntries(after.Labels, want.Labels)
	after.Annotations = withEntries(after.Annotations, want.Annotations)
	if c.hashes == "" {
		delete(after.Annotations, names.AnnotationConfigSpecHash)
	}
	after.OwnerReferences = withOwners(after.OwnerReferences, want.OwnerReferences)
	metaChanged := !maps.Equal(after.Labels, there.Labels) || !maps.Equal(after.Annotations, there.Annotations) ||
		!equality.Semantic.DeepEqual(after.OwnerReferences, there.OwnerReferences)

	specChanged := there.Spec.Executor != nil
	after.Spec.Executor = nil
	if !sameManifests(there.Spec.Workload.Manifests, want.Spec.Workload.Manifests) {
		after.Spec.Workload.Manifests, specChanged = want.Spec.Workload.Manifests, true
	}
	if !equality.Semantic.DeepEqual(defaulted(there.Spec.ManifestConfigs), defaulted(want.Spec.ManifestConfigs)) {
		after.Spec.ManifestConfigs, specChanged = want.Spec.ManifestConfigs, true
	}
	if !equality.Semantic.DeepEqual(there.Spec.DeleteOption, want.Spec.DeleteOption) {
		after.Spec.DeleteOption, specChanged = want.Spec.DeleteOption, true
	}
	return after, metaChanged || specChanged
}

func workload(manifests []manifest) []workv1.Manifest {
	all := make([]workv1.Manifest, 0, len(manifests))
	for _, m := range manifests {
		all = append(all, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: m.raw}})
	}
	return all
}

// sameManifests compares manifests as JSON; most often their bytes are equal already.
func sameManifests(have, want []workv1.Manifest) bool {
	return slices.EqualFunc(have, want, func(a, b workv1.Manifest) bool {
		if bytes.Equal(a.Raw, b.Raw) {
			return true
		}
		var left, right any
		return json.Unmarshal(a.Raw, &left) == nil && json.Unmarshal(b.Raw, &right) == nil &&
			equality.Semantic.DeepEqual(left, right)
	})
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

// configHashes returns the value of the annotation with the configurations that a work was rendered from: a JSON object
// of "<resource>[.<group>]/<namespace>/<name>" to spec hash (docs/reference/hub.md, "Works of an add-on"). Empty when
// there are none.
func configHashes(configs []addon.ChosenConfig) string {
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
