package works

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/intern"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Stored is a manifest of an existing ManifestWork, as far as it is needed.
type Stored struct {
	About
	// Sum is the SHA-256 of the canonical JSON.
	Sum [sha256.Size]byte
}

// About holds what the manifests of an add-on on all clusters mostly have in common.
type About struct {
	Identity
	// Replicas is spec.replicas; -1 when it is not set.
	Replicas int64
	// Terms are the terms of a pre-delete hook; nil for every other object.
	Terms *Terms
}

// digest stands for a manifest in a cached ManifestWork. As it is in the field that is never decoded, no manifest can
// pretend to be one. Digests share what they are about.
type digest struct {
	about *About
	sum   [sha256.Size]byte
}

// stored returns the manifest that a digest stands for.
func (d *digest) stored() Stored { return Stored{*d.about, d.sum} }

// GetObjectKind implements runtime.Object.
func (*digest) GetObjectKind() schema.ObjectKind { return &metav1.TypeMeta{} }

// DeepCopyObject implements runtime.Object. A digest never changes, so that copies may share it.
func (d *digest) DeepCopyObject() runtime.Object { return d }

// MarshalJSON lets copies of a work be compared. The API server refuses it as a manifest, which must have a kind.
func (d *digest) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(map[string]string{"digest": hex.EncodeToString(d.sum[:])})
	if err != nil {
		return nil, fmt.Errorf("encoding the digest of %s: %w", d.about.Identity, err)
	}
	return text, nil
}

// Trim returns a cache transformation that replaces each manifest of a ManifestWork by a digest: the identity of the
// object, the SHA-256 of its canonical JSON and the few fields that decisions read. It drops managed fields and what
// nobody reads of the status as well, and shares strings. Such a work must be written by patches of what changed only;
// the API server refuses digests. Other objects pass.
func Trim(shared *intern.Table) func(in any) (any, error) {
	return func(in any) (any, error) {
		work, isWork := in.(*workv1.ManifestWork)
		if !isWork {
			return in, nil
		}
		work.SetManagedFields(nil)
		shared.Meta(work)
		work.Spec.Workload.Manifests = intern.Clip(work.Spec.Workload.Manifests)
		for i := range work.Spec.Workload.Manifests {
			digestOf(shared, work.Name, &work.Spec.Workload.Manifests[i])
		}
		trimOptions(&work.Spec)
		work.Spec.ManifestConfigs = intern.List(shared, "configs of "+work.Name, work.Spec.ManifestConfigs, nil)
		work.Status.Conditions = intern.Clip(work.Status.Conditions)
		trimStatus(shared, work)
		shared.Conditions(work.Status.Conditions)
		return work, nil
	}
}

// digestOf replaces a manifest of a work by its digest. One that cannot be read stays.
func digestOf(shared *intern.Table, work string, m *workv1.Manifest) {
	if _, isDigest := m.Object.(*digest); isDigest {
		return
	}
	if stored, err := Read(m); err == nil {
		about := intern.List(shared, work+" has "+stored.Kind+" "+stored.Name, []About{stored.About}, nil)
		m.Raw, m.Object = nil, &digest{&about[0], stored.Sum}
	}
}

// trimStatus drops what is reported of objects that are applied and feed nothing back, and the conditions of those that
// are well. It bounds the rest, which an agent writes. Of a work that is not applied as a whole, it keeps which objects
// are, after all others and without words.
func trimStatus(shared *intern.Table, work *workv1.ManifestWork) {
	status := &work.Status.ResourceStatus
	var room bounds
	room.conditions(work.Status.Conditions)
	partly := meta.IsStatusConditionFalse(work.Status.Conditions, workv1.WorkApplied)
	var kept, applied []workv1.ManifestCondition
	for _, m := range status.Manifests {
		is := meta.FindStatusCondition(m.Conditions, workv1.ManifestApplied)
		m.Conditions = nil
		switch {
		case is == nil:
		case is.Status != metav1.ConditionTrue:
			m.Conditions = []metav1.Condition{*is}
		case partly:
			m.Conditions = []metav1.Condition{{Type: is.Type, Status: is.Status, ObservedGeneration: is.ObservedGeneration}}
			if len(m.StatusFeedbacks.Values) == 0 {
				applied = append(applied, m)
				continue
			}
		}
		if len(m.Conditions) == 0 && len(m.StatusFeedbacks.Values) == 0 {
			continue
		}
		if room.manifest(&m) {
			kept = append(kept, m)
		}
	}
	for i := range applied {
		if room.manifest(&applied[i]) {
			kept = append(kept, applied[i])
		}
	}
	status.Manifests = intern.List(shared, "status of "+work.Name, kept, prepareStatus(shared))
}

