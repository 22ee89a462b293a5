package storm

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

const (
	// hand is the field manager of what is done by hand.
	hand = "hand"
	// handPatience is how long a hand waits for the object that it wants to edit.
	handPatience = 500 * time.Millisecond
	// leavePatience is how long an edit waits for the agent to have done its part.
	leavePatience = 10 * time.Second
	// requestTimeout bounds one request.
	requestTimeout = 10 * time.Second
)

// perform does one edit on the real hub and cluster.
func (s *storm) perform(ctx context.Context, e *Edit) error {
	for i := range e.leaves {
		s.awaitLeave(ctx, e, &e.leaves[i])
	}
	switch e.Action {
	case putWorks:
		for i := range e.writes {
			if err := s.writeWork(ctx, &e.writes[i]); err != nil {
				return err
			}
		}
		return nil
	case deleteWork, forgetWork, clearStatus, stripWork:
		return s.editWork(ctx, e)
	case emptyRecord:
		s.emptyRecord(ctx, e)
		return nil
	case wrongRecord, stripRecord, deleteRecord, vanishRecord:
		return s.editRecord(ctx, e)
	case gadgetsOn, gadgetsOff:
		return s.turnGadgets(ctx, e.Action == gadgetsOn)
	case killAgent, cutLink, downHub, downSpoke:
		return s.takeAway(ctx, e)
	case putObject:
		return s.putByHand(ctx, e)
	case release:
		return s.liftFinalizer(ctx, e.thing)
	case breakManifest:
		return s.breakManifest(ctx, e)
	case loseNamespace:
		return s.loseNamespace(ctx, e)
	case setValue, addValue, dropLabel, deleteObject, stripOwners, hold:
	}
	return s.byHand(ctx, e)
}

// until repeats what may fail because a server is away or another writer was faster, until it works. What can never
// work ends it.
func (s *storm) until(ctx context.Context, what string, try func(context.Context) error) error {
	var never error
	err := fleet.Wait(ctx, what, nil, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		err := try(ctx)
		if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
			never = fmt.Errorf("waiting for %s: %w", what, err)
			return nil
		}
		return err
	})
	return errors.Join(never, err)
}

// writeWork makes a work as it is to be.
func (s *storm) writeWork(ctx context.Context, w *writing) error {
	return s.until(ctx, "the work "+w.name+" to be written", func(ctx context.Context) error {
		live := &workv1.ManifestWork{}
		err := s.hub.Get(ctx, types.NamespacedName{Namespace: clusterName, Name: w.name}, live)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil && !live.DeletionTimestamp.IsZero() {
			return fleet.NotYet("its predecessor is still there: %v", live.Status.Conditions)
		}
		live.Namespace, live.Name, live.Spec = clusterName, w.name, w.spec
		live.Labels = map[string]string{"storm": w.label}
		if w.label == "" {
			live.Labels = nil
		}
		if err != nil {
			return s.hub.Create(ctx, live)
		}
		return s.hub.Update(ctx, live)
	})
}

