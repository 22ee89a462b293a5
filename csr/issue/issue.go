package issue

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/pause"
)

// Reasons and messages of a rotation (docs/reference/registration.md, "Rotation").
const (
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
	// MaxRequests is the number of undecided request objects of one owner on the hub from which no more are created.
	// Decided ones do not count, so nobody has to delete them. If others may have created them, the next one is not
	// stopped but delayed as after a refusal.
	MaxRequests = 10

	// MaxRecent is the number of credentials within RecentWindow from which no more are requested. A process that keeps
	// removing or overwriting the credential must not make the hub issue certificates at the same rate, also where it
	// writes ones that are due.
	MaxRecent = 10
	// RecentWindow is the time in which so many may be issued.
	RecentWindow = time.Minute

	// firstRetry is the pause after the first refusal; it doubles with each refusal.
	firstRetry = time.Minute
	// lastRetry is the longest pause.
	lastRetry = time.Hour

	// urgentShare is the fraction of the remaining lifetime of the pair in use after which an urgent step is retried.
	urgentShare = 8
	// minUrgent, and maxUrgentWait after waiting and maxUrgentRetry after a failure, bound that pause.
	minUrgent, maxUrgentWait, maxUrgentRetry = time.Second, time.Hour, time.Minute
)

// standing has the inputs of decide.
type standing struct {
	// now and want are those of the Task, and hub identifies the hub.
	now  time.Time
	want csr.Request
	hub  string
	// stored is the pair in use; empty when there is none.
	stored Pair
	// renew requests a new pair even if the stored one fits.
	renew bool
	// pending is the key that waits for its certificate; nil when none does.
	pending *pendingKey
	// request is the request object of the pending key. If the pending key records that the object existed, nil means that
	// it is certainly gone.
	request *certificatesv1.CertificateSigningRequest
	// open is the number of undecided request objects of the same owner on the hub.
	open int
	// undecided are the names of the first of them.
	undecided []string
	// issued has the creation times of the issued request objects of the same owner. The hub deletes these long after
	// RecentWindow.
	issued []time.Time
	// shared is set when other agents may have created some of these, because they use the same credential.
	shared bool
}

// Step is the next step of getting a certificate.
type Step string

const (
	// StepNone means that the stored pair is good.
	StepNone Step = "None"
	// StepForget means that the stored pair is good and the pending key is of no more use.
	StepForget Step = "Forget"
	// StepStart means that a new key is created and a certificate requested.
	StepStart Step = "Start"
	// StepReserve means that a new key is created and no certificate requested yet.
	StepReserve Step = "Reserve"
	// StepCreate means that the request object of the pending key is created.
	StepCreate Step = "Create"
	// StepRecord means that the pending key records the UID of the request object.
	StepRecord Step = "Record"
	// StepWait means that another party must act first.
	StepWait Step = "Wait"
	// StepTake means that the certificate was issued and must be stored with its key.
	StepTake Step = "Take"
)

// Plan is the next step and the condition to report.
type Plan struct {
	// Step is the next step.
	Step Step
	// pending is stored before a new key is used; it is set with StepStart and StepReserve, without the key.
	pending pendingKey
	// Pair is the new pair; only with StepTake.
	Pair Pair
	// Wake is the time of the next pass; zero when only an event causes one.
	Wake time.Time
	// Condition is the condition to write; nil leaves it as it is.
	Condition *metav1.Condition
	// Urgent means that the pair in use is being replaced: until the next one is issued, Wake is the time of the next
	// attempt, which comes earlier as the old pair expires. After a failure Wake replaces the back-off.
	Urgent bool
}

// decide returns the next step. At most one request object is created with one key, a valid pair is never given up
// before the next one is issued, and a refusal is reported at once and answered by a new request only after a pause.
func decide(s standing) Plan {
	stored := JudgePair(s.stored, s.want, s.now)
	if stored.Fits && !s.renew && !stored.Due(s.now) {
		plan := Plan{Step: StepNone, Wake: stored.RotateAt, Condition: Rotated(stored)}
		if s.pending != nil {
			plan.Step = StepForget
		}
		return plan
	}
	if s.pending == nil || !s.usable(*s.pending) {
		return s.start("", 0)
	}
	if len(s.pending.certificate) > 0 {
		return s.takeKept()
	}
	return s.followRequest()
}

