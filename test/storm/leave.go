package storm

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// ready reports whether an object may leave its last work with a result that does not depend on timing: one that must
// go belongs to the work, one that must stay belongs to none and is not going already.
func (s *storm) ready(ctx context.Context, e *Edit, l *leaving) error {
	live, err := s.get(ctx, l.thing)
	if err != nil {
		return err
	}
	if l.left {
		if live != nil && live.GetDeletionTimestamp() == nil {
			return fleet.NotYet("it is not going")
		}
		return nil
	}
	if e.Action == forgetWork {
		record, err := s.record(ctx, l.work)
		if err != nil {
			return err
		}
		if record != nil && (record.Spec.AgentID != s.hubHash() || record.Spec.ManifestWorkName != l.work) {
			return fleet.NotYet("the record of %s is not repaired", l.work)
		}
	}
	if l.goes {
		return s.readyToGo(ctx, live, l)
	}
	return s.readyToStay(ctx, live, l)
}

// readyToGo reports whether an object is known to belong to the work.
func (s *storm) readyToGo(ctx context.Context, live *unstructured.Unstructured, l *leaving) error {
	if live == nil {
		return nil
	}
	record, err := s.record(ctx, l.work)
	if err != nil {
		return err
	}
	if record == nil {
		return fleet.NotYet("%s has no record", l.work)
	}
	if !owns(record.UID, live) {
		return fleet.NotYet("it does not belong to %s", l.work)
	}
	if !lists(record, l.thing) {
		return fleet.NotYet("the record of %s does not list it", l.work)
	}
	return nil
}

// readyToStay reports whether an object belongs to nobody, and nothing is about to delete it.
func (s *storm) readyToStay(ctx context.Context, live *unstructured.Unstructured, l *leaving) error {
	switch {
	case live == nil:
		return fleet.NotYet("it does not exist")
	case live.GetDeletionTimestamp() != nil:
		return fleet.NotYet("it is going")
	case !l.owned && len(live.GetOwnerReferences()) > 0:
		return fleet.NotYet("it has owners")
	}
	records := map[types.UID]bool{}
	for _, name := range l.works {
		record, err := s.record(ctx, name)
		if err != nil {
			return err
		}
		if record == nil || record.DeletionTimestamp != nil {
			return fleet.NotYet("the record of %s is going", name)
		}
		records[record.UID] = true
	}
	if l.owned && !known(live.GetOwnerReferences(), records) {
		return fleet.NotYet("it has owners that went")
	}
	if l.parent == nil {
		return nil
	}
	parent, err := s.get(ctx, l.parent)
	switch {
	case err != nil:
		return err
	case parent == nil || parent.GetDeletionTimestamp() != nil || !known(parent.GetOwnerReferences(), records):
		return fleet.NotYet("%s is going", l.parent)
	}
	return nil
}

// owns reports whether an owner is among those of an object.
func owns(owner types.UID, live *unstructured.Unstructured) bool {
	return slices.ContainsFunc(live.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner })
}

// known reports whether all owners are known.
func known(refs []metav1.OwnerReference, records map[types.UID]bool) bool {
	return !slices.ContainsFunc(refs, func(r metav1.OwnerReference) bool { return !records[r.UID] })
}
