package agent

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// apiServer issues numbered tokens of an hour, and accepts the last one.
type apiServer struct {
	t     *testing.T
	clock *testclock.FakeClock

	mu              sync.Mutex
	issued, rejects int
	failure         error
	// asked receives each request for a token, and answer lets one go on; without them none waits.
	asked, answer chan struct{}
	// sent are the tokens of the requests.
	sent []string
}

func (s *apiServer) name(n int) string {
	claims := fmt.Sprintf(`{"sub":"system:serviceaccount:ns:works","iat":1000,"exp":4600,"jti":"%d",
		"kubernetes.io":{"serviceaccount":{"uid":"u"}}}`, n)
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

func (s *apiServer) RoundTrip(request *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, request.Header.Get("Authorization"))
	code := http.StatusOK
	if s.rejects > 0 {
		s.rejects--
		code = http.StatusUnauthorized
	}
	return &http.Response{StatusCode: code, Body: http.NoBody}, nil
}

// issue answers the request for a token.
func (s *apiServer) issue(
	ctx context.Context, _ client.Client, sub string, who, request client.Object, _ ...client.SubResourceCreateOption,
) error {
	assert.Equal(s.t, "token ns/works", sub+" "+client.ObjectKeyFromObject(who).String())
	s.mu.Lock()
	asked, answer := s.asked, s.answer
	s.mu.Unlock()
	if asked != nil {
		asked <- struct{}{}
		select {
		case <-answer:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil {
		return s.failure
	}
	wanted, is := request.(*authenticationv1.TokenRequest)
	if !is {
		return fmt.Errorf("%T is no request for a token", request)
	}
	s.issued++
	wanted.Status.Token = s.name(s.issued)
	return nil
}

// hang makes requests for tokens wait.
func (s *apiServer) hang() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked, s.answer = make(chan struct{}, 10), make(chan struct{})
}

// newTokens returns the tokens of a server, and what sends requests with them.
func newTokens(t *testing.T) (*apiServer, *accountTransport) {
	t.Helper()
	s := &apiServer{t: t, clock: testclock.NewFakeClock(time.Unix(5000, 0))}
	tokens := &accountTokens{
		account: types.NamespacedName{Namespace: "ns", Name: "works"}, clock: s.clock, logger: logr.Discard(),
		client: fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{SubResourceCreate: s.issue}).Build(),
	}
	return s, &accountTransport{tokens: tokens, next: s}
}

// send sends a request of a work.
func (s *apiServer) send(ctx context.Context, transport *accountTransport) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://api", nil)
	if err != nil {
		return err
	}
	answer, err := transport.RoundTrip(request)
	assert.Empty(s.t, request.Header, "the request of the caller stays")
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// settle waits for the end of the request for a token that is under way.
func settle(t *testing.T, tokens *accountTokens) {
	t.Helper()
	tokens.mu.Lock()
	pending := tokens.pending
	tokens.mu.Unlock()
	if pending == nil {
		return
	}
	select {
	case <-pending:
	case <-t.Context().Done():
		require.Fail(t, "the request for a token does not end")
	}
}

func TestWorksAreAppliedWithATokenThatIsRenewed(t *testing.T) {
	s, transport := newTokens(t)
	send := func() error {
		t.Helper()
		err := s.send(t.Context(), transport)
		settle(t, transport.tokens)
		return err
	}
	last := func() string { return s.sent[len(s.sent)-1] }

	s.failure = apierrors.NewNotFound(schema.GroupResource{Resource: "serviceaccounts"}, "works")
	err := send()
	require.ErrorContains(t, err, `getting a token of ServiceAccount ns/works, under which works are applied: serviceaccounts `+
		`"works" not found`)
	assert.False(t, apierrors.IsNotFound(err), "it says nothing about the object")
	assert.Empty(t, s.sent)
	s.failure = nil
	require.Error(t, send(), "not asked again at once")
	s.clock.Step(workTokenPause)
	require.NoError(t, send())
	require.NoError(t, send())
	assert.Equal(t, 1, s.issued, "a token is kept")

	s.clock.Step(50 * time.Minute)
	require.NoError(t, send())
	require.NoError(t, send())
	assert.Equal(t, "Bearer "+s.name(2), last(), "it is replaced before its end")
	s.clock.Step(50 * time.Minute)
	s.failure = errors.New("down")
	require.NoError(t, send())
	require.NoError(t, send())
	assert.Equal(t, "Bearer "+s.name(2), last(), "without a new one the old one is used")
	s.failure = nil
	s.clock.Step(workTokenPause)
	require.NoError(t, send())
	assert.Equal(t, 3, s.issued)

	s.rejects = 2
	require.NoError(t, send())
	require.NoError(t, send())
	assert.Equal(t, 4, s.issued, "a rejected token is replaced, but not over and over")
	require.NoError(t, send())
	assert.Equal(t, "Bearer "+s.name(4), last())
}

