package apply

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/agent/work/executor"
	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/watch"
)

// Action says what is done about one manifest.
type Action string

const (
	// Skip sends nothing: the state of the object says all that is needed.
	Skip Action = "Skip"
	// Invalid sends nothing: the manifest cannot be applied.
	Invalid Action = "Invalid"
	// Unserved sends nothing: the API server does not serve the kind.
	Unserved Action = "Unserved"
	// Forbidden sends nothing: the executor must not even read the object, or that is unknown.
	Forbidden Action = "Forbidden"
	// Blocked reads the object: the executor may not apply the manifest, or that is unknown.
	Blocked Action = "Blocked"
	// Frozen reads the object: its manifest is complete.
	Frozen Action = "Frozen"
	// Read reads the object and removes our owner reference (strategy ReadOnly).
	Read Action = "Read"
	// Create creates the object if it does not exist (strategy CreateOnly).
	Create Action = "Create"
	// Update creates the object, merges the manifest into it or recreates it (strategy Update).
	Update Action = "Update"
	// ServerSideApply applies the manifest as a configuration (strategy ServerSideApply).
	ServerSideApply Action = "ServerSideApply"
)

// Asks reports whether the action sends requests.
func (a Action) Asks() bool { return a == Blocked || a == Frozen || a == Read || a.Writes() }

// Writes reports whether the action may create an object.
func (a Action) Writes() bool { return a == Create || a == Update || a == ServerSideApply }

// Step is the decision about one manifest. It is never changed.
type Step struct {
	// Manifest and Raw are the manifest and its bytes.
	Manifest *manifest.Manifest
	Raw      []byte
	// Action says what is done, and Reason why, in words.
	Action Action
	Reason string
	// StatusFirst reads the object before the action, and does nothing more if at most its status changed.
	StatusFirst bool
	// Mode is how the manifest is handled.
	Mode watch.Mode
	// Known holds what is known of the object.
	Known Known
	// Frozen reports that the manifest is complete. An object that is in sync keeps the mode in which it was written.
	Frozen bool
	// Denial is why the executor of the work keeps the manifest from being applied; nil when it does not.
	Denial *Denial
	// Question holds what the executor of the work needs; nil without an executor.
	Question *executor.Question
	// Wake is when the step is decided again without an event; zero means never.
	Wake time.Time
}

// Denial is why a manifest is not applied, or its object not read.
type Denial struct {
	// Err is why the manifest is not applied; nil when it is complete and only reading is at stake.
	Err error
	// ReadErr is why the object is not read; nil when it may be.
	ReadErr error
	// Final reports that this is a definite answer, and not an error that a retry may cure.
	Final bool
}

// DenialOf tells what a decision about the executor means for a manifest; nil when it is allowed.
func DenialOf(d executor.Decision, frozen bool) *Denial {
	if d.Verdict == executor.Denied && frozen {
		d.Err = nil // the manifest is applied already
	}
	switch {
	case d.Err == nil && d.ReadErr == nil:
		return nil
	case d.Verdict == executor.Denied:
		return &Denial{Err: permanent(d.Err), ReadErr: permanent(d.ReadErr), Final: true}
	}
	return &Denial{Err: d.Err, ReadErr: d.ReadErr, Final: d.ReadErr == nil && manifest.IsRefusal(d.Err)}
}

// permanent is a definite answer as a permanent failure; nil stays nil.
func permanent(err error) error {
	if err == nil {
		return nil
	}
	return manifest.Failed(err.Error())
}

// Known holds what is known of the object of a manifest before a step.
type Known struct {
	// State and Drift are those of the watch.
	State watch.State
	Drift watch.Drift
	// Listed reports that the object is in the list of applied resources, so that it should exist.
	Listed bool
	// Current reports that, by the status of the work, the manifest was applied in this generation.
	Current bool
	// Offline reports that the manifest is that of a copy, for which nothing is deleted.
	Offline bool
}

// InSync reports whether the object had the desired state when it was last read or written, by a request of the same
// kind.
func (k *Known) InSync(request watch.Applied) bool {
	return k.Answered(request) && k.State.Failed == nil
}

