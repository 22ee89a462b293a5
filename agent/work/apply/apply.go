package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/agent/work/apply/content"
	"github.com/spokelet/spokelet/agent/work/apply/ssa"
	"github.com/spokelet/spokelet/agent/work/executor"
	"github.com/spokelet/spokelet/agent/work/feedback"
	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/spoke"
	"github.com/spokelet/spokelet/agent/work/watch"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// conflictRounds is how often an object is read again when another writer was faster.
const conflictRounds = 4

// Applier applies manifests.
type Applier struct {
	// Client sends the requests.
	Client spoke.Client
	// Feedback evaluates the rules.
	Feedback *feedback.Evaluator
}

// Pass holds the values that all steps of a pass over a work share.
type Pass struct {
	// Owner is the AppliedManifestWork.
	Owner metav1.OwnerReference
	// Session asks about the executor of the work; nil when there is none.
	Session *executor.Session
	// Now is the time of the pass.
	Now time.Time
}

// run is one step as it is carried out. Everything that changes meanwhile is here and nowhere else, hence its 11
// fields.
type run struct {
	*Applier
	Pass
	step *Step
	// trial sends writes as the executor first, without effect, where its API server judges the object by who writes it;
	// nil without an executor.
	trial *spoke.Client
	// denial and mode are those of the step, until the API server refuses a write of the executor; recheck is when the
	// decision about the executor is asked for again.
	denial  *Denial
	mode    watch.Mode
	recheck time.Time
	// readFirst reports that the object exists, whatever was known.
	readFirst bool
	// repairs is the rest of the limit of repairs, repaired what was done to an object that was in sync.
	repairs  watch.Limiter
	repaired string
	// config holds what is applied, once the strategy ServerSideApply has read the manifest.
	config *ssa.Configuration
}

// Apply carries out a step of a pass.
func (a *Applier) Apply(ctx context.Context, p Pass, s *Step) Result {
	state := &s.Known.State
	r := &run{Applier: a, Pass: p, step: s, denial: s.Denial, mode: s.Mode, repairs: state.Repairs}
	switch s.Action {
	case Invalid, Unserved:
		m := s.Manifest
		return Result{Err: m.Err, ReadErr: m.Err, Final: !m.Retriable() || m.Unserved()}
	case Forbidden:
		return r.forbidden()
	case Skip:
		return r.finish(of(state, s.Known.Drift, s.Frozen, r.id()))
	case Blocked, Frozen, Read, Create, Update, ServerSideApply:
	}
	if err := r.impersonate(); err != nil {
		r.deny(&Denial{Err: err, Final: manifest.IsRefusal(err)})
	}
	live, err := r.settle(ctx)
	var postponed postponedError
	if errors.As(err, &postponed) {
		res := of(state, s.Known.Drift, s.Frozen, r.id())
		res.Wake = postponed.until
		return r.finish(res)
	}
	var unreadable unreadableError
	if errors.As(err, &unreadable) && (!manifest.IsRefusal(unreadable.read) || manifest.AsFailure(err) == nil) {
		return r.finish(Result{Err: err, ReadErr: unreadable.read})
	}
	learned := r.state(ctx, live, err)
	res := of(&learned, watch.Unchanged, s.Frozen, r.id())
	res.State, res.Repaired = &learned, r.repaired
	if err != nil && res.Err == nil {
		res.Err = err
	}
	return r.finish(res)
}

// id identifies the object.
func (r *run) id() manifest.ID { return r.step.Manifest.ID() }

// object is the object of the step, and at the same as another client sees it.
func (r *run) object() spoke.Object { return r.at(r.Client) }

func (r *run) at(c spoke.Client) spoke.Object { return c.At(r.step.Manifest.Resource, r.id()) }

// request is the request for the desired state.
func (r *run) request() watch.Applied {
	return watch.Applied{Desired: r.step.Manifest.Desired, Owner: r.Owner.UID, Mode: r.mode}
}

// inSync reports whether the object was in sync before the step.
func (r *run) inSync() bool { return r.step.Known.InSync(r.request()) }

