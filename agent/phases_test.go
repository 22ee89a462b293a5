package agent

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/spokelet/spokelet/agent/hubconn"
	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/roundtrip"
)

// quietFor is how long a test looks that nothing happens any more.
const quietFor = 300 * time.Millisecond

// played is an agent that runs its phases on a cluster without objects. Its clock stands still,
// so a pause lasts until the test ends.
type played struct {
	*agent
	dir                       string
	clock                     *clocktesting.FakeClock
	chosen, requests, waiting atomic.Int64
	serving, tried            atomic.Int64
}

// discovery holds what an API server says of the kinds that it serves, lists the kinds of their lists.
var (
	discovery = map[string]string{
		"/api": `{"kind":"APIVersions","versions":["v1"]}`,
		"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[
			{"name":"secrets","kind":"Secret","namespaced":true},{"name":"nodes","kind":"Node"}]}`,
		"/apis": `{"kind":"APIGroupList","groups":[{"name":"work.open-cluster-management.io","versions":[
			{"groupVersion":"work.open-cluster-management.io/v1","version":"v1"}]}]}`,
		"/apis/work.open-cluster-management.io/v1": `{"kind":"APIResourceList",
			"groupVersion":"work.open-cluster-management.io/v1","resources":[
			{"name":"appliedmanifestworks","kind":"AppliedManifestWork"},
			{"name":"manifestworks","kind":"ManifestWork","namespaced":true}]}`,
	}
	lists = map[string]string{
		"secrets":              `"kind":"SecretList","apiVersion":"v1"`,
		"nodes":                `"kind":"NodeList","apiVersion":"v1"`,
		"appliedmanifestworks": `"kind":"AppliedManifestWorkList","apiVersion":"work.open-cluster-management.io/v1"`,
	}
)

// emptyHost answers like an API server without objects; watches stay open.
func (p *played) emptyHost(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.requests.Add(1)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Query().Get("sendInitialEvents") == "true":
			http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`,
				http.StatusUnprocessableEntity)
		case r.URL.Query().Get("watch") != "":
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case discovery[r.URL.Path] != "":
			_, _ = fmt.Fprint(w, discovery[r.URL.Path])
		case lists[path.Base(r.URL.Path)] != "":
			_, _ = fmt.Fprintf(w, `{%s,"metadata":{"resourceVersion":"1"},"items":[]}`, lists[path.Base(r.URL.Path)])
		default:
			http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`,
				http.StatusNotFound)
		}
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.URL
}

// play prepares an agent; change changes its configuration, and run runs its phases until the test ends.
func play(t *testing.T, change func(p *played, c *Config)) *played {
	t.Helper()
	p := &played{dir: t.TempDir(), clock: clocktesting.NewFakeClock(time.Now())}
	config := DefaultConfig()
	config.Namespace, config.LeaderElect = "agent", false
	config.Kubeconfig = p.write(t, "host", fmt.Sprintf(plainKubeconfig, p.emptyHost(t)))
	change(p, &config)
	a, err := newAgent(config)
	require.NoError(t, err)
	a.clock, a.hubClock = p.clock, hubconn.NewClock(p.clock)
	p.agent = a
	return p
}

func (p *played) run(t *testing.T) {
	t.Helper()
	logger := funcr.New(func(_, line string) {
		switch {
		case strings.Contains(line, `"choosing again"`):
			p.chosen.Add(1)
		case strings.Contains(line, `"trying again"`):
			p.tried.Add(1)
		case strings.Contains(line, `"waiting"`):
			p.waiting.Add(1)
		case strings.Contains(line, `"serving works"`):
			p.serving.Add(1)
		}
	}, funcr.Options{})
	ctx, cancel := context.WithCancel(ctrl.LoggerInto(t.Context(), logger))
	done := make(chan struct{})
	go func() { defer close(done); _ = p.runPhases(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

// write writes a file beside the others and returns its path.
func (p *played) write(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(p.dir, name)
	require.NoError(t, os.WriteFile(file+".new", []byte(content), 0o600))
	require.NoError(t, os.Rename(file+".new", file))
	return file
}

// staysQuiet fails the test if the agent goes on choosing, after the few choices that are right, or sending requests.
func (p *played) staysQuiet(t *testing.T, choices int64) {
	t.Helper()
	require.Never(t, func() bool { return p.chosen.Load() > choices || p.requests.Load() > 60 }, quietFor, 5*time.Millisecond,
		"phases: %d, requests: %d", p.chosen.Load(), p.requests.Load())
}

const plainKubeconfig = `{"apiVersion":"v1","kind":"Config","current-context":"c",
"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
"clusters":[{"name":"c","cluster":{"server":%q}}],"users":[{"name":"u","user":{"token":"t"}}]}`

// kubeconfigOf returns a kubeconfig with fields of its cluster and its user.
func kubeconfigOf(cluster, user string) string {
	return `{"apiVersion":"v1","kind":"Config","current-context":"c",
"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
"clusters":[{"name":"c","cluster":{` + cluster + `}}],"users":[{"name":"u","user":{` + user + `}}]}`
}

// brokenKubeconfigs returns kubeconfigs that cannot be used, each for a reason of its own.
func brokenKubeconfigs(t *testing.T) map[string]string {
	t.Helper()
	one, other := pairFor(t, "one"), pairFor(t, "other")
	data := base64.StdEncoding.EncodeToString
	const server = `"server":"https://spoke.invalid:6443"`
	certificate := func(certificate, key []byte) string {
		return `"client-certificate-data":"` + data(certificate) + `","client-key-data":"` + data(key) + `"`
	}
	return map[string]string{
		"empty":                              "",
		"no YAML":                            "{{",
		"a list":                             "[]",
		"another kind":                       `{"apiVersion":"v1","kind":"Secret"}`,
		"no context":                         `{"apiVersion":"v1","kind":"Config"}`,
		"no server":                          kubeconfigOf(``, `"token":"t"`),
		"an address that is none":            kubeconfigOf(`"server":"https://%zz"`, `"token":"t"`),
		"a proxy that is none":               kubeconfigOf(server+`,"proxy-url":"::"`, `"token":"t"`),
		"a CA that is no PEM":                kubeconfigOf(server+`,"certificate-authority-data":"`+data([]byte("CA"))+`"`, `"token":"t"`),
		"a CA in a file that is missing":     kubeconfigOf(server+`,"certificate-authority":"ca.crt"`, `"token":"t"`),
		"a CA and no TLS check":              kubeconfigOf(server+`,"insecure-skip-tls-verify":true,"certificate-authority-data":"`+data(one.Certificate)+`"`, `"token":"t"`),
		"a certificate that is no PEM":       kubeconfigOf(server, certificate([]byte("x"), one.Key)),
		"a key that is no PEM":               kubeconfigOf(server, certificate(one.Certificate, []byte("x"))),
		"the key of another certificate":     kubeconfigOf(server, certificate(one.Certificate, other.Key)),
		"a certificate without its key":      kubeconfigOf(server, `"client-certificate-data":"`+data(one.Certificate)+`"`),
		"a certificate in a file elsewhere":  kubeconfigOf(server, `"client-certificate":"/etc/passwd","client-key":"/etc/passwd"`),
		"a token in a file that is missing":  kubeconfigOf(server, `"tokenFile":"token"`),
		"a token in a file that is empty":    kubeconfigOf(server, `"tokenFile":"empty"`),
		"a password and a token":             kubeconfigOf(server, `"token":"t","username":"u","password":"p"`),
		"a program to run":                   kubeconfigOf(server, `"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"true"}`),
		"a user without anything, and no CA": kubeconfigOf(server+`,"certificate-authority-data":"!"`, ``),
	}
}