func TestWorksGoOnWhileARequestForATokenHangs(t *testing.T) {
	s, transport := newTokens(t)
	require.NoError(t, s.send(t.Context(), transport))
	s.hang()
	s.clock.Step(50 * time.Minute)
	for range 3 {
		require.NoError(t, s.send(t.Context(), transport))
		assert.Equal(t, "Bearer "+s.name(1), s.sent[len(s.sent)-1], "the last token is used")
	}
	<-s.asked
	close(s.answer)
	settle(t, transport.tokens)
	assert.Empty(t, s.asked, "one request for a token is under way")
	require.NoError(t, s.send(t.Context(), transport))
	assert.Equal(t, "Bearer "+s.name(2), s.sent[len(s.sent)-1])
}

func TestWhoWaitsForATokenWaitsNoLongerThanAsked(t *testing.T) {
	s, transport := newTokens(t)
	s.hang()
	var others sync.WaitGroup
	for range 3 {
		others.Go(func() { assert.NoError(t, s.send(t.Context(), transport)) })
	}
	<-s.asked
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.send(impatient, transport)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "waiting for a token of ServiceAccount ns/works")
	assert.Empty(t, transport.tokens.Outage(), "that says nothing about the token")
	close(s.answer)
	others.Wait()
	assert.Equal(t, 1, s.issued, "one token serves all who waited")
}

// The first of those who wait starts the request for a token. When it gives up, the others still get the token.
func TestATokenComesThoughWhoAskedFirstGaveUp(t *testing.T) {
	s, transport := newTokens(t)
	s.hang()
	first, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.send(first, transport) }()
	<-s.asked
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	close(s.answer)
	require.NoError(t, s.send(t.Context(), transport))
	assert.Empty(t, s.asked)
}

func TestARequestForATokenThatHangsEndsAndIsTold(t *testing.T) {
	s, transport := newTokens(t)
	s.hang()
	ended := make(chan error, 1)
	go func() { ended <- s.send(t.Context(), transport) }()
	<-s.asked
	s.clock.Step(workTokenLimit)
	const why = "getting a token of ServiceAccount ns/works, under which works are applied: no answer within 10s"
	require.EqualError(t, <-ended, why)
	assert.Equal(t, "there is no new token for works since 1970-01-01T01:23:30Z: "+why, transport.tokens.Outage())

	close(s.answer)
	s.clock.Step(workTokenPause)
	require.NoError(t, s.send(t.Context(), transport))
	assert.Empty(t, transport.tokens.Outage(), "it is over")

	s.failure = errors.New("down")
	s.clock.Step(50 * time.Minute)
	require.NoError(t, s.send(t.Context(), transport))
	settle(t, transport.tokens)
	assert.Equal(t, "there is no new token for works since 1970-01-01T02:13:35Z: getting a token of ServiceAccount ns/works, "+
		"under which works are applied: down; the last one is used until 1970-01-01T02:23:35Z", transport.tokens.Outage())
	s.clock.Step(10 * time.Minute)
	require.ErrorContains(t, s.send(t.Context(), transport), "down")
	assert.NotContains(t, transport.tokens.Outage(), "until", "a token that has ended is of no use")
	assert.Contains(t, transport.tokens.Outage(), "since 1970-01-01T02:13:35Z", "the first failure counts")
}

func TestTheServiceAccountOfWorks(t *testing.T) {
	for value, want := range map[string]string{"": "ns/", "works": "ns/works", "other/works": "other/works"} {
		c := Config{Namespace: "ns", WorkServiceAccount: value}
		assert.Equal(t, want, c.workAccount().String())
	}
}