// forbidden is the result of a step whose object must not be read. What was known before a mere error stays known.
func (r *run) forbidden() Result {
	res := Result{ReadErr: r.denial.ReadErr}
	state := &r.step.Known.State
	if !r.denial.Final && !state.Requested.IsZero() {
		res = of(state, r.step.Known.Drift, r.step.Frozen, r.id())
	}
	res.Err, res.Final = r.denial.Err, r.denial.Final
	res.Wake = reconcile.Earliest(res.Wake, r.step.Wake)
	return res
}

// finish completes a result: the kind may have turned out to be gone, the executor may keep the manifest from being
// applied, and the step may be due again.
func (r *run) finish(res Result) Result {
	if reconcile.KindGone(res.Err) {
		gone := r.step.Manifest.Unserve()
		return Result{Err: gone.Err, ReadErr: gone.Err, Final: true, Unserved: true}
	}
	if r.denial != nil {
		res.Err, res.Final = r.denial.Err, r.denial.Final && (res.Final || res.ReadErr == nil)
	}
	res.Wake = reconcile.Earliest(res.Wake, r.step.Wake, r.recheck)
	return res
}

// state holds what is known of the object after the requests. live is nil when the object does not exist.
func (r *run) state(ctx context.Context, live *unstructured.Unstructured, err error) watch.State {
	before, m := &r.step.Known.State, r.step.Manifest
	after := watch.State{
		Observed: before.Observed, Requested: r.Now, Repairs: r.repairs, Reads: before.Reads, Bytes: before.Bytes,
	}
	failure := manifest.AsFailure(err)
	if failure != nil || err == nil {
		after.Applied, after.Feedback = r.request(), feedbackOf(m.Reads, nil)
	}
	after.Applied.Behind = r.step.Frozen && r.fallenBehind(live)
	if failure != nil {
		after.Failed = &watch.Failure{Cause: failure}
		if manifest.IsRefusal(err) {
			after.Failed.Since = r.Now
			if was := before.Failed; was != nil && !was.Since.IsZero() && r.step.Known.Answered(r.request()) {
				after.Failed.Since = was.Since
			}
		}
	}
	var unreadable unreadableError
	if errors.As(err, &unreadable) {
		after.ReadErr = unreadable.read
	}
	if live == nil {
		return after
	}
	after.Object = watch.ObjectOf(live)
	after.Object.Content = r.digest(live)
	ours, others := inventory.Owners(live, r.Owner.UID)
	after.Object.Sole = ours && !others
	if m.Reads != (manifest.Digest{}) {
		after.Feedback = r.evaluate(ctx, live, &after.Object)
	}
	return after
}

// digest digests the part of a live object whose change matters: under ServerSideApply what was applied. A read that
// found no more than a new status keeps the digest of before.
func (r *run) digest(live *unstructured.Unstructured) manifest.Digest {
	switch {
	case r.config != nil:
		return r.config.Digest(live)
	case r.step.Manifest.Options.Strategy.Type == workv1.UpdateStrategyTypeServerSideApply:
		return r.step.Known.State.Object.Content
	}
	return manifest.DigestOf(content.Of(live))
}

// evaluate evaluates the rules of the manifest on a live object, unless the object is the same as before.
func (r *run) evaluate(ctx context.Context, live *unstructured.Unstructured, object *watch.Object) *watch.Feedback {
	before, m := &r.step.Known.State, r.step.Manifest
	if before.Rules() == m.Reads && !before.Late() && before.Object.Exists && before.Object.UID == object.UID &&
		before.Object.Version == object.Version {
		return before.Feedback
	}
	f := &watch.Feedback{Rules: m.Reads}
	if len(m.Options.Feedback) > 0 {
		values, err := r.Feedback.Values(live, m.Options.Feedback)
		f.Values = values
		if err != nil {
			f.Err = err.Error()
		}
	}
	var results []feedback.RuleResult
	results, f.Cost = r.Feedback.Conditions(ctx, live, m.Options.Rules)
	for _, one := range results {
		f.Conditions = append(f.Conditions, metav1.Condition{
			Type: one.Condition, Status: one.Status, Reason: one.Reason, Message: one.Message,
		})
		f.Late = f.Late || one.Late
	}
	return f
}

