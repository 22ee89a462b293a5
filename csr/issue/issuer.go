package issue

import (
	"context"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
)

const (
	// pageSize is the number of request objects that are read at once, and maxPages the number of such reads.
	pageSize, maxPages = 100, 5
)

// Issuer gets certificates from a hub. It is stateless: the pending key is in a Secret, the rest on the hub.
type Issuer struct {
	// Hub creates request objects.
	Hub client.Writer
	// HubLive reads request objects from the API server. No cache holds them: anybody may create any number with the
	// labels of this cluster.
	HubLive client.Reader
	// HubSeen reads the request object of a pending key; it may answer from memory what has not changed since. Nil means
	// HubLive.
	HubSeen client.Reader
	// Agent reads and writes the Secrets in Namespace; it may read from a cache.
	Agent client.Client
	// AgentLive reads the Secrets in Namespace from the API server.
	AgentLive client.Reader
	// Namespace is the agent's namespace, where pending keys live.
	Namespace string
	// Secret is the Secret in Namespace that keeps the agent's own credential; empty means names.SecretHub. The names of
	// pending keys follow from it, so that several agents can share a namespace.
	Secret string
	// HubName identifies the hub; a pending key of another hub is not used.
	HubName string
	// User is the user name of the agent on the hub. It is empty with a bootstrap credential, which other agents may
	// share.
	User string
}

// RequestKind returns the kind of request objects.
func RequestKind() schema.GroupVersionKind {
	return certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest")
}

// Task is one certificate to get.
type Task struct {
	// Now is the time by the clock of the hub, which also dates certificates and refusals. While that is unknown, it is
	// the time by the clock of the agent.
	Now time.Time
	// Want is the certificate that is wanted.
	Want csr.Request
	// Load reads the pair in use, from the API server when live is set. A pair that does not exist is empty, not an
	// error. renew requests a new pair even if it fits.
	Load func(ctx context.Context, live bool) (pair Pair, renew bool, err error)
}

// Answer is the result of a Task.
type Answer struct {
	// Plan is the executed plan. With StepTake the caller must store Pair, and then call Finish or Keep.
	Plan
	// Awaited are the names of the request objects whose change needs the next pass.
	Awaited []string
	// secret is that of the pending key as last read or written; nil when there is none.
	secret *corev1.Secret
}

// Ask does the next step of getting a certificate. The Answer is meaningful also when there is an error.
func (i Issuer) Ask(ctx context.Context, t Task) (Answer, error) {
	s, secret, err := i.observe(ctx, t, false)
	if err != nil {
		return failedAt(s, Answer{}), err
	}
	plan := decide(s)
	if makesRequest(plan.Step) || (plan.Step == StepWait && plan.Urgent) {
		// A cache may lag behind our own writes. A new key needs a live read, and the number of requests on the hub.
		if s, secret, err = i.observe(ctx, t, true); err != nil {
			return failedAt(s, Answer{}), err
		}
		plan = decide(s)
	}
	answer, err := i.act(ctx, s, Answer{Plan: plan, secret: secret})
	if err != nil {
		return failedAt(s, answer), err
	}
	answer.Awaited = awaited(s, answer)
	return answer, nil
}

// makesRequest reports whether a step makes a key or a request object.
func makesRequest(s Step) bool { return s == StepStart || s == StepReserve || s == StepCreate }

// awaited returns the names of the request objects that an answer waits for: that of its pending key, and those of the
// owner while they are too many for another one.
func awaited(s standing, a Answer) []string {
	var all []string
	if a.Step == StepWait && !s.shared && s.open >= MaxRequests {
		all = slices.Clone(s.undecided)
	}
	pending := readPending(a.secret)
	if pending == nil || pending.requestUID == "" || !slices.Contains(
		[]Step{StepStart, StepCreate, StepRecord, StepWait}, a.Step) {
		return all
	}
	if name, err := requestName(s.want, pending.key); err == nil && !slices.Contains(all, name) {
		all = append(all, name)
	}
	return all
}

// failedAt sets the time of the next attempt in the answer if it is urgent and must not be left to a back-off.
func failedAt(s standing, a Answer) Answer {
	if at, urgent := s.again(maxUrgentRetry); urgent {
		a.Wake, a.Urgent = at, true
	}
	return a
}

