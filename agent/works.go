package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/spokelet/spokelet/agent/work"
	"github.com/spokelet/spokelet/agent/work/missing"
	"github.com/spokelet/spokelet/agent/work/offline"
	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/token"
)

// works returns the reconciler of the works of a hub and a cluster, with its offline copies. A phase with a connection
// to the hub sets that.
func (a *agent) works(
	ctx context.Context, spoke cluster.Cluster, server, clusterName string,
) (*work.Reconciler, error) {
	c := &a.config
	r := &work.Reconciler{
		Cluster: clusterName, AgentID: c.AgentID, HubHash: work.HubHash(server), Spoke: spoke,
		EvictionGrace: max(c.EvictionGracePeriod, evictAtOnce), Workers: c.Workers, Clock: a.clock,
		MaxWatches: c.MaxWatches, Relist: c.WorkRelist,
		RawFeedback: c.Gates.RawFeedback, MaxJSONRawLength: c.MaxJSONRawLength, Latency: a.latency,
		RecordEvents: true, Metrics: metrics.Registry,
		Missing:   missing.Policy(c.EvictMissingWorks),
		OnMissing: func(text string) { a.state.Note(noteWorks, text) },
	}
	var err error
	if r.Objects, err = a.workConfig(ctrl.LoggerFrom(ctx), spoke.GetConfig()); err != nil || c.WorkCacheDir == "" {
		return r, err
	}
	r.Cache, err = offline.Open(ctx, offline.Config{
		Dir: c.WorkCacheDir, MaxBytes: int64(c.WorkCacheMiB) << mebi, Secrets: a.live, Namespace: c.Namespace,
		HubHash: r.HubHash, Cluster: clusterName,
	})
	return r, err
}

// noteWorks, noteHeartbeat and noteCluster name the notes of /readyz?verbose about works that are missing on the hub,
// heartbeats that it does not take, and a missing ManagedCluster.
const noteWorks, noteHeartbeat, noteCluster = "works", "heartbeat", "cluster"

// evictAtOnce is the grace period for --appliedmanifestwork-eviction-grace-period=0; zero would be the default.
const evictAtOnce = time.Nanosecond

// worksWithoutHub adds the reconciler that keeps works by their offline copies to the manager of a phase without a
// credential for the hub, and reports whether there are any.
func (a *agent) worksWithoutHub(
	ctx context.Context, mgr ctrl.Manager, server, clusterName string,
) (keeps bool, err error) {
	if a.config.WorkCacheDir == "" || !a.config.Duties.Works {
		return false, nil
	}
	spoke, err := a.newSpoke(mgr, clusterName)
	if err != nil {
		return false, err
	}
	r, err := a.works(ctx, spoke, server, clusterName)
	if err != nil {
		return false, err
	}
	return r.Copies() > 0, r.SetupOffline(mgr)
}

const (
	// workTokenSeconds is the lifetime of the tokens under which works are applied.
	workTokenSeconds = 3600
	// workTokenPause is the pause between two requests for a token while they fail.
	workTokenPause = 5 * time.Second
	// workTokenLimit is how long such a request may take.
	workTokenLimit = 10 * time.Second
)

// errNoTokenInTime is the cause of a request for a token that took too long.
var errNoTokenInTime = fmt.Errorf("no answer within %s", workTokenLimit)

// accountTokens keeps a token of a ServiceAccount of the managed cluster in memory, and puts it into requests. It
// replaces the token in time, and when the API server rejects it. One request for a token serves all who wait; while it
// is under way, the last token is used.
type accountTokens struct {
	account types.NamespacedName
	client  client.Client
	clock   clock.WithDelayedExecution
	logger  logr.Logger

	mu    sync.Mutex
	token string
	// rotateAt is when to ask for another token, until when this one ends.
	rotateAt, until time.Time
	// pending is closed at the end of the request for a token that is under way; nil when none is.
	pending chan struct{}
	// failed is why there is no new token, since when, and retryAt when to try again.
	failed         error
	since, retryAt time.Time
}

// workConfig returns the client configuration of the objects of works: that of the managed cluster, or the same with
// the tokens of the ServiceAccount that the configuration names.
func (a *agent) workConfig(logger logr.Logger, spoke *rest.Config) (*rest.Config, error) {
	account := a.config.workAccount()
	if account.Name == "" {
		return spoke, nil
	}
	c, err := client.New(spoke, client.Options{Scheme: a.scheme})
	if err != nil {
		return nil, fmt.Errorf("building the client that asks for tokens of ServiceAccount %s: %w", account, err)
	}
	tokens := &accountTokens{account: account, client: c, clock: a.clock, logger: logger}
	a.state.FollowAccount(tokens)
	config := rest.AnonymousClientConfig(spoke)
	config.QPS, config.Burst, config.RateLimiter = spoke.QPS, spoke.Burst, spoke.RateLimiter
	config.WrapTransport = spoke.WrapTransport
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &accountTransport{tokens: tokens, next: next} })
	return config, nil
}

