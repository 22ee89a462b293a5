package work

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/agent/work/apply/content"
	"github.com/spokelet/spokelet/agent/work/apply/merge"
	"github.com/spokelet/spokelet/agent/work/apply/ssa"
	"github.com/spokelet/spokelet/agent/work/feedback"
)

const (
	// conflictRounds is how often an object is read again when another writer was faster.
	conflictRounds = 4
	// feedbackPause is the least time between two reads of an object that only changed its status.
	feedbackPause = 250 * time.Millisecond
	// recheckPause is how long an object that cannot be watched is believed to be as it was, at least.
	recheckPause = 5 * time.Minute
	// firstRetry is how long after its first refusal by the API server a manifest is tried again.
	firstRetry = 100 * time.Millisecond
)

// task is one manifest to apply, with all that is known of its object.
type task struct {
	*manifest
	raw   []byte
	owner metav1.OwnerReference
	prior record
	heard news
	// expected tells that the object should exist: it is listed with its UID.
	expected bool
	// current tells that the status of the work says that the manifest was applied in this generation.
	current bool
	// frozen tells that the manifest is complete and must not be applied again.
	frozen bool
	// offline tells that the manifest is that of a copy, by which nothing may be deleted.
	offline bool
	// vanished tells that the API server turned out not to serve the kind any more.
	vanished bool
	// repaired says what was done to an object that was right before and had been changed; empty when nothing was.
	repaired string
	// denied says that the executor of the work lacks permissions.
	denied *denial
	// escalationChecked means that the executor has the permissions that the manifest grants.
	escalationChecked bool
	// trial is set when the object hands out rights in the name of an executor, which then tries each write first.
	trial *trial
	// mayDelete asks whether the executor of the work may delete the object, for a task whose verbs lack that; the error
	// says why it may not. It is nil when there is nothing to ask.
	mayDelete func(context.Context) error
	// recheck is when an object that cannot be watched, or the rights of the executor, are looked at again.
	recheck time.Time
	now     time.Time
	// configuration is what is applied, once the strategy ServerSideApply has read the manifest.
	configuration *ssa.Configuration
}

// presence says what is known of the existence of an object.
type presence int

const (
	presenceUnknown presence = iota
	presenceAbsent
	presencePresent
)

// result is what became of one manifest.
type result struct {
	// err says why the manifest is not applied; nil when it is.
	err error
	// lasting tells that trying again is of no use before the manifest or the object changes.
	lasting bool
	// presence, uid and readErr describe the object.
	presence presence
	uid      string
	readErr  error
	// values and valuesErr are the feedback, rulings the answers to condition rules.
	values    []workv1.FeedbackValue
	valuesErr string
	rulings   []feedback.RuleResult
	// behind tells that the object was frozen before this generation of the manifest could be applied.
	behind bool
	// wake is when the manifest wants another look; zero when it does not.
	wake time.Time
}

// applier applies manifests.
type applier struct {
	spoke     spoke
	evaluator *feedback.Evaluator
}

// holds reports whether the record of the task holds without any request.
func (t *task) holds() bool { return t.answered() && t.prior.reads == t.reads && t.heard == newsNone }

// answered reports whether the record is about this very manifest: it was applied, or failed for good.
func (t *task) answered() bool { return t.prior.wish == t.wish && t.prior.owner == t.owner.UID }

// granted reports whether the object was as this very manifest wants when it was last looked at.
func (t *task) granted() bool { return t.answered() && t.prior.failure == nil }

// writes reports whether applying the manifest may make an object.
func (t *task) writes() bool {
	if t.denied != nil {
		return false
	}
	switch t.option.strategy.Type {
	case workv1.UpdateStrategyTypeUpdate, workv1.UpdateStrategyTypeCreateOnly, workv1.UpdateStrategyTypeServerSideApply:
		return !t.frozen
	case workv1.UpdateStrategyTypeReadOnly:
	}
	return false
}