// usable reports whether the pending key was created for the present request and is not the stored key.
func (s standing) usable(p pendingKey) bool {
	if _, err := csr.ParseKey(p.key); err != nil {
		return false
	}
	return p.fingerprint == fingerprint(s.want, s.hub) && !bytes.Equal(p.key, s.stored.Key)
}

// takeKept decides about a certificate that was issued but could not be stored.
func (s standing) takeKept() Plan {
	pair := Pair{Certificate: s.pending.certificate, Key: s.pending.key, IssuedAt: s.pending.issuedAt}
	verdict := JudgePair(pair, s.want, s.now)
	if !verdict.Fits {
		return s.start(verdict.Why, 0)
	}
	return Plan{Step: StepTake, Pair: pair, Wake: verdict.RotateAt, Condition: Rotated(verdict)}
}

// followRequest decides by the request object of the pending key.
func (s standing) followRequest() Plan {
	p, request := s.pending, s.request
	if request == nil || (p.requestUID != "" && request.UID != p.requestUID) {
		if p.requestUID == "" {
			return s.create()
		}
		name, _ := requestName(s.want, p.key) // a usable pending key has been parsed before
		return s.vanished(fmt.Sprintf(messageVanished, name))
	}
	if !carriesKey(request, p.key) {
		return s.vanished(fmt.Sprintf("csr %q was not made by this agent", request.Name))
	}
	if why, at, refused := refusal(request); refused {
		return s.refused(why, at)
	}
	if len(request.Status.Certificate) > 0 {
		return s.takeIssued()
	}
	if p.requestUID == "" {
		return Plan{Step: StepRecord, Condition: s.earlierFailure()}
	}
	return s.wait()
}

// again returns the time of the next attempt if the pair in use is valid and due for renewal.
func (s standing) again(latest time.Duration) (time.Time, bool) {
	v := JudgePair(s.stored, s.want, s.now)
	if !v.Fits || !v.Due(s.now) {
		return time.Time{}, false
	}
	return s.now.Add(min(max(v.NotAfter.Sub(s.now)/urgentShare, minUrgent), latest)), true
}

// takeIssued decides about the certificate in the request object.
func (s standing) takeIssued() Plan {
	pair := Pair{
		Certificate: s.request.Status.Certificate, Key: s.pending.key, IssuedAt: s.now.UTC().Truncate(time.Second),
	}
	verdict := JudgePair(pair, s.want, s.now)
	if !verdict.Fits {
		why := fmt.Sprintf("csr %q: signer %s issued something else than was asked for: %s",
			s.request.Name, s.request.Spec.SignerName, verdict.Why)
		return s.refused(why, csr.ApprovedAt(s.request))
	}
	return Plan{Step: StepTake, Pair: pair, Wake: verdict.RotateAt, Condition: Rotated(verdict)}
}

// refused starts again after the pause of a refusal. A refusal before the creation of its key or after now means that
// the clocks disagree; then the pause begins with the creation of the key.
func (s standing) refused(why string, at time.Time) Plan {
	made := s.pending.madeAt
	if !made.IsZero() && !made.After(s.now) && (at.Before(made) || at.After(s.now)) {
		at = made
	}
	return s.afterPause(why, at.Add(pauseAfter(s.pending.attempt)), s.pending.attempt+1)
}

// vanished replaces a request that is gone, the first time at once. If requests keep vanishing, the next one waits as
// after a refusal. An old request was cleaned up, which does not count as a refusal.
func (s standing) vanished(why string) Plan {
	made, attempt := s.pending.madeAt, s.pending.attempt
	if made.IsZero() || made.After(s.now) || !s.now.Before(made.Add(lastRetry)) {
		return s.start(why, attempt)
	}
	retryAt := made
	if attempt > 0 {
		retryAt = made.Add(pauseAfter(attempt - 1))
	}
	return s.afterPause(why, retryAt, attempt+1)
}

// afterPause waits until a time and then starts again.
func (s standing) afterPause(why string, retryAt time.Time, attempt int) Plan {
	if !s.now.Before(retryAt) {
		return s.start(why, attempt)
	}
	message := fmt.Sprintf("%s; a new csr is made at %s", why, retryAt.UTC().Format(time.RFC3339))
	if s.request != nil && csr.HasCondition(s.request, certificatesv1.CertificateDenied) {
		message += ": if the denial was a mistake, run kubectl certificate approve on that one"
	}
	return Plan{Step: StepWait, Wake: retryAt, Condition: failed(messageFailed, message)}
}

