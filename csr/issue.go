package csr

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/internal/names"
)

// Condition type, reasons and messages of a rotation (contract, registration 1.7).
const (
	// ConditionRotated is the condition on a ManagedCluster or ManagedClusterAddOn that tells how its certificate is.
	ConditionRotated = "ClusterCertificateRotated"
	// ReasonUpdated is the reason while a certificate is good.
	ReasonUpdated = "ClientCertificateUpdated"
	// ReasonUpdateFailed is the reason while a certificate could not be had.
	ReasonUpdateFailed = "ClientCertificateUpdateFailed"

	messageRotated  = "client certificate rotated starting from %v to %v"
	messageFailed   = "Failed to rotated client certificate %s"
	messageNoCreate = "Failed to create CSR %s"
	messageCapped   = "Stop creating csr since there are too many csr created already on hub"
	messageCrowded  = messageCapped + "; not all may be of this agent, so another one is created at %s"
	messageRushed   = "%d certificates were issued within %s, so something removes or replaces what comes of them; " +
		"a new csr is made at %s"
	messageVanished = "unable to get csr %q. It might have already been deleted"
)

const (
	// MaxRequests is how many request objects of one owner may wait on the hub for another to be made. Those that came to
	// an end, good or bad, do not count: nobody has to clean up after them. Where others may have made them, the next one
	// is not stopped but waits for as long as after a refusal.
	MaxRequests = 10

	// maxLately is how many certificates are had within latelyIs to get what is not there or does not fit. Something
	// that removes or overwrites the credential as fast as it comes must not make the hub issue certificates as fast.
	// The renewal of a certificate in use is not stopped: its pace follows from its life.
	maxLately = 10
	latelyIs  = time.Minute

	// firstRetry is how long a refused request keeps the next one waiting; it doubles with each refusal.
	firstRetry = time.Minute
	// lastRetry is the longest that it waits.
	lastRetry = time.Hour

	// hurry is the share of what is left of the pair in use after which an urgent step is tried again.
	hurry = 8
	// soonest, and latestLook and latestTry for what waits and what failed, bound that pause.
	soonest, latestLook, latestTry = time.Second, time.Hour, time.Minute
)

// Standing is everything that the next step of getting a certificate depends on.
type Standing struct {
	// Now is the instant of the observation, by the clock of the hub: by it certificates are valid, and by it the hub
	// notes when it refused a request. Where that is not known, the clock of the agent has to do.
	Now time.Time
	// Want is the certificate that is wanted.
	Want Request
	// Hub says in one string which hub is asked.
	Hub string
	// Stored is the pair in use; empty when there is none.
	Stored Pair
	// Renew asks for a new pair even though the stored one fits.
	Renew bool
	// Pending is the key that waits for its certificate; nil when none does.
	Pending *Pending
	// Request is the request object made with the pending key. When the pending key says that the object existed, nil
	// means that it is certainly gone.
	Request *certificatesv1.CertificateSigningRequest
	// Open counts the request objects of the same owner on the hub that nobody has decided about yet.
	Open int
	// Lately is when the request objects of the same owner were made that led to a certificate and are younger than
	// latelyIs, the latest first. The hub removes them long after that.
	Lately []time.Time
	// Shared says that others may have made some of these: the credential with which the hub is asked is not the agent's
	// alone.
	Shared bool
}

// Step is the next step of getting a certificate.
type Step string

const (
	// StepNone means that the stored pair is good.
	StepNone Step = "None"
	// StepForget means that the stored pair is good and the pending key is of no more use.
	StepForget Step = "Forget"
	// StepStart means that a new key is made and a certificate asked for.
	StepStart Step = "Start"
	// StepReserve means that a new key is made and nothing asked for yet.
	StepReserve Step = "Reserve"
	// StepCreate means that the request object of the pending key is created.
	StepCreate Step = "Create"
	// StepRecord means that the existence of the request object is noted with the pending key.
	StepRecord Step = "Record"
	// StepWait means that somebody else must move first.
	StepWait Step = "Wait"
	// StepTake means that the certificate is there and is to be stored with its key.
	StepTake Step = "Take"
)

// Plan is the next step and what is known to tell about it.
type Plan struct {
	// Step is the next step.
	Step Step
	// Pending is what is stored before a new key is used; only with StepStart and
	// StepReserve, and still without the key.
	Pending Pending
	// Pair is the new pair; only with StepTake.
	Pair Pair
	// Wake is the instant at which to look again; zero when only an event changes anything.
	Wake time.Time
	// Condition is what to tell; nil leaves the condition as it is.
	Condition *metav1.Condition
	// Urgent means that the pair in use is being replaced: while the next one is not there, Wake says when to try again,
	// ever sooner as the end of the old one comes closer. Who backs off from failures goes by Wake instead.
	Urgent bool
}

