package inventory

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/spoke"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Writer reads and writes AppliedManifestWorks; nothing else writes them. Each method returns the object as it is after
// its request, which is the one that it got when nothing had to be written.
type Writer struct {
	// Client reads from the cache of the spoke, and Live from its API server.
	Client client.Client
	Live   client.Reader
	// Objects deletes.
	Objects spoke.Client
	// HubHash is the identity of the hub, AgentID that of the agent.
	HubHash, AgentID string
}

// Name is the name of the AppliedManifestWork of a work.
func (w *Writer) Name(work string) string { return Name(w.HubHash, work) }

// Work is the name of the work to which an AppliedManifestWork belongs by its name, false when that is of another hub.
// Its spec names the work, too, and may have been edited.
func (w *Writer) Work(applied *workv1.AppliedManifestWork) (string, bool) {
	return strings.CutPrefix(applied.Name, w.Name(""))
}

// Spec is the spec of the AppliedManifestWork of a work.
func (w *Writer) Spec(work string) workv1.AppliedManifestWorkSpec {
	return workv1.AppliedManifestWorkSpec{HubHash: w.HubHash, AgentID: w.AgentID, ManifestWorkName: work}
}

// Read returns an AppliedManifestWork; nil without error means that it does not exist.
func Read(ctx context.Context, c client.Reader, name string) (*workv1.AppliedManifestWork, error) {
	applied := &workv1.AppliedManifestWork{}
	err := c.Get(ctx, types.NamespacedName{Name: name}, applied)
	switch {
	case reconcile.ObjectGone(err):
		return nil, nil // absence is an answer here
	case err != nil:
		return nil, fmt.Errorf("reading the AppliedManifestWork %s: %w", name, err)
	}
	return applied, nil
}

// Create creates the AppliedManifestWork of a work, with the objects as its intent. One that exists already, because
// the cache did not have it, is prepared instead; created reports which. Unless that one records the work that the
// cache of the hub has, both caches may be behind, and nothing is written.
func (w *Writer) Create(ctx context.Context, work *workv1.ManifestWork, objects []workv1.AppliedManifestResourceMeta,
) (applied *workv1.AppliedManifestWork, created bool, err error) {
	name := w.Name(work.Name)
	if wrong := nameFailure(work.Name, name); wrong != nil {
		return nil, false, wrong
	}
	applied = &workv1.AppliedManifestWork{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{names.FinalizerAppliedManifestWork}},
		Spec:       w.Spec(work.Name),
	}
	copyLabels(applied, work.Labels)
	SetGeneration(applied, work)
	intent, _ := widen(objects, applied)
	setIntent(applied, intent)
	err = w.Client.Create(ctx, applied)
	if apierrors.IsAlreadyExists(err) {
		live, readErr := Read(ctx, w.Live, name)
		if readErr != nil {
			return nil, false, readErr
		}
		if live != nil && (!IsRecorded(live) || Outdated(live, work) != "") {
			return nil, false, reconcile.Behind(workv1.GroupName, "appliedmanifestworks", name)
		}
		if live != nil && live.DeletionTimestamp.IsZero() {
			applied, err = w.Prepare(ctx, live, work, objects)
			return applied, false, err
		}
	}
	if err != nil {
		return nil, false, fmt.Errorf("creating the AppliedManifestWork: %w", err)
	}
	return applied, true, nil
}

// Prepare restores the spec, the labels and the finalizer of the AppliedManifestWork and adds the objects to its
// intent. A write for the intent records the generation of the work, too.
func (w *Writer) Prepare(ctx context.Context, applied *workv1.AppliedManifestWork, work *workv1.ManifestWork,
	objects []workv1.AppliedManifestResourceMeta,
) (*workv1.AppliedManifestWork, error) {
	after, wider := w.prepared(applied, work, objects)
	if wider {
		SetGeneration(after, work)
	}
	return w.patch(ctx, applied, after, "preparing the AppliedManifestWork")
}

// Keep is Prepare for a pass that only keeps what was applied: the generation that is recorded stays.
func (w *Writer) Keep(ctx context.Context, applied *workv1.AppliedManifestWork, work *workv1.ManifestWork,
	objects []workv1.AppliedManifestResourceMeta,
) (*workv1.AppliedManifestWork, error) {
	after, _ := w.prepared(applied, work, objects)
	return w.patch(ctx, applied, after, "preparing the AppliedManifestWork")
}

// prepared returns the AppliedManifestWork as it should be, and whether its intent is wider than before.
func (w *Writer) prepared(applied *workv1.AppliedManifestWork, work *workv1.ManifestWork,
	objects []workv1.AppliedManifestResourceMeta,
) (*workv1.AppliedManifestWork, bool) {
	after := applied.DeepCopy()
	after.Spec = w.Spec(work.Name)
	copyLabels(after, work.Labels)
	addFinalizer(after)
	intent, wider := widen(objects, applied)
	if wider {
		setIntent(after, intent)
	}
	return after, wider
}

// Publish writes the list of applied resources.
func (w *Writer) Publish(ctx context.Context, applied *workv1.AppliedManifestWork,
	list []workv1.AppliedManifestResourceMeta,
) (*workv1.AppliedManifestWork, error) {
	if equality.Semantic.DeepEqual(applied.Status.AppliedResources, list) {
		return applied, nil
	}
	after := applied.DeepCopy()
	after.Status.AppliedResources = list
	if err := reconcile.PutStatus(ctx, w.Client, after); err != nil {
		return applied, fmt.Errorf("recording the applied resources: %w", err)
	}
	return after, nil
}