// prepareStatus returns a function that shares the strings of the status of manifests.
func prepareStatus(shared *intern.Table) func([]workv1.ManifestCondition) {
	return func(status []workv1.ManifestCondition) {
		for i := range status {
			m := &status[i]
			shared.Conditions(m.Conditions)
			about := &m.ResourceMeta
			shared.Strings(&about.Group, &about.Version, &about.Kind, &about.Resource, &about.Namespace, &about.Name)
			m.StatusFeedbacks.Values = intern.Clip(m.StatusFeedbacks.Values)
			for j := range m.StatusFeedbacks.Values {
				shared.Strings(&m.StatusFeedbacks.Values[j].Name)
			}
		}
	}
}

// NeedsWhole reports whether a step writes the manifests of a work, and has only the digests of some.
func NeedsWhole(s Step) bool {
	if s.Verb != reconcile.Patch || len(s.After.Spec.Workload.Manifests) == len(s.Before.Spec.Workload.Manifests) {
		return false
	}
	return slices.ContainsFunc(s.After.Spec.Workload.Manifests, func(m workv1.Manifest) bool {
		_, isDigest := m.Object.(*digest)
		return isDigest
	})
}

// Whole replaces the digests in the work that a step writes by the manifests of the work that the API server has. It
// reports whether this is the work from which the step was planned.
func Whole(s Step, live *workv1.ManifestWork) bool {
	if live.UID != s.Before.UID || live.ResourceVersion != s.Before.ResourceVersion {
		return false
	}
	raw := map[[sha256.Size]byte]workv1.Manifest{}
	for _, m := range live.Spec.Workload.Manifests {
		if stored, err := Read(&m); err == nil {
			raw[stored.Sum] = m
		}
	}
	all := s.After.Spec.Workload.Manifests
	for i := range all {
		d, isDigest := all[i].Object.(*digest)
		if !isDigest {
			continue
		}
		m, found := raw[d.sum]
		if !found {
			return false
		}
		all[i] = m
	}
	return true
}

// Read reads a manifest of a ManifestWork, or its digest.
func Read(m *workv1.Manifest) (Stored, error) {
	if d, isDigest := m.Object.(*digest); isDigest {
		return d.stored(), nil
	}
	raw, err := rawOf(m)
	if err != nil {
		return Stored{}, err
	}
	s, err := describe(raw)
	if err != nil {
		return Stored{}, err
	}
	s.Sum, err = canonicalSum(raw)
	return s, err
}

// Glance reads a manifest without its Sum, which is most of the work.
func Glance(m *workv1.Manifest) (Stored, error) {
	if d, isDigest := m.Object.(*digest); isDigest {
		return d.stored(), nil
	}
	raw, err := rawOf(m)
	if err != nil {
		return Stored{}, err
	}
	return describe(raw)
}

// rawOf returns the JSON of a manifest.
func rawOf(m *workv1.Manifest) ([]byte, error) {
	if m.Raw != nil || m.Object == nil {
		return m.Raw, nil
	}
	raw, err := json.Marshal(m.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding a manifest: %w", err)
	}
	return raw, nil
}

// describe reads all of a manifest but its Sum.
func describe(raw []byte) (Stored, error) {
	var object struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Namespace   string            `json:"namespace"`
			Name        string            `json:"name"`
			Annotations map[string]string `json:"annotations"`
			Labels      map[string]string `json:"labels"`
		} `json:"metadata"`
		Spec json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return Stored{}, fmt.Errorf("decoding a manifest: %w", err)
	}
	version, err := schema.ParseGroupVersion(object.APIVersion)
	if err != nil || object.Kind == "" {
		return Stored{}, errors.New("decoding a manifest: it has no apiVersion and kind")
	}
	about := object.Metadata
	s := Stored{About: About{
		Identity: Identity{version.Group, object.Kind, about.Namespace, about.Name}, Replicas: -1,
	}}
	if isHook(s.Kind, about.Annotations, about.Labels) {
		s.Terms = termsOf(about.Annotations)
	}
	var spec struct {
		Replicas *int64 `json:"replicas"`
	}
	if json.Unmarshal(object.Spec, &spec) == nil && spec.Replicas != nil {
		s.Replicas = *spec.Replicas
	}
	return s, nil
}

// canonicalSum returns the SHA-256 of the canonical form of JSON: sorted keys, no spaces, numbers as they are.
func canonicalSum(raw []byte) ([sha256.Size]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("decoding a manifest: %w", err)
	}
	canonical, err := json.Marshal(value)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("encoding a manifest: %w", err)
	}
	return sha256.Sum256(canonical), nil
}

// ReadAll reads the manifests of a work; those that cannot be read are left out.
func ReadAll(work *workv1.ManifestWork) []Stored {
	all := make([]Stored, 0, len(work.Spec.Workload.Manifests))
	for i := range work.Spec.Workload.Manifests {
		if s, err := Read(&work.Spec.Workload.Manifests[i]); err == nil {
			all = append(all, s)
		}
	}
	return all
}