// fallenBehind reports whether a frozen object does not have the desired state, as far as that is not known from the
// status.
func (r *run) fallenBehind(live *unstructured.Unstructured) bool {
	known := &r.step.Known
	was := known.State.Applied
	if known.Current || (was.Desired == r.step.Manifest.Desired && was.Mode == r.mode && known.State.Failed == nil) {
		return was.Behind
	}
	desired, err := r.step.Manifest.Object(r.step.Raw)
	return err != nil || live == nil || !content.Contains(content.Of(live), content.Of(desired))
}

// settle does what the step says and returns the object as it is then, nil when it does not exist. Along with an error
// the object is returned when it could be read.
func (r *run) settle(ctx context.Context) (*unstructured.Unstructured, error) {
	desired, err := r.step.Manifest.Object(r.step.Raw)
	if err != nil {
		return nil, unreadableError{read: err}
	}
	if r.step.StatusFirst {
		live, err := r.read(ctx, nil)
		if err != nil {
			return nil, err
		}
		if live != nil && r.step.Known.State.Object.SameButStatus(watch.EventOf(live)) {
			return live, nil
		}
	}
	if r.denial != nil {
		return r.read(ctx, r.denial.Err)
	}
	switch r.step.Action {
	case Update:
		return r.update(ctx, desired)
	case Create:
		return r.createOnly(ctx, desired)
	case ServerSideApply:
		return r.serverSideApply(ctx, desired)
	case Read:
		return r.readOnly(ctx)
	case Blocked, Frozen, Forbidden, Invalid, Unserved, Skip:
	}
	return r.read(ctx, nil)
}

// read reads the object; because is the error to return with it.
func (r *run) read(ctx context.Context, because error) (*unstructured.Unstructured, error) {
	live, err := r.object().Get(ctx)
	if err != nil {
		return nil, unreadableError{because: because, read: err}
	}
	return live, because
}

// createFirst reports whether the object is more likely absent than present.
func (r *run) createFirst() bool {
	known := &r.step.Known
	return !r.readFirst && (known.Drift == watch.Deleted || (!known.Listed && !known.State.Object.Exists))
}

// find creates the object or, when it exists already, reads it. created reports which.
func (r *run) find(ctx context.Context, desired *unstructured.Unstructured,
) (live *unstructured.Unstructured, created bool, err error) {
	if !r.createFirst() {
		if live, err = r.read(ctx, nil); err != nil || live != nil {
			return live, false, err
		}
	}
	if err := r.allowRepair(); err != nil {
		return nil, false, err
	}
	live, refusal := r.create(ctx, r.forCreate(desired))
	if refusal == nil {
		r.report(ctx, doneCreated)
		return live, true, nil
	}
	refusal = fmt.Errorf("creating %s: %w", r.id(), refusal)
	if r.denial != nil {
		live, err = r.read(ctx, refusal)
		return live, false, err
	}
	// Whatever the refusal, the object may exist: a Service that exists is refused for its ports.
	live, err = r.object().Get(ctx)
	switch {
	case err != nil && isAlreadyExists(refusal):
		return nil, false, unreadableError{read: err}
	case err != nil:
		return nil, false, unreadableError{because: refusal, read: err}
	case live == nil:
		return nil, false, refusal
	}
	return live, false, nil
}

// What was done to an object.
const (
	doneCreated = "created"
	doneUpdated = "updated"
	doneApplied = "applied"
)

// Repairs returns all that Result.Repaired may say.
func Repairs() []string { return []string{doneCreated, doneUpdated, doneApplied} }

// report logs a write: a repair of an object that was in sync is worth a line, the rest is routine.
func (r *run) report(ctx context.Context, done string) {
	logger := log.FromContext(ctx)
	if r.inSync() {
		r.repaired = done
		logger.Info("repaired what was changed on the spoke", "object", r.id().String(), "action", done)
		return
	}
	logger.V(1).Info(done, "object", r.id().String())
}

// allowRepair takes one repair from the limit when the object was in sync and was changed, and returns the instant of
// the next one when there is none left.
func (r *run) allowRepair() error {
	if !r.inSync() {
		return nil
	}
	left, until, ok := r.repairs.Spend(r.Now)
	if !ok {
		return postponedError{until: until}
	}
	r.repairs = left
	return nil
}