// apply brings one object to what its manifest wants. It returns the record to note, or false when there is nothing
// new to note.
func (a *applier) apply(ctx context.Context, t *task) (result, record, bool) {
	if t.holds() {
		return recorded(t), record{}, false
	}
	if t.heard == newsStatus && t.granted() {
		if ready := t.prior.checked.Add(t.prior.pause()); t.now.Before(ready) {
			res := recorded(t)
			res.wake = ready
			return res, record{}, false
		}
	}
	if t.heard == newsChanged && t.answered() {
		left, until, ok := t.prior.looks.spend(t.now)
		if !ok {
			res := recorded(t)
			res.wake = until
			return res, record{}, false
		}
		t.prior.looks = left
	}
	live, err := a.settle(ctx, t)
	var postponed postponedError
	if errors.As(err, &postponed) {
		res := recorded(t)
		res.wake = postponed.until
		return res, record{}, false
	}
	var unreadable unreadableError
	if errors.As(err, &unreadable) && (!isRefusal(unreadable.read) || lastingFailure(err) == nil) {
		return result{err: err, presence: presenceUnknown, readErr: unreadable.read}, record{}, false
	}
	t.prior, t.heard = a.record(ctx, t, live, err), newsNone
	res := recorded(t)
	if err != nil && res.err == nil {
		res.err = err
	}
	return res, t.prior, true
}

// recorded is the result that the record of the task stands for.
func recorded(t *task) result {
	res := result{presence: presenceAbsent}
	if t.prior.exists && t.heard != newsGone {
		res = result{
			presence: presencePresent, uid: string(t.prior.uid),
			values: t.prior.values, valuesErr: t.prior.valuesErr, rulings: t.prior.rulings,
		}
	}
	res.behind = t.frozen && t.prior.behind && t.prior.unread == nil
	if t.prior.failure != nil {
		res.err, res.lasting, res.wake = t.prior.failure, true, t.retryAt()
	}
	if t.prior.unread != nil {
		res.presence, res.readErr = presenceUnknown, t.prior.unread
	}
	return res
}

// record is what is remembered of an object after a request. live is nil when the object does not exist.
func (a *applier) record(ctx context.Context, t *task, live *unstructured.Unstructured, err error) record {
	rec := record{base: t.prior.base, checked: t.now, repairs: t.prior.repairs, looks: t.prior.looks}
	rec.behind = t.frozen && t.fallenBehind(live)
	if rec.failure = lastingFailure(err); rec.failure != nil || err == nil {
		rec.wish, rec.owner, rec.reads = t.wish, t.owner.UID, t.reads
	}
	if isRefusal(err) {
		rec.refused = t.now
		if t.answered() && !t.prior.refused.IsZero() {
			rec.refused = t.prior.refused
		}
	}
	var unreadable unreadableError
	if errors.As(err, &unreadable) {
		rec.unread = unreadable.read
	}
	if live == nil {
		return rec
	}
	rec.exists = true
	rec.version, rec.uid, rec.generation = live.GetResourceVersion(), live.GetUID(), live.GetGeneration()
	rec.meta = fingerprint(live)
	rec.content = t.contentDigest(live)
	ours, others := owners(live, t.owner.UID)
	rec.sole = ours && !others
	a.readForHub(ctx, t, live, &rec)
	return rec
}

// settle does what the strategy of the manifest says and returns the object as it is then, nil when it does not exist.
// Along with an error the object is returned when it could be read.
func (a *applier) settle(ctx context.Context, t *task) (*unstructured.Unstructured, error) {
	desired, err := t.desired()
	if err != nil {
		return nil, unreadableError{read: err}
	}
	if t.granted() && (t.heard == newsStatus || t.heard == newsNone) {
		live, err := a.spoke.get(ctx, t.resource, t.id())
		if err != nil {
			return nil, unreadableError{read: err}
		}
		if live != nil {
			now := sightingOf(live)
			if statusOnly(&t.prior, &now) {
				return live, nil
			}
		}
	}
	if t.denied != nil {
		return a.read(ctx, t, t.denied.err)
	}
	if t.frozen {
		return a.read(ctx, t, nil)
	}
	switch t.option.strategy.Type {
	case workv1.UpdateStrategyTypeUpdate:
		return a.update(ctx, t, desired)
	case workv1.UpdateStrategyTypeCreateOnly:
		return a.createOnly(ctx, t, desired)
	case workv1.UpdateStrategyTypeServerSideApply:
		return a.serverSideApply(ctx, t, desired)
	case workv1.UpdateStrategyTypeReadOnly:
		return a.readOnly(ctx, t)
	}
	return a.read(ctx, t, &failure{reason: workv1.AppliedManifestFailed, message: fmt.Sprintf(
		"the update strategy %q is unknown; use Update, CreateOnly, ServerSideApply or ReadOnly",
		t.option.strategy.Type)})
}

