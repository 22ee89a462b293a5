// Package lies_test shows what the proxy does that lies to programs.
package lies_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/spokelet/spokelet/test/proxy"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

const patience = 20 * time.Second

// behind starts a control plane and a proxy before it, and returns a client of a user of the proxy.
func behind(t *testing.T) (*sandbox.ControlPlane, *proxy.Proxy, *rest.Config) {
	t.Helper()
	plane, err := sandbox.Start(t.Context(), sandbox.Options{Name: "hub", FrontProxy: true, Log: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(plane.Stop)
	p, err := proxy.New(plane)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close()) })
	config, err := plane.User("jane", "system:masters")
	require.NoError(t, err)
	config.Host = p.Host
	return plane, p, config
}

func clientOf(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client
}

// whoami returns as whom the API server knows a client.
func whoami(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(
		t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	require.NoError(t, err)
	return review.Status.UserInfo.Username
}

func TestTheProxyLies(t *testing.T) {
	t.Parallel()
	plane, p, config := behind(t)
	jane := clientOf(t, config)

	t.Run("about nobody's identity", func(t *testing.T) {
		assert.Equal(t, "jane", whoami(t, jane))
		account, err := plane.ServiceAccount(t.Context(), "default", "default")
		require.NoError(t, err)
		account.Host = p.Host
		assert.Equal(t, "system:serviceaccount:default:default", whoami(t, clientOf(t, account)))
		nobody := rest.AnonymousClientConfig(config)
		nobody.WrapTransport = nil
		anonymous := clientOf(t, nobody)
		_, err = anonymous.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
		require.True(t, apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err), "%v", err)
	})

	configMaps := jane.CoreV1().ConfigMaps("default")
	make1 := func(t *testing.T, name string) (*corev1.ConfigMap, error) {
		t.Helper()
		return configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	}
	count := func(t *testing.T, options metav1.ListOptions) int {
		t.Helper()
		options.FieldSelector = "metadata.name!=kube-root-ca.crt"
		list, err := configMaps.List(t.Context(), options)
		require.NoError(t, err)
		return len(list.Items)
	}

	t.Run("refuses in a row", func(t *testing.T) {
		p.Lie(proxy.Lies{Seed: 1, RetryAfter: 1, Refuse: 4})
		_, err := make1(t, "refused")
		require.Error(t, err)
		p.Honest()
		_, err = make1(t, "refused")
		require.NoError(t, err)
	})

	t.Run("loses answers to writes that were done", func(t *testing.T) {
		p.Lie(proxy.Lies{Seed: 1, Lose: 1})
		_, err := make1(t, "lost")
		require.Error(t, err)
		p.Honest()
		_, err = make1(t, "lost")
		require.True(t, apierrors.IsAlreadyExists(err), "%v", err)
	})

	t.Run("shows an earlier list only where a cache may", func(t *testing.T) {
		before := count(t, metav1.ListOptions{ResourceVersion: "0"})
		_, err := make1(t, "new")
		require.NoError(t, err)
		p.Lie(proxy.Lies{Seed: 1, Stale: 1})
		defer p.Honest()
		assert.Equal(t, before, count(t, metav1.ListOptions{ResourceVersion: "0"}))
		assert.Equal(t, before+1, count(t, metav1.ListOptions{}), "the newest state is asked for")
	})

	t.Run("shows an earlier state, as a second API server that is behind", func(t *testing.T) {
		before, err := configMaps.List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		p.Saw(before.ResourceVersion)
		_, err = make1(t, "newer")
		require.NoError(t, err)
		p.Lie(proxy.Lies{Seed: 1, Behind: 1, BehindBy: time.Nanosecond})
		defer p.Honest()
		earlier, err := configMaps.List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
		require.NoError(t, err)
		assert.Equal(t, before.ResourceVersion, earlier.ResourceVersion)
		assert.Len(t, earlier.Items, len(before.Items))
		now, err := configMaps.List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		assert.Len(t, now.Items, len(before.Items)+1, "the newest state is asked for")
		least := metav1.ListOptions{ResourceVersion: now.ResourceVersion}
		assert.Len(t, listed(t, jane, least), len(before.Items)+1, "one that is behind waits until it has that version")
	})

	t.Run("leaves requests without an answer, of which some were carried out", func(t *testing.T) {
		p.Lie(proxy.Lies{Seed: 1, Stall: 1, HangFor: time.Millisecond})
		for i := range made {
			_, err := make1(t, fmt.Sprintf("stalled-%d", i))
			require.Error(t, err)
		}
		p.Honest()
		done := 0
		for i := range made {
			if _, err := configMaps.Get(t.Context(), fmt.Sprintf("stalled-%d", i), metav1.GetOptions{}); err == nil {
				done++
			}
		}
		assert.Positive(t, done)
		assert.Less(t, done, made)
	})

	t.Run("sends a wrong Date with 503 as a proxy", func(t *testing.T) {
		p.Lie(proxy.Lies{Seed: 1, Away: 0.5, Refuse: 1, Astray: -24 * time.Hour})
		defer p.Honest()
		transport, err := rest.TransportFor(config)
		require.NoError(t, err)
		suite.Eventually(t, suite.True("there must be a 503", func() bool {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.Host+"/api/v1/namespaces", nil)
			require.NoError(t, err)
			response, err := transport.RoundTrip(request)
			require.NoError(t, err)
			defer func() { _ = response.Body.Close() }()
			date, err := http.ParseTime(response.Header.Get("Date"))
			require.NoError(t, err)
			away := time.Since(date) > time.Hour
			if away {
				assert.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
			}
			return away
		}))
	})

	t.Run("is slow", func(t *testing.T) {
		const delay = 100 * time.Millisecond
		p.Lie(proxy.Lies{Seed: 1, Rate: 20_000, Delay: delay})
		defer p.Honest()
		began := time.Now()
		count(t, metav1.ListOptions{})
		assert.Greater(t, time.Since(began), 2*delay)
	})

	for name, c := range map[string]struct {
		lies proxy.Lies
		// most is how many events are shown at most, all whether all of these are.
		most         int
		all, expired bool
	}{
		"shows events late":           {proxy.Lies{Seed: 3, Late: 1, LateBy: 4 * time.Second}, made, true, false},
		"shows events twice":          {proxy.Lies{Seed: 3, Twice: 1}, 2 * made, true, false},
		"loses events, and says so":   {proxy.Lies{Seed: 3, Expire: 1}, made - 1, false, true},
		"hangs":                       {proxy.Lies{Seed: 3, Hang: 1, HangFor: time.Hour}, made - 1, false, false},
		"cuts watches without a word": {proxy.Lies{Seed: 3, Cut: 1}, made - 1, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			p.Lie(c.lies)
			defer p.Honest()
			events := watched(t, jane)
			began := time.Now()
			for i := range made {
				_, err := make1(t, fmt.Sprintf("%s-%d", strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), ",", ""), i))
				require.NoError(t, err)
			}
			if !c.all { // what hangs ends when the proxy becomes honest
				defer time.AfterFunc(patience/4, p.Honest).Stop()
			}
			shown, expired, first := 0, false, time.Duration(0)
			for event := range events.ResultChan() {
				if status, ok := event.Object.(*metav1.Status); ok && status.Code == http.StatusGone {
					expired = true
				}
				if event.Type == watch.Added {
					shown++
				}
				if first == 0 {
					first = time.Since(began)
				}
				if shown == c.most && c.all {
					break
				}
			}
			assert.LessOrEqual(t, shown, c.most)
			assert.Equal(t, c.all, shown == c.most)
			assert.Equal(t, c.expired, expired)
			if c.lies.Late > 0 {
				assert.Greater(t, first, 200*time.Millisecond)
			}
		})
	}
}

// listed lists ConfigMaps.
func listed(t *testing.T, client kubernetes.Interface, options metav1.ListOptions) []corev1.ConfigMap {
	t.Helper()
	list, err := client.CoreV1().ConfigMaps("default").List(t.Context(), options)
	require.NoError(t, err)
	return list.Items
}

// made is how many ConfigMaps are made while a watch is open: more than any lie lets through.
const made = 12

// watched watches the ConfigMaps that are made from now on.
func watched(t *testing.T, client kubernetes.Interface) watch.Interface {
	t.Helper()
	list, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	events, err := client.CoreV1().ConfigMaps("default").Watch(
		t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	require.NoError(t, err)
	t.Cleanup(events.Stop)
	return events
}