// editWork deletes a work or changes what belongs to the agent.
func (s *storm) editWork(ctx context.Context, e *Edit) error {
	return s.until(ctx, "the work "+e.Work+" to be edited", func(ctx context.Context) error {
		live := &workv1.ManifestWork{}
		if err := s.hub.Get(ctx, types.NamespacedName{Namespace: clusterName, Name: e.Work}, live); err != nil {
			return client.IgnoreNotFound(err)
		}
		before := live.DeepCopy()
		if e.Action == clearStatus {
			live.Status = workv1.ManifestWorkStatus{}
			return s.hub.Status().Patch(ctx, live, client.MergeFrom(before))
		}
		if e.Action == stripWork {
			live.Finalizers = nil
			return s.hub.Patch(ctx, live, client.MergeFrom(before))
		}
		if live.DeletionTimestamp.IsZero() {
			if err := s.hub.Delete(ctx, live); err != nil || e.Action == deleteWork {
				return client.IgnoreNotFound(err)
			}
		}
		if e.Action == deleteWork {
			return nil
		}
		if len(live.Finalizers) > 0 {
			live.Finalizers = nil
			err := s.hub.Patch(ctx, live, client.MergeFrom(before))
			if client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		return fleet.NotYet("it is still there")
	})
}

// editRecord changes an applied record by hand.
func (s *storm) editRecord(ctx context.Context, e *Edit) error {
	return s.until(ctx, "the applied record of "+e.Work+" to be edited", func(ctx context.Context) error {
		live, err := s.record(ctx, e.Work)
		if err != nil {
			return err
		}
		if live == nil {
			s.report.Missed++
			return nil
		}
		before := live.DeepCopy()
		if e.Action == wrongRecord {
			wrongSpec(&live.Spec, e.value)
		} else if e.Action != deleteRecord {
			live.Finalizers = nil
		}
		if err := s.spoke.Patch(ctx, live, client.MergeFrom(before)); err != nil {
			return err
		}
		if e.Action == wrongRecord || e.Action == stripRecord {
			return nil
		}
		return client.IgnoreNotFound(s.spoke.Delete(ctx, live))
	})
}

// wrongSpec spoils one field of the spec of an applied record.
func wrongSpec(spec *workv1.AppliedManifestWorkSpec, field string) {
	switch field {
	case "hubHash":
		spec.HubHash = "elsewhere"
	case "agentID":
		spec.AgentID = "somebody"
	default:
		spec.ManifestWorkName = "other"
	}
}

// record reads the applied record of a work; nil without error means that it has none.
func (s *storm) record(ctx context.Context, work string) (*workv1.AppliedManifestWork, error) {
	live := &workv1.AppliedManifestWork{}
	err := s.spoke.Get(ctx, types.NamespacedName{Name: s.hubHash() + "-" + work}, live)
	if apierrors.IsNotFound(err) {
		return nil, nil // absence is an answer here
	}
	return live, err
}

// turnGadgets installs or removes the definition of gadgets.
func (s *storm) turnGadgets(ctx context.Context, install bool) error {
	of := s.objects.Resource(definition.resource())
	_, _, resource := gadget.names()
	name := resource + "." + domain
	return s.until(ctx, "the definition of gadgets", func(ctx context.Context) error {
		if !install {
			return client.IgnoreNotFound(of.Delete(ctx, name, metav1.DeleteOptions{}))
		}
		live, err := of.Get(ctx, name, metav1.GetOptions{})
		switch {
		case client.IgnoreNotFound(err) != nil:
			return err
		case err == nil && live.GetDeletionTimestamp() == nil:
			return nil
		case err == nil:
			return fleet.NotYet("the old one is going")
		}
		object := &unstructured.Unstructured{Object: definitionOf(gadget)}
		object.SetGroupVersionKind(definition.gvk())
		object.SetName(name)
		_, err = of.Create(ctx, object, metav1.CreateOptions{FieldManager: hand})
		return err
	})
}

// putByHand makes an object that works only read, or changes it.
func (s *storm) putByHand(ctx context.Context, e *Edit) error {
	t := e.thing
	raw, err := json.Marshal(e.manifest)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", t, err)
	}
	return s.until(ctx, t.String()+" to be written", func(ctx context.Context) error {
		_, err := s.objects.Resource(t.kind.resource()).Namespace(t.namespace).Patch(ctx, t.name, types.ApplyPatchType,
			raw, metav1.PatchOptions{FieldManager: hand})
		return err
	})
}

// liftFinalizer takes the foreign finalizer from an object, if it is there.
func (s *storm) liftFinalizer(ctx context.Context, t *thing) error {
	return s.until(ctx, t.String()+" to be let go", func(ctx context.Context) error {
		live, err := s.get(ctx, t)
		if err != nil || live == nil || !slices.Contains(live.GetFinalizers(), finalizer) {
			return err
		}
		_, err = s.patch(ctx, t, map[string]any{"metadata": map[string]any{
			"resourceVersion": live.GetResourceVersion(),
			"finalizers":      slices.DeleteFunc(live.GetFinalizers(), func(name string) bool { return name == finalizer }),
		}})
		return client.IgnoreNotFound(err)
	})
}

// patch merges a value into an object by hand.
func (s *storm) patch(ctx context.Context, t *thing, value map[string]any) (*unstructured.Unstructured, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encoding a patch of %s: %w", t, err)
	}
	return s.objects.Resource(t.kind.resource()).Namespace(t.namespace).Patch(ctx, t.name, types.MergePatchType, raw,
		metav1.PatchOptions{FieldManager: hand})
}