// desired decodes the manifest as the object to send.
func (t *task) desired() (*unstructured.Unstructured, error) {
	object, err := decodeObject(t.raw)
	if err != nil {
		return nil, fmt.Errorf("the manifest cannot be decoded: %w", err)
	}
	unstructured.RemoveNestedField(object.Object, "metadata", "uid")
	unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	if !t.namespaced {
		unstructured.RemoveNestedField(object.Object, "metadata", "namespace")
	}
	return object, nil
}

// read only looks at the object; because is the error to return with it.
func (a *applier) read(ctx context.Context, t *task, because error) (*unstructured.Unstructured, error) {
	live, err := a.spoke.get(ctx, t.resource, t.id())
	if err != nil {
		return nil, unreadableError{because: because, read: err}
	}
	return live, because
}

// createFirst reports whether the object is more likely absent than present.
func (t *task) createFirst() bool {
	return t.heard == newsGone || (!t.expected && !t.prior.exists)
}

// find creates the object or, when it exists already, reads it. made tells which.
func (a *applier) find(ctx context.Context, t *task, desired *unstructured.Unstructured,
) (live *unstructured.Unstructured, made bool, err error) {
	if !t.createFirst() {
		live, err = a.spoke.get(ctx, t.resource, t.id())
		if err != nil {
			return nil, false, unreadableError{read: err}
		}
		if live != nil {
			return live, false, nil
		}
	}
	if err := t.allowRepair(); err != nil {
		return nil, false, err
	}
	live, refusal := a.create(ctx, t, merge.ForCreate(desired, t.owner, t.owned))
	if refusal == nil {
		t.tell(ctx, "created")
		return live, true, nil
	}
	refusal = fmt.Errorf("creating %s: %w", t.id(), refusal)
	if t.denied != nil {
		live, err = a.read(ctx, t, refusal)
		return live, false, err
	}
	// Whatever the refusal says, the object may be there: a Service that exists is refused for its ports.
	live, err = a.spoke.get(ctx, t.resource, t.id())
	switch {
	case err != nil && apierrors.IsAlreadyExists(refusal):
		return nil, false, unreadableError{read: err}
	case err != nil:
		return nil, false, unreadableError{because: refusal, read: err}
	case live == nil:
		return nil, false, refusal
	}
	return live, false, nil
}

// tell logs a write: a repair of an object that was right before is worth a line, the rest is routine.
func (t *task) tell(ctx context.Context, what string) {
	logger := log.FromContext(ctx)
	if t.granted() {
		t.repaired = what
		logger.Info("repaired what was changed on the spoke", "object", t.id().String(), "action", what)
		return
	}
	logger.V(1).Info(what, "object", t.id().String())
}

// allowRepair takes one repair when the object was right before and was disturbed, and says when to come back when
// there is none left.
func (t *task) allowRepair() error {
	if !t.granted() {
		return nil
	}
	left, until, ok := t.prior.repairs.spend(t.now)
	if !ok {
		return postponedError{until: until}
	}
	t.prior.repairs = left
	return nil
}

// contentDigest digests what of a live object would be missed if it changed. Under ServerSideApply that is what was
// applied; a look that found no more than a new status leaves what was known.
func (t *task) contentDigest(live *unstructured.Unstructured) digest {
	switch {
	case t.configuration != nil:
		return digest(t.configuration.Digest(live))
	case t.option.strategy.Type == workv1.UpdateStrategyTypeServerSideApply:
		return t.prior.content
	}
	return digestOf(content.Of(live))
}