// start makes a new key and request unless too many requests of this owner are on the hub already.
func (s standing) start(failure string, attempt int) Plan {
	plan := Plan{Step: StepStart, pending: pendingKey{
		fingerprint: fingerprint(s.want, s.hub), madeAt: s.now.UTC().Truncate(time.Second),
		attempt: attempt, failure: failure,
	}}
	if s.open >= MaxRequests {
		if !s.shared {
			return Plan{Step: StepWait, Wake: s.now.Add(firstRetry), Condition: failed(messageCapped)}
		}
		plan.Step = StepReserve
		plan.Wake, plan.Condition = s.turn(plan.pending)
		return plan
	}
	if retryAt := Next(s.issued, s.now); !s.shared && s.now.Before(retryAt) {
		return Plan{Step: StepWait, Wake: retryAt, Condition: failed(messageFailed, fmt.Sprintf(messageRushed,
			MaxRecent, RecentWindow, retryAt.UTC().Format(time.RFC3339)))}
	}
	if failure != "" {
		plan.Condition = failed(messageFailed, failure)
	}
	return plan
}

// Recent returns those of the times at which credentials of an owner were issued that are within RecentWindow. A time
// to come is by a clock that was set back since.
func Recent(issued []time.Time, now time.Time) []time.Time {
	return slices.DeleteFunc(slices.Clone(issued), func(at time.Time) bool {
		return at.After(now) || !at.Add(RecentWindow).After(now)
	})
}

// Next returns when the next credential may be asked for after those that were issued; zero means at once.
func Next(issued []time.Time, now time.Time) time.Time {
	lately := Recent(issued, now)
	if len(lately) < MaxRecent {
		return time.Time{}
	}
	slices.SortFunc(lately, time.Time.Compare)
	return lately[len(lately)-MaxRecent].Add(RecentWindow)
}

// create decides whether the request object of the pending key is created now. Where too many others wait that may be
// another client's, the key waits its turn.
func (s standing) create() Plan {
	if s.shared && s.open >= MaxRequests && !s.pending.madeAt.IsZero() {
		at, condition := s.turn(*s.pending)
		if s.now.Before(at) && !s.now.Before(s.pending.madeAt) {
			return Plan{Step: StepWait, Wake: at, Condition: condition}
		}
	}
	return Plan{Step: StepCreate, Condition: s.earlierFailure()}
}

// turn returns the time at which the request object of a key is created even if too many others wait, and the condition
// until then.
func (s standing) turn(p pendingKey) (time.Time, *metav1.Condition) {
	at := p.madeAt.Add(pauseAfter(p.attempt))
	return at, failed(messageCrowded, at.UTC().Format(time.RFC3339))
}

// earlierFailure returns the condition with the failure of the previous request; nil when there was none.
func (s standing) earlierFailure() *metav1.Condition {
	if s.pending.failure == "" {
		return nil
	}
	return failed(messageFailed, s.pending.failure)
}

// refusal reports whether a request object will never lead to a certificate, why, and since when.
func refusal(request *certificatesv1.CertificateSigningRequest) (why string, at time.Time, refused bool) {
	verbs := map[certificatesv1.RequestConditionType]string{
		certificatesv1.CertificateDenied: "was denied", certificatesv1.CertificateFailed: "failed",
	}
	for _, c := range request.Status.Conditions {
		verb := verbs[c.Type]
		if verb == "" || c.Status == corev1.ConditionFalse {
			continue
		}
		why = fmt.Sprintf("csr %q %s: %s", request.Name, verb, c.Reason)
		if c.Message != "" {
			why += ": " + c.Message
		}
		if at = c.LastUpdateTime.Time; at.IsZero() {
			at = request.CreationTimestamp.Time
		}
		return why, at, true
	}
	return "", time.Time{}, false
}

// fromStranger reports whether a request object with the labels of the owner was made by an agent that is none of the
// owner's cluster. The API server sets the user name, not the author.
func fromStranger(request *certificatesv1.CertificateSigningRequest, want csr.Request) bool {
	cluster := want.Labels[names.LabelClusterName]
	if id, ok := csr.ParseClusterUser(request.Spec.Username); ok {
		return id.Cluster != cluster
	}
	_, addon := csr.ParseAddonUser(request.Spec.Username)
	return addon
}

// pauseAfter is the pause after a refusal that follows so many others.
func pauseAfter(others int) time.Duration {
	g := pause.Growing{First: firstRetry, Last: lastRetry}
	return g.Next(g.After(others))
}