// Decide returns the next step of getting a certificate. At most one request object is ever made with one key, a good
// pair is never given up before its successor is there, and a refusal is told at once and not answered by a new request
// before a pause.
func Decide(s Standing) Plan {
	stored := JudgePair(s.Stored, s.Want, s.Now)
	if stored.Fits && !s.Renew && !stored.Due(s.Now) {
		plan := Plan{Step: StepNone, Wake: stored.RotateAt, Condition: Rotated(stored)}
		if s.Pending != nil {
			plan.Step = StepForget
		}
		return plan
	}
	if s.Pending == nil || !s.usable(*s.Pending) {
		return s.start("", 0)
	}
	if len(s.Pending.Certificate) > 0 {
		return s.takeKept()
	}
	return s.followRequest()
}

// usable reports whether the pending key was made for what is wanted now and has not served its turn already.
func (s Standing) usable(p Pending) bool {
	if _, err := parseKey(p.Key); err != nil {
		return false
	}
	return p.Fingerprint == fingerprint(s.Want, s.Hub) && !bytes.Equal(p.Key, s.Stored.Key)
}

// takeKept decides about a certificate that was issued but could not be stored.
func (s Standing) takeKept() Plan {
	pair := Pair{Certificate: s.Pending.Certificate, Key: s.Pending.Key, IssuedAt: s.Pending.IssuedAt}
	verdict := JudgePair(pair, s.Want, s.Now)
	if !verdict.Fits {
		return s.start(verdict.Why, 0)
	}
	return Plan{Step: StepTake, Pair: pair, Wake: verdict.RotateAt, Condition: Rotated(verdict)}
}

// followRequest decides by the request object of the pending key.
func (s Standing) followRequest() Plan {
	p, request := s.Pending, s.Request
	if request == nil || (p.RequestUID != "" && request.UID != p.RequestUID) {
		if p.RequestUID == "" {
			return s.create()
		}
		name, _ := requestName(s.Want, p.Key) // a usable pending key has been parsed before
		return s.vanished(fmt.Sprintf(messageVanished, name))
	}
	if !carriesKey(request, p.Key) {
		return s.vanished(fmt.Sprintf("csr %q was not made by this agent", request.Name))
	}
	if why, at, refused := refusal(request); refused {
		return s.refused(why, at)
	}
	if len(request.Status.Certificate) > 0 {
		return s.takeIssued()
	}
	if p.RequestUID == "" {
		return Plan{Step: StepRecord, Condition: s.earlierFailure()}
	}
	return s.wait()
}

// again tells, when the pair in use is good and due, at what instant to try again what did not succeed now.
func (s Standing) again(latest time.Duration) (time.Time, bool) {
	v := JudgePair(s.Stored, s.Want, s.Now)
	if !v.Fits || !v.Due(s.Now) {
		return time.Time{}, false
	}
	return s.Now.Add(min(max(v.NotAfter.Sub(s.Now)/hurry, soonest), latest)), true
}

// takeIssued decides about the certificate in the request object.
func (s Standing) takeIssued() Plan {
	pair := Pair{
		Certificate: s.Request.Status.Certificate, Key: s.Pending.Key, IssuedAt: s.Now.UTC().Truncate(time.Second),
	}
	verdict := JudgePair(pair, s.Want, s.Now)
	if !verdict.Fits {
		why := fmt.Sprintf("csr %q: signer %s issued something else than was asked for: %s",
			s.Request.Name, s.Request.Spec.SignerName, verdict.Why)
		return s.refused(why, approvedAt(s.Request))
	}
	return Plan{Step: StepTake, Pair: pair, Wake: verdict.RotateAt, Condition: Rotated(verdict)}
}

// refused waits out the pause after a refusal and then starts again. A request cannot be refused before its key was
// made nor after now; where the clocks say so they disagree, and the pause begins with the key.
func (s Standing) refused(why string, at time.Time) Plan {
	made := s.Pending.MadeAt
	if !made.IsZero() && !made.After(s.Now) && (at.Before(made) || at.After(s.Now)) {
		at = made
	}
	return s.afterPause(why, at.Add(pause(s.Pending.Attempt)), s.Pending.Attempt+1)
}

// vanished replaces a request that is gone, the first time at once. Where one after the other goes, something removes
// them, and the next one waits like after a refusal. One that stayed for long was cleaned up, which is no refusal.
func (s Standing) vanished(why string) Plan {
	made, attempt := s.Pending.MadeAt, s.Pending.Attempt
	if made.IsZero() || made.After(s.Now) || !s.Now.Before(made.Add(lastRetry)) {
		return s.start(why, attempt)
	}
	retryAt := made
	if attempt > 0 {
		retryAt = made.Add(pause(attempt - 1))
	}
	return s.afterPause(why, retryAt, attempt+1)
}

// afterPause starts again at an instant and waits until then.
func (s Standing) afterPause(why string, retryAt time.Time, attempt int) Plan {
	if !s.Now.Before(retryAt) {
		return s.start(why, attempt)
	}
	told := fmt.Sprintf("%s; a new csr is made at %s", why, retryAt.UTC().Format(time.RFC3339))
	if s.Request != nil && has(s.Request, certificatesv1.CertificateDenied) {
		told += ": if the denial was a mistake, run kubectl certificate approve on that one"
	}
	return Plan{Step: StepWait, Wake: retryAt, Condition: failed(messageFailed, told)}
}

