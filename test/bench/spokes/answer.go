package spokes

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/feedback"
	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/status"
	"github.com/spokelet/spokelet/agent/work/watch"
	"github.com/spokelet/spokelet/internal/names"
)

// Outcome says what becomes of a work on its cluster.
type Outcome int

const (
	// Healthy means that all objects are applied, and that all pods are ready and all Jobs complete.
	Healthy Outcome = iota
	// Unready means that all objects are applied, and that no pod is ready and no Job complete.
	Unready
	// Refused means that the cluster refuses the objects.
	Refused
	// Silent means that nobody answers.
	Silent
)

// Answer holds what an agent writes to a work; the zero value is nothing.
type Answer struct {
	// Finalizers are the finalizers to write; they count only with Finalize.
	Finalizers []string
	Finalize   bool
	// Status is the status to write after that; nil for none.
	Status *workv1.ManifestWorkStatus
}

// Empty reports whether there is nothing to write.
func (a Answer) Empty() bool { return !a.Finalize && a.Status == nil }

// Responder computes what an agent answers. Several goroutines may use it.
type Responder struct {
	mapper    meta.RESTMapper
	evaluator *feedback.Evaluator
}

// NewResponder returns a Responder.
func NewResponder() *Responder {
	return &Responder{
		mapper:    guessing{testrestmapper.TestOnlyStaticRESTMapper(clientgoscheme.Scheme)},
		evaluator: feedback.New(false, feedback.DefaultMaxRawLength),
	}
}

// Answer returns what the agent of the cluster writes to a work at an instant. It answers once: the answer to a work
// that carries the answer is empty.
func (r *Responder) Answer(ctx context.Context, work *workv1.ManifestWork, outcome Outcome, now time.Time) Answer {
	mine := slices.Index(work.Finalizers, names.FinalizerManifestWork)
	switch {
	case outcome == Silent:
		return Answer{}
	case !work.DeletionTimestamp.IsZero() && mine < 0:
		return Answer{}
	case !work.DeletionTimestamp.IsZero():
		return Answer{Finalize: true, Finalizers: slices.Delete(slices.Clone(work.Finalizers), mine, mine+1)}
	}
	var a Answer
	if mine < 0 {
		a.Finalize, a.Finalizers = true, append(slices.Clone(work.Finalizers), names.FinalizerManifestWork)
	}
	concluded := r.status(ctx, work, outcome, now)
	if !equality.Semantic.DeepEqual(concluded, work.Status) {
		a.Status = &concluded
	}
	return a
}

// Reported reports whether the status of a work says how its present generation does.
func Reported(work *workv1.ManifestWork) bool {
	for _, kind := range []string{workv1.WorkApplied, workv1.WorkAvailable} {
		c := meta.FindStatusCondition(work.Status.Conditions, kind)
		if c == nil || c.ObservedGeneration != work.Generation {
			return false
		}
	}
	return true
}

// status computes the status of a work.
func (r *Responder) status(
	ctx context.Context, work *workv1.ManifestWork, outcome Outcome, now time.Time,
) workv1.ManifestWorkStatus {
	usable := func(gvk schema.GroupVersionKind, rules []workv1.ConditionRule) ([]workv1.ConditionRule, []string) {
		return feedback.UsableRules(gvk, rules, status.Reserved()...)
	}
	manifests := make([]manifest.Manifest, len(work.Spec.Workload.Manifests))
	for i := range manifests {
		manifests[i] = manifest.Parse(i, work.Spec.Workload.Manifests[i].Raw)
		if manifests[i].Err == nil {
			manifests[i].Resolve(r.mapper, &work.Spec, usable)
		}
	}
	manifest.RefuseDuplicates(manifests)
	objects := make([]status.Object, len(manifests))
	for i := range manifests {
		objects[i] = r.object(ctx, &manifests[i], work.Spec.Workload.Manifests[i].Raw, outcome)
	}
	return status.Conclude(work, manifests, objects, now)
}

// object returns what a pass of the agent learned about the object of one manifest.
func (r *Responder) object(ctx context.Context, m *manifest.Manifest, raw []byte, outcome Outcome) status.Object {
	switch {
	case m.Err != nil:
		return status.Object{Err: m.Err, Presence: manifest.Absent}
	case outcome == Refused:
		return status.Object{Err: errors.New("the simulated cluster refuses it"), Presence: manifest.Absent}
	}
	present := status.Object{Presence: manifest.Present}
	if len(m.Options.Feedback) == 0 && len(m.Options.Rules) == 0 {
		return present
	}
	object, err := m.Object(raw)
	if err != nil {
		return status.Object{Err: err, Presence: manifest.Absent}
	}
	live(object, outcome == Healthy)
	present.Feedback = &watch.Feedback{Rules: m.Reads}
	if present.Feedback.Values, err = r.evaluator.Values(object, m.Options.Feedback); err != nil {
		present.Feedback.Err = err.Error()
	}
	results, _ := r.evaluator.Conditions(ctx, object, m.Options.Rules)
	for _, one := range results {
		present.Feedback.Conditions = append(present.Feedback.Conditions, metav1.Condition{
			Type: one.Condition, Status: one.Status, Reason: one.Reason, Message: one.Message,
		})
	}
	return present
}

// guessing maps kinds that Kubernetes does not have by a guess, as if their definitions were there.
type guessing struct{ meta.RESTMapper }

// RESTMapping implements meta.RESTMapper.
func (g guessing) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := g.RESTMapper.RESTMapping(gk, versions...)
	if err == nil || len(versions) == 0 {
		return mapping, err
	}
	gvk := gk.WithVersion(versions[0])
	resource, _ := meta.UnsafeGuessKindToResource(gvk)
	return &meta.RESTMapping{Resource: resource, GroupVersionKind: gvk, Scope: scopeOf(gk)}, nil
}

// scopeOf guesses the scope of a kind that is not in the scheme.
func scopeOf(gk schema.GroupKind) meta.RESTScope {
	if gk == (schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}) {
		return meta.RESTScopeRoot
	}
	return meta.RESTScopeNamespace
}

// On returns a judgement with one outcome for the works of some clusters, or of all when none is named, of which a
// manifest contains a text, and Healthy for all others. A text such as the image of a revision chooses the revision.
func On(outcome Outcome, containing string, clusters ...string) func(*workv1.ManifestWork) Outcome {
	return func(work *workv1.ManifestWork) Outcome {
		if len(clusters) > 0 && !slices.Contains(clusters, work.Namespace) {
			return Healthy
		}
		for i := range work.Spec.Workload.Manifests {
			if bytes.Contains(work.Spec.Workload.Manifests[i].Raw, []byte(containing)) {
				return outcome
			}
		}
		return Healthy
	}
}