// byHand edits an object that exists, or soon will.
func (s *storm) byHand(ctx context.Context, e *Edit) error {
	t := e.thing
	began := time.Now()
	return s.until(ctx, t.String()+" to be edited", func(ctx context.Context) error {
		live, err := s.get(ctx, t)
		if err != nil {
			return err
		}
		if live == nil {
			if time.Since(began) > handPatience || t.byHand {
				s.report.Missed++
				return nil
			}
			return fleet.NotYet("it does not exist")
		}
		switch e.Action {
		case deleteObject:
			err = s.objects.Resource(t.kind.resource()).Namespace(t.namespace).Delete(ctx, t.name, metav1.DeleteOptions{})
			return client.IgnoreNotFound(err)
		case stripOwners:
			_, err = s.patch(ctx, t, map[string]any{"metadata": map[string]any{"ownerReferences": nil}})
		case dropLabel:
			_, err = s.patch(ctx, t, map[string]any{"metadata": map[string]any{"labels": map[string]any{labelSteady: nil}}})
		case hold:
			if live.GetDeletionTimestamp() != nil {
				s.report.Missed++
				return nil // it may not have new finalizers any more
			}
			_, err = s.patch(ctx, t, map[string]any{"metadata": map[string]any{
				"resourceVersion": live.GetResourceVersion(), "finalizers": append(live.GetFinalizers(), finalizer),
			}})
		default:
			return s.setByHand(ctx, e)
		}
		if apierrors.IsNotFound(err) {
			return nil // it was there a moment ago
		}
		return err
	})
}

// setByHand sets or adds a value, and tells the model when it must stay.
func (s *storm) setByHand(ctx context.Context, e *Edit) error {
	t, key := e.thing, e.Note
	if e.Action == addValue {
		key = handKey(t)
	}
	stays := t.keepable(key) && s.settled(ctx, t)
	written, err := s.patch(ctx, t, t.handPatch(key, e.value))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	delete(t.keeps, key)
	if stays {
		t.keeps[key] = keep{uid: string(written.GetUID()), value: fieldsOf(t, written)[key]}
	}
	return nil
}

// keepable reports whether a value that a hand sets may stay, by the strategy of the object.
func (t *thing) keepable(key string) bool {
	switch t.strategy {
	case workv1.UpdateStrategyTypeCreateOnly:
		return true
	case workv1.UpdateStrategyTypeServerSideApply:
		return key == handKey(t) || (t.ignores && key == "s1")
	case workv1.UpdateStrategyTypeUpdate, workv1.UpdateStrategyTypeReadOnly:
	}
	return false
}

// handPatch is the merge patch that sets a value.
func (t *thing) handPatch(key, value string) map[string]any {
	const rbac = "rbac.authorization.k8s.io"
	switch t.kind {
	case secret:
		return map[string]any{"data": map[string]any{key: base64.StdEncoding.EncodeToString([]byte(value))}}
	case widget, gadget:
		return map[string]any{"spec": map[string]any{key: value}}
	case role, clusterRole:
		return map[string]any{"rules": []any{map[string]any{
			"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"get"}, "resourceNames": []any{value},
		}}}
	case roleBinding:
		return map[string]any{"subjects": []any{map[string]any{"apiGroup": rbac, "kind": "User", "name": value}}}
	case deployment:
		if key == handKey(t) {
			number, _ := strconv.Atoi(value[len(hand):])
			return map[string]any{"spec": map[string]any{"minReadySeconds": number%100 + 1}}
		}
		return map[string]any{"spec": map[string]any{"template": t.deploymentSpec(value)["template"]}}
	case configMap, serviceAccount, namespace, definition:
	}
	return map[string]any{"data": map[string]any{key: value}}
}

// settled reports whether the agent has done what every work which has the object says.
func (s *storm) settled(ctx context.Context, t *thing) bool {
	for _, w := range s.model.holders(t) {
		live := &workv1.ManifestWork{}
		if s.hub.Get(ctx, types.NamespacedName{Namespace: clusterName, Name: w.name}, live) != nil {
			return false
		}
		applied := meta.FindStatusCondition(live.Status.Conditions, workv1.WorkApplied)
		if applied == nil || applied.Status != metav1.ConditionTrue || applied.ObservedGeneration != live.Generation {
			return false
		}
	}
	return true
}

// awaitLeave waits until the agent has done its part about an object that is about to leave its last work, and tells
// the model when it could not wait that long.
func (s *storm) awaitLeave(ctx context.Context, e *Edit, l *leaving) {
	within := leavePatience
	if l.held {
		within = handPatience
	}
	short, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err := fleet.Wait(short, l.thing.String(), nil, func(ctx context.Context) error { return s.ready(ctx, e, l) })
	if err == nil {
		return
	}
	s.report.Doubts++
	fmt.Fprintf(s.Log, "             in doubt: %v\n", err)
	s.model.Doubt(l.thing)
}