// start makes a new key and request unless too many requests of this owner are on the hub already.
func (s Standing) start(failure string, attempt int) Plan {
	plan := Plan{Step: StepStart, Pending: Pending{
		Fingerprint: fingerprint(s.Want, s.Hub), MadeAt: s.Now.UTC().Truncate(time.Second),
		Attempt: attempt, Failure: failure,
	}}
	if s.Open >= MaxRequests {
		if !s.Shared {
			return Plan{Step: StepWait, Condition: failed(messageCapped)}
		}
		plan.Step = StepReserve
		plan.Wake, plan.Condition = s.turn(plan.Pending)
		return plan
	}
	if !s.Shared && len(s.Lately) >= maxLately && !JudgePair(s.Stored, s.Want, s.Now).Fits {
		retryAt := s.Lately[maxLately-1].Add(latelyIs)
		return Plan{Step: StepWait, Wake: retryAt, Condition: failed(messageFailed, fmt.Sprintf(messageRushed,
			maxLately, latelyIs, retryAt.UTC().Format(time.RFC3339)))}
	}
	if failure != "" {
		plan.Condition = failed(messageFailed, failure)
	}
	return plan
}

// create decides whether the request object of the pending key is created now. Where too many others wait that may be
// somebody else's, the key waits its turn.
func (s Standing) create() Plan {
	if s.Shared && s.Open >= MaxRequests && !s.Pending.MadeAt.IsZero() {
		at, told := s.turn(*s.Pending)
		if s.Now.Before(at) && !s.Now.Before(s.Pending.MadeAt) {
			return Plan{Step: StepWait, Wake: at, Condition: told}
		}
	}
	return Plan{Step: StepCreate, Condition: s.earlierFailure()}
}

// turn returns when the request object of a key is created though too many others wait, and what to tell until then.
func (s Standing) turn(p Pending) (time.Time, *metav1.Condition) {
	at := p.MadeAt.Add(pause(p.Attempt))
	return at, failed(messageCrowded, at.UTC().Format(time.RFC3339))
}

// earlierFailure tells why the request before this one came to nothing, until a certificate is there.
func (s Standing) earlierFailure() *metav1.Condition {
	if s.Pending.Failure == "" {
		return nil
	}
	return failed(messageFailed, s.Pending.Failure)
}

// refusal reports whether a request object will never lead to a certificate, why, and since when.
func refusal(request *certificatesv1.CertificateSigningRequest) (why string, at time.Time, refused bool) {
	for _, c := range request.Status.Conditions {
		var verb string
		switch c.Type {
		case certificatesv1.CertificateDenied:
			verb = "was denied"
		case certificatesv1.CertificateFailed:
			verb = "failed"
		default:
			continue
		}
		if c.Status == corev1.ConditionFalse {
			continue
		}
		why = fmt.Sprintf("csr %q %s: %s", request.Name, verb, c.Reason)
		if c.Message != "" {
			why += ": " + c.Message
		}
		return why, conditionTime(c, request), true
	}
	return "", time.Time{}, false
}

// Undecided reports whether a request object still waits for somebody to approve or deny it.
func Undecided(request *certificatesv1.CertificateSigningRequest) bool {
	return len(request.Status.Certificate) == 0 &&
		!slices.ContainsFunc(request.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
			return c.Status != corev1.ConditionFalse
		})
}

// fromStranger reports whether a request object with the labels of the owner was made by an agent that is none of the
// owner's cluster. Who made it the API server says, not its author.
func fromStranger(request *certificatesv1.CertificateSigningRequest, want Request) bool {
	cluster := want.Labels[names.LabelClusterName]
	if id, ok := ParseClusterUser(request.Spec.Username); ok {
		return id.Cluster != cluster
	}
	_, addon := ParseAddonUser(request.Spec.Username)
	return addon
}

// approvedAt is when the request object was approved, or created when it does not say.
func approvedAt(request *certificatesv1.CertificateSigningRequest) time.Time {
	for _, c := range request.Status.Conditions {
		if c.Type == certificatesv1.CertificateApproved {
			return conditionTime(c, request)
		}
	}
	return request.CreationTimestamp.Time
}

func conditionTime(
	c certificatesv1.CertificateSigningRequestCondition, request *certificatesv1.CertificateSigningRequest,
) time.Time {
	if !c.LastUpdateTime.IsZero() {
		return c.LastUpdateTime.Time
	}
	return request.CreationTimestamp.Time
}

// pause is how long the refusal after so many others keeps the next request waiting.
func pause(attempt int) time.Duration {
	wait := firstRetry
	for range attempt {
		if wait *= 2; wait >= lastRetry {
			return lastRetry
		}
	}
	return wait
}