// Shows: registration/quiet-phases
func TestAnAgentWithABrokenInputWaits(t *testing.T) {
	hosted := func(content string) func(t *testing.T, p *played, c *Config) {
		return func(t *testing.T, p *played, c *Config) {
			t.Helper()
			c.SpokeKubeconfig = p.write(t, "spoke", content)
		}
	}
	alone := func(t *testing.T, c *Config) {
		t.Helper()
		c.Duties = Duties{Works: true}
		c.HubKubeconfig = filepath.Join(mounted(t, csr.ClusterUser("c1", "a1"), nil), "kubeconfig")
		c.WorkSourceConfig = c.HubKubeconfig
	}
	// Each way to be broken is tried at the start and after a good one, in each place.
	kinds := map[string]func(content string) func(t *testing.T, p *played, c *Config){
		"bootstrap": func(content string) func(*testing.T, *played, *Config) {
			return func(t *testing.T, p *played, c *Config) {
				t.Helper()
				c.BootstrapKubeconfig = p.write(t, "bootstrap", content)
			}
		},
		"managed cluster": hosted,
		"managed cluster, works alone": func(content string) func(*testing.T, *played, *Config) {
			return func(t *testing.T, p *played, c *Config) {
				t.Helper()
				alone(t, c)
				hosted(content)(t, p, c)
			}
		},
		"hub, works alone": func(content string) func(*testing.T, *played, *Config) {
			return func(t *testing.T, p *played, c *Config) {
				t.Helper()
				alone(t, c)
				c.HubKubeconfig = p.write(t, "hub", content)
				c.WorkSourceConfig = c.HubKubeconfig
			}
		},
	}
	for kind, with := range kinds {
		for name, content := range brokenKubeconfigs(t) {
			t.Run(kind+" is broken: "+name, func(t *testing.T) {
				t.Parallel()
				p := play(t, func(p *played, c *Config) {
					p.write(t, "empty", "")
					with(content)(t, p, c)
				})
				p.run(t)
				p.staysQuiet(t, 1)
				assert.LessOrEqual(t, p.tried.Load(), int64(1), "then it pauses")
			})
		}
	}
	for name, content := range brokenKubeconfigs(t) {
		t.Run("managed cluster, after a good one: "+name, func(t *testing.T) {
			t.Parallel()
			p := play(t, func(p *played, c *Config) {
				p.write(t, "empty", "")
				hosted(fmt.Sprintf(plainKubeconfig, "https://spoke.invalid:6443"))(t, p, c)
			})
			p.run(t)
			require.Eventually(t, func() bool { return p.waiting.Load() > 0 }, 10*time.Second, time.Millisecond)
			p.write(t, "spoke", content)
			p.staysQuiet(t, 0)
		})
	}
}

