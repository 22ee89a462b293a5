package executor

import (
	"fmt"
	"strings"
	"time"

	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/internal/pause"
	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	// deniedRetry is when a denied question is asked again unless a change of RBAC is seen before (docs/reference/work.md,
	// "Executors").
	deniedRetry = time.Minute
	// allowedTTL is how long a cached "allowed" is valid: only changes of RBAC can be watched, other authorizers cannot.
	allowedTTL = 5 * time.Minute
	// allowedSpread spreads the reviews of "allowed" while RBAC cannot be watched.
	allowedSpread = 0.5
	// authorizerLag is how long after a change of RBAC a review may still return the old answer: the authorizer of the
	// API server learns of changes by a watch, as the agent does. A question that was asked within that time is asked
	// again, the first time after firstReview.
	authorizerLag, firstReview = 2 * time.Second, 250 * time.Millisecond
)

// Verdict is the kind of a decision.
type Verdict string

const (
	// Allowed means that the executor may do all that was asked.
	Allowed Verdict = "Allowed"
	// Denied means that the API server said no to at least one verb, or that the object grants permissions that the
	// executor does not have.
	Denied Verdict = "Denied"
	// Unknown means that the API server did not answer.
	Unknown Verdict = "Unknown"
)

// Decision is the answer to one question.
type Decision struct {
	// Verdict is the kind of the decision; it is never empty.
	Verdict Verdict
	// Lacks are the verbs that were denied, in the order of the question.
	Lacks []string
	// Err is why the manifest must not be applied; nil when the verdict is Allowed.
	Err error
	// ReadErr is why the object must not even be read; nil when it may be.
	ReadErr error
	// EscalationChecked reports whether a manifest that grants permissions passed the escalation check.
	EscalationChecked bool
	// Recheck is when to ask again without a change of RBAC; zero means never.
	Recheck time.Time

	// reviewed is when the question was asked; changed is the last change of RBAC before that, zero when there was none.
	reviewed, changed time.Time
	// unanswered reports whether the API server did not answer whether the object may be read: the next pass asks again.
	unanswered bool
}

// review is the result of one SubjectAccessReview.
type review struct {
	verb    string
	allowed bool
	err     error
}

// decide makes a decision of the reviews of a question. A denied verb counts even when another review failed; without
// a denied verb a failed review makes the decision Unknown.
func decide(who ServiceAccount, q Question, reviews []review, now time.Time) Decision {
	d := Decision{Verdict: Allowed, reviewed: now}
	var failed error
	for _, r := range reviews {
		switch {
		case r.err != nil:
			failed = r.err
		case !r.allowed:
			d.Lacks = append(d.Lacks, r.verb)
		}
		if r.verb == string(VerbsRead) {
			d.ReadErr, d.unanswered = readError(who, q, r), r.err != nil
		}
	}
	switch {
	case q.recordsRequester():
		d.Verdict, d.Lacks = Denied, nil
		d.Err = deniedError(q.Object, "", "the API server would issue the certificate to the agent, which sends the "+
			"request, and not to "+who.String())
	case len(d.Lacks) > 0:
		d.Verdict = Denied
		d.Err = deniedError(q.Object, "", fmt.Sprintf("%s lacks %s", who, strings.Join(d.Lacks, ", ")))
	case failed != nil:
		return Decision{Verdict: Unknown, Err: failed, ReadErr: failed}
	}
	return d
}

// readError returns why the object must not be read, after the review of the verb get; nil when it may be.
func readError(who ServiceAccount, q Question, r review) error {
	switch {
	case r.err != nil:
		return r.err
	case !r.allowed:
		return fmt.Errorf("%s is not allowed to get %s", who, q.Object)
	}
	return nil
}

// deniedError returns the error of a denied manifest: the text of docs/reference/work.md, "Executors", and the cause.
func deniedError(o manifest.ID, suffix, cause string) error {
	return fmt.Errorf("not allowed to apply the resource %s %s, %s %s%s, will try again in %s; %s",
		o.Group, o.Resource, o.Namespace, o.Name, suffix, deniedRetry, cause)
}

// escalationDenied is the decision about a manifest that grants permissions which the executor does not have.
func escalationDenied(q Question, cause string, now time.Time) Decision {
	return Decision{
		Verdict: Denied, Err: deniedError(q.Object, ", error: permission escalation", cause), reviewed: now,
	}
}

// again returns when the question is asked again without a change of RBAC; zero means never. watched reports whether
// changes of RBAC are watched.
func (d *Decision) again(watched bool, o manifest.ID) time.Time {
	var soon, late time.Time
	if since := d.reviewed.Sub(d.changed); !d.changed.IsZero() && since < authorizerLag {
		soon = d.reviewed.Add(max(firstReview, 3*since))
	}
	if d.unanswered {
		soon = reconcile.Earliest(soon, d.reviewed.Add(authorizerLag))
	}
	switch {
	case d.Err != nil || d.ReadErr != nil:
		late = d.reviewed.Add(deniedRetry)
	case !watched:
		late = d.reviewed.Add(pause.Spread(allowedTTL, allowedSpread, o.String()))
	}
	return reconcile.Earliest(soon, late)
}

// valid reports whether a cached decision still counts at now.
func (d *Decision) valid(now time.Time, watched bool, o manifest.ID) bool {
	again := d.again(watched, o)
	return !d.unanswered && now.Before(d.reviewed.Add(allowedTTL)) && (again.IsZero() || now.Before(again))
}