func (i Issuer) act(ctx context.Context, s standing, answer Answer) (Answer, error) {
	var err error
	switch answer.Step {
	case StepStart:
		err = i.start(ctx, s, &answer)
	case StepReserve:
		err = i.reserve(ctx, s, &answer)
	case StepCreate:
		err = i.request(ctx, s, &answer)
	case StepRecord:
		err = i.record(ctx, s.request.UID, &answer)
	case StepForget:
		err = i.Finish(ctx, answer)
	case StepNone, StepWait, StepTake:
	}
	return answer, err
}

// Finish deletes the pending key of an answer whose pair was stored.
func (i Issuer) Finish(ctx context.Context, a Answer) error {
	if a.secret == nil {
		return nil
	}
	uid, version := a.secret.UID, a.secret.ResourceVersion
	err := i.Agent.Delete(ctx, a.secret, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing pending key %s/%s: %w", i.Namespace, a.secret.Name, err)
	}
	return nil
}

// Keep holds the certificate of an answer whose pair could not be stored, so that it outlives the request object.
func (i Issuer) Keep(ctx context.Context, a Answer) error {
	pending := readPending(a.secret)
	if pending == nil || len(pending.certificate) > 0 {
		return nil
	}
	pending.certificate, pending.issuedAt = a.Pair.Certificate, a.Pair.IssuedAt
	if _, err := i.writePending(ctx, a.secret, *pending); err != nil {
		return fmt.Errorf("keeping the certificate: %w", err)
	}
	return nil
}

func (i Issuer) observe(ctx context.Context, t Task, live bool) (standing, *corev1.Secret, error) {
	s := standing{now: t.Now, want: t.Want, hub: i.HubName, shared: i.User == ""}
	var err error
	if s.stored, s.renew, err = t.Load(ctx, live); err != nil {
		return s, nil, err
	}
	secret, err := i.pendingSecret(ctx, PendingName(s.want, i.Secret), live)
	if err != nil {
		return s, nil, err
	}
	if secret == nil {
		if secret, err = i.formerPending(ctx, s, live); err != nil {
			return s, nil, err
		}
	}
	s.pending = readPending(secret)
	if s.pending != nil {
		// A key that cannot be read has no request, and is replaced.
		if name, unreadable := requestName(s.want, s.pending.key); unreadable == nil {
			if s.request, err = i.requestNamed(ctx, name, live); err != nil {
				return s, nil, err
			}
		}
	}
	if live {
		err = i.countRequests(ctx, &s)
	}
	return s, secret, err
}

// formerPending returns the Secret of a pending key for this very certificate that an agent of an earlier version made
// under the default name; nil when there is none. It is used until its certificate is stored.
func (i Issuer) formerPending(ctx context.Context, s standing, live bool) (*corev1.Secret, error) {
	name := PendingName(s.want, "")
	if name == PendingName(s.want, i.Secret) {
		return nil, nil // no pending key is a good answer
	}
	secret, err := i.pendingSecret(ctx, name, live)
	if err != nil || !IsFormer(secret) {
		return nil, err
	}
	if p := readPending(secret); p == nil || p.fingerprint != fingerprint(s.want, s.hub) {
		return nil, nil // it is of another agent
	}
	return secret, nil
}

func (i Issuer) pendingSecret(ctx context.Context, name string, live bool) (*corev1.Secret, error) {
	key := types.NamespacedName{Namespace: i.Namespace, Name: name}
	reader := client.Reader(i.Agent)
	if live {
		reader = i.AgentLive
	}
	var secret corev1.Secret
	switch err := reader.Get(ctx, key, &secret); {
	case apierrors.IsNotFound(err):
		return nil, nil // no pending key is a good answer
	case err != nil:
		return nil, fmt.Errorf("reading pending key %s: %w", key, err)
	}
	return secret.DeepCopy(), nil
}

// requestNamed returns the request object of a name; nil when it does not exist.
func (i Issuer) requestNamed(
	ctx context.Context, name string, live bool,
) (*certificatesv1.CertificateSigningRequest, error) {
	reader := i.HubSeen
	if live || reader == nil {
		reader = i.HubLive
	}
	var request certificatesv1.CertificateSigningRequest
	switch err := reader.Get(ctx, types.NamespacedName{Name: name}, &request); {
	case apierrors.IsNotFound(err):
		return nil, nil // gone is a good answer
	case err != nil:
		return nil, fmt.Errorf("reading csr %s: %w", name, err)
	}
	return &request, nil
}