// expiring returns an agent that only does works, whose certificate is valid for an hour by the clock of its hub, which
// is the clock of the machine, and whose own clock is ahead of that.
func expiring(t *testing.T, ahead, left time.Duration) *played {
	t.Helper()
	return play(t, func(p *played, c *Config) {
		c.Duties = Duties{Works: true}
		p.clock.SetTime(time.Now().Add(ahead))
		pair := pairUntil(t, csr.ClusterUser("c1", "a1"), time.Now().Add(left))
		hub := httptest.NewTLSServer(http.NotFoundHandler())
		t.Cleanup(hub.Close)
		server := issue.HubServer{
			Cluster: "hub", Server: hub.URL,
			CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hub.Certificate().Raw}),
		}
		kubeconfig, err := server.Kubeconfig()
		require.NoError(t, err)
		p.write(t, "tls.crt", string(pair.Certificate))
		p.write(t, "tls.key", string(pair.Key))
		p.write(t, "cluster-name", "c1")
		c.WorkSourceConfig = p.write(t, "kubeconfig", string(kubeconfig))
	})
}

// Shows: registration/quiet-phases
func TestWhoDoesWorksJudgesItsCertificateByTheTimeOfTheHub(t *testing.T) {
	t.Run("its clock is behind, and the certificate expired", func(t *testing.T) {
		p := expiring(t, -3*time.Hour, -time.Hour)
		learn(t, p)
		p.run(t)
		require.Eventually(t, func() bool { return p.waiting.Load() == 1 }, 10*time.Second, time.Millisecond)
		p.staysQuiet(t, 1)
		assert.LessOrEqual(t, p.serving.Load(), int64(1))
	})
	t.Run("its clock is ahead, and the certificate is valid", func(t *testing.T) {
		p := expiring(t, 3*time.Hour, time.Hour)
		p.run(t)
		require.Eventually(t, func() bool { return p.serving.Load() == 1 }, 10*time.Second, time.Millisecond)
		p.staysQuiet(t, 1)
	})
	t.Run("the same, and the hub is away at first", func(t *testing.T) {
		var away atomic.Bool
		away.Store(true)
		p := expiring(t, 3*time.Hour, time.Hour)
		p.config.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
			return roundtrip.Func(func(request *http.Request) (*http.Response, error) {
				if away.Load() {
					return nil, errors.New("no route")
				}
				return next.RoundTrip(request)
			})
		}
		p.run(t)
		require.Eventually(t, func() bool { return p.waiting.Load() == 1 && p.clock.HasWaiters() }, 10*time.Second, time.Millisecond)
		away.Store(false)
		require.Eventually(t, func() bool { p.clock.Step(time.Second); return p.serving.Load() == 1 },
			10*time.Second, 5*time.Millisecond)
	})
}

