package policies

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopyObject implements runtime.Object.
func (p *AddOnPolicy) DeepCopyObject() runtime.Object { return p.DeepCopy() }

// DeepCopy returns a copy that shares no memory.
func (p *AddOnPolicy) DeepCopy() *AddOnPolicy {
	out := *p
	p.DeepCopyInto(&out.ObjectMeta)
	if p.Spec.Paused != nil {
		paused := *p.Spec.Paused
		out.Spec.Paused = &paused
	}
	out.Spec.Approved = slices.Clone(p.Spec.Approved)
	if p.Spec.OnFailure != nil {
		onFailure := *p.Spec.OnFailure
		out.Spec.OnFailure = &onFailure
	}
	out.Spec.Undo, out.Spec.Retry = slices.Clone(p.Spec.Undo), slices.Clone(p.Spec.Retry)
	out.Spec.DependsOn = slices.Clone(p.Spec.DependsOn)
	out.Status.Unused = slices.Clone(p.Status.Unused)
	out.Status.Contents = slices.Clone(p.Status.Contents)
	for i := range out.Status.Contents {
		out.Status.Contents[i].Configurations = slices.Clone(out.Status.Contents[i].Configurations)
	}
	out.Status.Placements, out.Status.Undone = copyPlacements(p.Status.Placements), copyUndone(p.Status.Undone)
	return &out
}

// DeepCopyObject implements runtime.Object.
func (l *AddOnPolicyList) DeepCopyObject() runtime.Object {
	out := *l
	l.DeepCopyInto(&out.ListMeta)
	out.Items = slices.Clone(l.Items)
	for i := range out.Items {
		out.Items[i] = *l.Items[i].DeepCopy()
	}
	return &out
}

// DeepCopyObject implements runtime.Object.
func (w *MaintenanceWindow) DeepCopyObject() runtime.Object { return w.DeepCopy() }

// DeepCopy returns a copy that shares no memory.
func (w *MaintenanceWindow) DeepCopy() *MaintenanceWindow {
	out := *w
	w.DeepCopyInto(&out.ObjectMeta)
	out.Spec.ClusterSelector = *w.Spec.ClusterSelector.DeepCopy()
	out.Spec.AddOns = slices.Clone(w.Spec.AddOns)
	out.Spec.Until = copyTime(w.Spec.Until)
	out.Status.NextStart = copyTime(w.Status.NextStart)
	return &out
}

func copyTime(t *metav1.Time) *metav1.Time {
	if t == nil {
		return nil
	}
	out := *t
	return &out
}

// DeepCopyObject implements runtime.Object.
func (l *MaintenanceWindowList) DeepCopyObject() runtime.Object {
	out := *l
	l.DeepCopyInto(&out.ListMeta)
	out.Items = slices.Clone(l.Items)
	for i := range out.Items {
		out.Items[i] = *l.Items[i].DeepCopy()
	}
	return &out
}