// countRequests counts the undecided request objects of the same owner: the same cluster label and the same add-on
// label or none. Anybody may set these labels, but the API server sets the user name: with its own credential, an agent
// counts only the requests of its user; with a shared one, all requests except those of agents of other clusters. It
// also collects the creation times of the issued ones.
//
// It reads some pages at most. Where there are more, not all can be of this agent: it is then slowed down as with a
// shared credential.
func (i Issuer) countRequests(ctx context.Context, s *standing) error {
	want := s.want
	selector := labels.SelectorFromSet(want.Labels)
	if want.Labels[names.LabelAddonName] == "" {
		none, err := labels.NewRequirement(names.LabelAddonName, selection.DoesNotExist, nil)
		if err != nil {
			return fmt.Errorf("selecting csrs: %w", err)
		}
		selector = selector.Add(*none)
	}
	more := ""
	for page := range maxPages {
		var list certificatesv1.CertificateSigningRequestList
		if err := i.HubLive.List(ctx, &list, client.MatchingLabelsSelector{Selector: selector},
			client.Limit(pageSize), client.Continue(more)); err != nil {
			return fmt.Errorf("listing csrs: %w", err)
		}
		for n := range list.Items {
			s.count(&list.Items[n], i.User)
		}
		if more = list.Continue; more == "" {
			break
		}
		if page == maxPages-1 {
			s.open, s.shared = MaxRequests, true
		}
	}
	return nil
}

// count counts one request object with the labels of the owner. user is the user name of the agent; empty with a shared
// credential.
func (s *standing) count(request *certificatesv1.CertificateSigningRequest, user string) {
	ours := !fromStranger(request, s.want)
	if user != "" {
		ours = request.Spec.Username == user
	}
	if ours && csr.Undecided(request) {
		s.open++
		if len(s.undecided) < MaxRequests {
			s.undecided = append(s.undecided, request.Name)
		}
	}
	if ours && len(request.Status.Certificate) > 0 {
		s.issued = append(s.issued, request.CreationTimestamp.Time)
	}
}

// start stores a new key before it requests a certificate, so that every request has its key.
func (i Issuer) start(ctx context.Context, s standing, a *Answer) error {
	if err := i.reserve(ctx, s, a); err != nil {
		return err
	}
	return i.request(ctx, s, a)
}

// reserve stores a new key.
func (i Issuer) reserve(ctx context.Context, s standing, a *Answer) error {
	pending := a.pending
	var err error
	if pending.key, err = csr.NewKey(); err != nil {
		return err
	}
	secret := a.secret
	if secret == nil {
		secret = PendingSecret(s.want, i.Namespace, i.Secret)
	}
	markPending(secret, s.want, i.Namespace, i.Secret)
	if a.secret, err = i.writePending(ctx, secret, pending); err != nil {
		a.Condition = notCreated(err)
		return err
	}
	return nil
}

// request creates the request object of the pending key and records its UID.
func (i Issuer) request(ctx context.Context, s standing, a *Answer) error {
	pending := readPending(a.secret)
	request, err := s.want.Build(pending.key)
	if err != nil {
		return err
	}
	if request.Name, err = requestName(s.want, pending.key); err != nil {
		return err
	}
	err = i.Hub.Create(ctx, request)
	if apierrors.IsAlreadyExists(err) {
		err = i.HubLive.Get(ctx, types.NamespacedName{Name: request.Name}, request)
	}
	if err != nil {
		a.Condition = notCreated(err)
		return fmt.Errorf("creating csr %s: %w", request.Name, err)
	}
	return i.record(ctx, request.UID, a)
}

// notCreated returns the condition of a request that could not be created; nil for a lost race.
func notCreated(err error) *metav1.Condition {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return failed(messageNoCreate, err.Error())
}

func (i Issuer) record(ctx context.Context, uid types.UID, a *Answer) error {
	pending := readPending(a.secret)
	pending.requestUID = uid
	var err error
	a.secret, err = i.writePending(ctx, a.secret, *pending)
	return err
}

// writePending creates or updates the Secret of a pending key, guarded by its resourceVersion.
func (i Issuer) writePending(ctx context.Context, seen *corev1.Secret, p pendingKey) (*corev1.Secret, error) {
	secret := seen.DeepCopy()
	p.write(secret)
	if secret.ResourceVersion == "" {
		if err := i.Agent.Create(ctx, secret); err != nil {
			return seen, fmt.Errorf("creating pending key %s/%s: %w", secret.Namespace, secret.Name, err)
		}
		return secret, nil
	}
	if err := i.Agent.Update(ctx, secret); err != nil {
		return seen, fmt.Errorf("updating pending key %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return secret, nil
}