// learn makes the agent know the time at the hub, as after any response of it.
func learn(t *testing.T, p *played) {
	t.Helper()
	answer, err := (&http.Client{Transport: p.hubClock.Wrap(http.DefaultTransport)}).Get(p.host.Host)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
}

// Shows: registration/quiet-phases
func TestPhasesThatEndAllTheTimePauseLongerAndLonger(t *testing.T) {
	p := play(t, func(*played, *Config) {})
	var phases atomic.Int64
	ctx, cancel := context.WithCancel(ctrl.LoggerInto(t.Context(), logr.Discard()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = p.repeat(ctx, func(context.Context, time.Duration) error {
			phases.Add(1)
			return phaseOverError("an input changed")
		})
	}()
	defer func() { cancel(); <-done }()
	count := int64(freeEnds)
	for _, pause := range []time.Duration{
		time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, lastPause, lastPause,
	} {
		count++
		require.Eventually(t, func() bool { return phases.Load() == count && p.clock.HasWaiters() }, 10*time.Second, time.Millisecond)
		p.clock.Step(pause - time.Millisecond)
		require.True(t, p.clock.HasWaiters(), "a pause of %s", pause)
		p.clock.Step(time.Millisecond)
	}
}

func TestPausesBetweenPhases(t *testing.T) {
	var p pacing
	for range 3 {
		p.failed(0)
	}
	assert.Equal(t, 8*time.Second, p.pause())
	p.failed(3 * lastPause)
	assert.Equal(t, firstPause, p.pause(), "after a phase that lasted")
	p.failed(0)
	assert.Zero(t, p.planned(time.Second))
	assert.Equal(t, firstPause, p.pause(), "a phase that ended by plan has not failed")
	for range 2 * freeEnds {
		p.planned(time.Second)
	}
	assert.Zero(t, p.planned(lastPause), "a phase that lasted begins a new count")
	assert.Zero(t, p.planned(0))
}

// Shows: work/eviction-zero
func TestNoGracePeriodEvictsAtOnce(t *testing.T) {
	for given, want := range map[time.Duration]time.Duration{0: time.Nanosecond, time.Minute: time.Minute} {
		p := play(t, func(_ *played, c *Config) { c.EvictionGracePeriod = given })
		mgr, err := p.newManager(ctrl.LoggerInto(t.Context(), logr.Discard()))
		require.NoError(t, err)
		r, err := p.works(t.Context(), mgr, "https://hub.example.com", "c1")
		require.NoError(t, err)
		assert.Equal(t, want, r.EvictionGrace, "zero would be the default of an hour")
	}
}

// Shows: registration/panics-contained
func TestAPanicOfAPartEndsItsPhaseAndNotTheProcess(t *testing.T) {
	p := play(t, func(*played, *Config) {})
	var phases atomic.Int64
	ctx, cancel := context.WithCancel(ctrl.LoggerInto(t.Context(), logr.Discard()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = p.repeat(ctx, func(ctx context.Context, _ time.Duration) error {
			phases.Add(1)
			mgr, err := p.newManager(ctx)
			if err == nil {
				err = mgr.Add(manager.RunnableFunc(func(context.Context) error { panic("a defect") }))
			}
			if err != nil {
				return err
			}
			return finish(ctx, mgr)
		})
	}()
	defer func() { cancel(); <-done }()
	require.Eventually(t, func() bool { return p.clock.HasWaiters() }, 10*time.Second, time.Millisecond, "it pauses")
	p.clock.Step(firstPause)
	require.Eventually(t, func() bool { return phases.Load() == 2 }, 10*time.Second, time.Millisecond)
}