// accountTransport sends requests with the token.
type accountTransport struct {
	tokens *accountTokens
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *accountTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	value, err := t.tokens.get(request.Context())
	if err != nil {
		return nil, err
	}
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+value)
	response, err := t.next.RoundTrip(request)
	if err == nil && response.StatusCode == http.StatusUnauthorized {
		t.tokens.reject(value)
	}
	return response, err
}

// WrappedRoundTripper returns the transport below, for those that look for the innermost one.
func (t *accountTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// get returns a token. Without one it waits for the request that is under way, no longer than ctx.
func (t *accountTokens) get(ctx context.Context) (string, error) {
	for {
		value, pending, err := t.current(ctx)
		if pending == nil {
			return value, err
		}
		select {
		case <-pending:
		case <-ctx.Done():
			return "", fmt.Errorf("waiting for a token of ServiceAccount %s, under which works are applied: %w", t.account,
				ctx.Err())
		}
	}
}

// current returns the token as it is now, or the end of the request to wait for, and starts that where a new token is
// due.
func (t *accountTokens) current(ctx context.Context) (value string, pending <-chan struct{}, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	if !now.Before(t.until) {
		t.token = ""
	}
	due := t.token == "" || !now.Before(t.rotateAt)
	if due && t.pending == nil && (t.failed == nil || !now.Before(t.retryAt)) {
		t.pending = make(chan struct{})
		// Others wait for it, too, so it does not end with this caller.
		go t.request(context.WithoutCancel(ctx), t.pending)
	}
	switch {
	case t.token != "":
		return t.token, nil, nil
	case t.pending != nil:
		return "", t.pending, nil
	}
	return "", nil, t.failed
}

// request asks for a token, and closes ended.
func (t *accountTokens) request(ctx context.Context, ended chan struct{}) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer t.clock.AfterFunc(workTokenLimit, func() { cancel(errNoTokenInTime) }).Stop()
	// The lifetime counts from here on by our clock, as that of the API server may differ.
	began := t.clock.Now()
	value, claims, err := t.ask(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending = nil
	defer close(ended)
	if err != nil {
		t.fail(err)
		return
	}
	if t.failed != nil {
		t.logger.Info("there is a token again under which works are applied", "serviceAccount", t.account.String())
	}
	t.token, t.failed = value, nil
	t.until = began.Add(claims.ExpiresAt.Sub(claims.IssuedAt))
	t.rotateAt = csr.RotateAt(began, t.until, t.account.String(), string(claims.ServiceAccountUID))
}

// ask sends the request for a token.
func (t *accountTokens) ask(ctx context.Context) (string, token.Claims, error) {
	seconds := int64(workTokenSeconds)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	who := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: t.account.Namespace, Name: t.account.Name}}
	if err := t.client.SubResource("token").Create(ctx, who, request); err != nil {
		return "", token.Claims{}, err
	}
	claims, err := token.Parse([]byte(request.Status.Token))
	return request.Status.Token, claims, err
}

// fail notes why there is no new token. The caller holds the lock.
func (t *accountTokens) fail(err error) {
	now := t.clock.Now()
	// Not wrapped: that the ServiceAccount is not found must not be taken for the answer about the object.
	err = errors.New("getting a token of ServiceAccount " + t.account.String() + ", under which works are applied: " +
		err.Error())
	if t.failed == nil {
		t.since = now
		t.logger.Error(err, "works cannot be applied without a token")
	}
	t.failed, t.retryAt = err, now.Add(workTokenPause)
}

// Outage says since when and why there is no new token; empty when there is one.
func (t *accountTokens) Outage() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed == nil {
		return ""
	}
	text := fmt.Sprintf("there is no new token for works since %s: %s", t.since.UTC().Format(time.RFC3339), t.failed)
	if t.token != "" && t.clock.Now().Before(t.until) {
		text += "; the last one is used until " + t.until.UTC().Format(time.RFC3339)
	}
	return text
}

// reject drops a token that the API server does not accept, unless it was replaced meanwhile.
func (t *accountTokens) reject(value string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token == value && !t.clock.Now().Before(t.retryAt) {
		t.token, t.retryAt = "", t.clock.Now().Add(workTokenPause)
	}
}