// Narrow removes from the intent the objects that are neither wanted any more nor pending.
func (w *Writer) Narrow(ctx context.Context, applied *workv1.AppliedManifestWork, manifests []manifest.Manifest,
	pending []workv1.AppliedManifestResourceMeta,
) (*workv1.AppliedManifestWork, error) {
	intent, narrower := narrow(manifests, applied, pending)
	if !narrower {
		return applied, nil
	}
	after := applied.DeepCopy()
	setIntent(after, intent)
	return w.patch(ctx, applied, after, "narrowing the intent of the AppliedManifestWork")
}

// RecordGeneration writes the generation of a work that was applied, unless it stands there: new works have it from
// the beginning, and works with new objects from the write that lists those.
func (w *Writer) RecordGeneration(ctx context.Context, applied *workv1.AppliedManifestWork, work *workv1.ManifestWork,
) (*workv1.AppliedManifestWork, error) {
	after := applied.DeepCopy()
	if !SetGeneration(after, work) {
		return applied, nil
	}
	return w.patch(ctx, applied, after, "writing the generation into the AppliedManifestWork "+applied.Name)
}

// SetEvictionStart writes when the grace period of an AppliedManifestWork without a work began; nil means that it does
// not run.
func (w *Writer) SetEvictionStart(ctx context.Context, applied *workv1.AppliedManifestWork, start *metav1.Time,
) (*workv1.AppliedManifestWork, error) {
	if applied.Status.EvictionStartTime.Equal(start) {
		return applied, nil
	}
	after := applied.DeepCopy()
	after.Status.EvictionStartTime = start
	if err := reconcile.PutStatus(ctx, w.Client, after); err != nil {
		return applied, fmt.Errorf("marking the eviction: %w", err)
	}
	return after, nil
}

// AddFinalizer puts our finalizer on an AppliedManifestWork, so that its deletion waits for its objects.
func (w *Writer) AddFinalizer(ctx context.Context, applied *workv1.AppliedManifestWork,
) (*workv1.AppliedManifestWork, error) {
	after := applied.DeepCopy()
	addFinalizer(after)
	return w.patch(ctx, applied, after, "repairing the AppliedManifestWork")
}

// Delete deletes the AppliedManifestWork. It returns the object with its deletion timestamp, nil when it is gone, and
// the object as it was when the answer does not say.
func (w *Writer) Delete(ctx context.Context, applied *workv1.AppliedManifestWork,
) (*workv1.AppliedManifestWork, error) {
	answer, err := w.Objects.At(Resource(), manifest.ID{Name: applied.Name}).Delete(ctx, applied.UID, "")
	if reconcile.ObjectGone(err) || (err == nil && answer.Gone) {
		return nil, nil // absence is an answer here
	}
	if err != nil {
		return applied, fmt.Errorf("deleting the AppliedManifestWork %s: %w", applied.Name, err)
	}
	live := &workv1.AppliedManifestWork{}
	if json.Unmarshal(answer.Body, live) == nil && live.UID == applied.UID && !live.DeletionTimestamp.IsZero() {
		return live, nil
	}
	return applied, nil
}

// Finalize removes our finalizer from the AppliedManifestWork, whose objects are gone. It returns nil when the
// AppliedManifestWork is gone with it.
func (w *Writer) Finalize(ctx context.Context, applied *workv1.AppliedManifestWork,
) (*workv1.AppliedManifestWork, error) {
	after := withoutFinalizer(applied)
	_, err := reconcile.PatchMain(ctx, w.Client, applied, after)
	switch {
	case reconcile.ObjectGone(err):
		return nil, nil // absence is an answer here
	case err != nil:
		return applied, fmt.Errorf("releasing the AppliedManifestWork %s: %w", applied.Name, err)
	case len(after.Finalizers) == 0:
		return nil, nil // absence is an answer here
	}
	return after, nil
}

// LastFinalizer reports whether the AppliedManifestWork goes as soon as our finalizer is removed.
func LastFinalizer(applied *workv1.AppliedManifestWork) bool {
	return len(withoutFinalizer(applied).Finalizers) == 0
}

// withoutFinalizer is a copy of an AppliedManifestWork without our finalizer.
func withoutFinalizer(applied *workv1.AppliedManifestWork) *workv1.AppliedManifestWork {
	after := applied.DeepCopy()
	after.Finalizers = slices.DeleteFunc(after.Finalizers, func(name string) bool {
		return name == names.FinalizerAppliedManifestWork
	})
	return after
}

// addFinalizer adds our finalizer.
func addFinalizer(applied *workv1.AppliedManifestWork) {
	if !slices.Contains(applied.Finalizers, names.FinalizerAppliedManifestWork) {
		applied.Finalizers = append(applied.Finalizers, names.FinalizerAppliedManifestWork)
	}
}

// patch writes the difference between two copies, if there is one.
func (w *Writer) patch(ctx context.Context, before, after *workv1.AppliedManifestWork, doing string,
) (*workv1.AppliedManifestWork, error) {
	written, err := reconcile.PatchMain(ctx, w.Client, before, after)
	switch {
	case err != nil:
		return before, fmt.Errorf("%s: %w", doing, err)
	case !written:
		return before, nil
	}
	return after, nil
}