// Answered reports whether the last request was the same: it succeeded or failed for good.
func (k *Known) Answered(request watch.Applied) bool { return k.State.Applied.Is(request) }

// Result holds what became of one manifest.
type Result struct {
	// Err is why the manifest is not applied; nil when it is.
	Err error
	// Final reports that a retry is of no use before the manifest or the object changes.
	Final bool
	// Presence is whether the object exists, UID its UID then, and ReadErr why that is unknown.
	Presence manifest.Presence
	UID      string
	ReadErr  error
	// Feedback holds what the rules read from the object; nil when there is none.
	Feedback *watch.Feedback
	// Behind reports that the object was frozen before this generation of the manifest could be applied.
	Behind bool
	// Unserved reports that the API server turned out not to serve the kind any more.
	Unserved bool
	// Repaired holds what was done to an object that was in sync and had been changed; empty when nothing was.
	Repaired string
	// Wake is when the manifest is looked at again without an event; zero means never.
	Wake time.Time
	// State is the new state of the object; nil when nothing was learned.
	State *watch.State
}

// unreadableError means that it is unknown whether the object exists.
type unreadableError struct {
	// because is why the manifest is not applied, when that is something else than read.
	because error
	// read is why the object could not be read.
	read error
}

// Error prefers the reason for which the manifest is not applied.
func (e unreadableError) Error() string { return e.Unwrap().Error() }

// Unwrap returns the reason for which the manifest is not applied.
func (e unreadableError) Unwrap() error {
	if e.because != nil {
		return e.because
	}
	return e.read
}

// postponedError means that the object is repaired later, because it was repaired too often.
type postponedError struct{ until time.Time }

// Error is the instant.
func (e postponedError) Error() string { return "postponed until " + e.until.Format(time.RFC3339) }

// of is the result that a state stands for.
func of(state *watch.State, drift watch.Drift, frozen bool, id manifest.ID) Result {
	res := Result{Presence: manifest.Absent}
	if state.Object.Exists && drift != watch.Deleted {
		res = Result{Presence: manifest.Present, UID: string(state.Object.UID), Feedback: state.Feedback}
	}
	res.Behind = frozen && state.Applied.Behind && state.ReadErr == nil
	if state.Failed != nil {
		res.Err, res.Final = state.Failed.Cause, true
	}
	res.Wake = state.RetryAt(id)
	if state.ReadErr != nil {
		res.Presence, res.ReadErr = manifest.Unknown, state.ReadErr
	}
	return res
}

// Panicked is the result of a step in which the agent failed. It is tried again when the manifest or the object
// changes, and after a pause. What is known of the object stays known, and one of which nothing is known is not absent.
func Panicked(p Pass, s *Step, err error) Result {
	failure, id := manifest.AsFailure(err), s.Manifest.ID()
	known := s.Known.State
	if known.Requested.IsZero() {
		known.Requested = p.Now
		return Result{
			Err: failure, Final: true, Presence: manifest.Unknown, ReadErr: failure, Wake: known.RecheckAt(id),
		}
	}
	known.Applied = s.request(p.Owner)
	known.Failed, known.Requested = &watch.Failure{Cause: failure}, p.Now
	known.Feedback = feedbackOf(s.Manifest.Reads, known.Feedback)
	res := of(&known, s.Known.Drift, s.Frozen, id)
	res.State = &known
	return res
}

// request is the request for the desired state that the step stands for.
func (s *Step) request(owner metav1.OwnerReference) watch.Applied {
	return watch.Applied{Desired: s.Manifest.Desired, Owner: owner.UID, Mode: s.Mode}
}

// feedbackOf is earlier feedback as that of rules, nil when there are no rules.
func feedbackOf(rules manifest.Digest, earlier *watch.Feedback) *watch.Feedback {
	if rules == (manifest.Digest{}) {
		return nil
	}
	f := watch.Feedback{}
	if earlier != nil {
		f = *earlier
	}
	f.Rules = rules
	return &f
}
