package page

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/simulated"
	"github.com/spokelet/spokelet/internal/causes"
)

var update = flag.Bool("update", false, "write the expected pages again")

// site is a page of a simulated hub.
type site struct {
	*simulated.Hub
	*Page

	handler http.Handler
	address string
	// now is the clock of the machine.
	now time.Time
}

// open serves a hub.
func open(t *testing.T, hub *simulated.Hub, err error) *site {
	t.Helper()
	require.NoError(t, err)
	server := httptest.NewServer(hub)
	t.Cleanup(server.Close)
	s := &site{Hub: hub, address: server.URL, now: simulated.Noon()}
	s.Page = New(Options{
		Open: func() (*fleet.Reader, error) {
			source, err := fleet.NewHub(&rest.Config{Host: server.URL})
			return &fleet.Reader{Source: source}, err
		},
		Now: simulated.Noon, Clock: func() time.Time { return s.now }, Every: 5 * time.Second,
	})
	go s.Keep(t.Context())
	s.handler = s.Handler()
	return s
}

// ask makes a request as a browser of this machine does.
func (s *site) ask(method, path, host string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://"+host+path, nil)
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

// get returns a view.
func (s *site) get(t *testing.T, view string) string {
	t.Helper()
	w := s.ask(http.MethodGet, s.Path()+view, "127.0.0.1:1234")
	require.Equal(t, http.StatusOK, w.Code, view)
	return strings.ReplaceAll(w.Body.String(), s.address, "https://hub.example")
}

// everyView are the views of a shop.
func everyView() map[string]string {
	return map[string]string{
		"fleet": "", "addon-moving": "addon?name=metrics", "addon-stopped": "addon?name=logs",
		"addon-stage": to("addon", "name", "logs", "placement", "add-ons/stores", "stage", "waiting"),
		"cluster":     "cluster?name=store-114", "cluster-why": "cluster?name=store-003&addon=logs",
		"cluster-waiting": "cluster?name=store-201", "clusters": "clusters", "clusters-found": "clusters?q=canary",
		"clusters-like": "clusters?like=store-001", "problems": "problems", "problems-code": "problems?code=SPK052",
		"problems-group": to("problems", "code", "SPK052", "addon", "logs", "cluster", "store-001"),
	}
}

func TestTheViewsOfAFleet(t *testing.T) {
	hub, err := simulated.Shop(2)
	broken := open(t, hub, err)
	hub, err = simulated.Healthy()
	well := open(t, hub, err)
	for name, view := range everyView() {
		golden(t, name, broken.get(t, view))
	}
	golden(t, "well-fleet", well.get(t, ""))
	golden(t, "well-addon", well.get(t, "addon?name=logs"))
	golden(t, "well-problems", well.get(t, "problems"))
	assert.Contains(t, well.get(t, ""), "✓ No problem was found")
}

// golden compares a page with the one that is stored.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".html")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o750))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, "if that is meant: go test ./page -update")
}

func TestEachAnswerHasItsHeadersAndAWrongOneSaysNothing(t *testing.T) {
	hub, err := simulated.Shop(0)
	s := open(t, hub, err)
	token := strings.Trim(s.Path(), "/")
	for name, tc := range map[string]struct {
		method, path, host string
		status             int
	}{
		"a view":                       {"GET", s.Path(), "127.0.0.1:1", 200},
		"its head":                     {"HEAD", s.Path(), "127.0.0.1:1", 200},
		"through a tunnel":             {"GET", s.Path(), "localhost:8080", 200},
		"of the other protocol":        {"GET", s.Path(), "[::1]:8080", 200},
		"the script":                   {"GET", s.Path() + "page.js", "localhost", 200},
		"the style":                    {"GET", s.Path() + "page.css", "localhost", 200},
		"the sign":                     {"GET", s.Path() + "icon.svg", "localhost", 200},
		"what is not there":            {"GET", s.Path() + "nothing", "localhost", 404},
		"a cluster that is not there":  {"GET", s.Path() + "cluster?name=nobody", "localhost", 404},
		"an add-on that is not there":  {"GET", s.Path() + "addon?name=nothing", "localhost", 404},
		"a code that is not there":     {"GET", s.Path() + "problems?code=SPK999", "localhost", 404},
		"no token":                     {"GET", "/", "127.0.0.1:1", 403},
		"another path":                 {"GET", "/page.js", "127.0.0.1:1", 403},
		"a part of the token":          {"GET", "/" + token[:20] + "/", "127.0.0.1:1", 403},
		"more than the token":          {"GET", "/" + token + "a/", "127.0.0.1:1", 403},
		"another token":                {"GET", "/" + strings.Repeat("a", len(token)) + "/", "127.0.0.1:1", 403},
		"the token elsewhere":          {"GET", "/x/" + token + "/", "127.0.0.1:1", 403},
		"the host of a stranger":       {"GET", s.Path(), "evil.example:1", 403},
		"one that looks like ours":     {"GET", s.Path(), "127.0.0.1.evil.example", 403},
		"another one that does":        {"GET", s.Path(), "localhost.evil.example:80", 403},
		"another address":              {"GET", s.Path(), "10.0.0.1:80", 403},
		"a write":                      {"POST", s.Path(), "127.0.0.1:1", 405},
		"another write":                {"DELETE", s.Path() + "cluster?name=store-001", "127.0.0.1:1", 405},
		"what browsers ask before one": {"OPTIONS", s.Path(), "127.0.0.1:1", 405},
		"a write without a token":      {"POST", "/", "127.0.0.1:1", 403},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.ask(tc.method, tc.path, tc.host)
			assert.Equal(t, tc.status, got.Code)
			for header, value := range map[string]string{
				"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
					"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
				"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
				"X-Frame-Options": "DENY", "Cross-Origin-Resource-Policy": "same-origin",
			} {
				assert.Equal(t, value, got.Header().Get(header), header)
			}
			assert.Empty(t, got.Header().Get("Access-Control-Allow-Origin"))
			if tc.status == http.StatusForbidden || tc.status == http.StatusMethodNotAllowed {
				assert.Empty(t, got.Body.String())
			}
		})
	}
}

// Who does not know the token makes the hub answer nothing.
func TestWithoutTheTokenNothingIsRead(t *testing.T) {
	hub, err := simulated.Healthy()
	s := open(t, hub, err)
	s.Reset()
	assert.Equal(t, http.StatusForbidden, s.ask(http.MethodGet, "/", "127.0.0.1:1").Code)
	assert.Equal(t, http.StatusForbidden, s.ask(http.MethodGet, s.Path(), "evil.example").Code)
	requests, _ := s.Asked()
	assert.Zero(t, requests)
	assert.Len(t, strings.Trim(s.Path(), "/"), 43, "256 bits")
	assert.NotEqual(t, s.Path(), New(Options{}).Path())
}

func TestWhatMayNotBeReadIsAGapOfThePage(t *testing.T) {
	hub, err := simulated.Shop(2)
	s := open(t, hub, err)
	s.Deny("managedclusteraddons", "placementdecisions", "manifestworks", "validatingadmissionpolicies")
	fleet := s.get(t, "")
	assert.Contains(t, fleet, "Not everything could be read")
	assert.Contains(t, fleet, `{apiGroups: [&#34;addon.open-cluster-management.io&#34;], resources: [managedclusteraddons]`)
	assert.Contains(t, fleet, `href="problems?code=SPK002"`)
	assert.Contains(t, fleet, "on which clusters it is may not be read")
	assert.NotContains(t, fleet, "∅</span> 44", "add-ons that may not be read are not said to be missing")
	assert.Contains(t, s.get(t, "addon?name=logs"), "On which clusters it is may not be read")
	one := s.get(t, "cluster?name=store-003&addon=logs")
	assert.Contains(t, one, "It may not be read, so nothing is said of it")
	assert.NotContains(t, one, "an add-on is not installed")
	assert.Contains(t, one, "They may not be read.")

	s = open(t, hub, nil)
	s.Deny("managedclusters", "managedclusteraddons", "clustermanagementaddons", "placementdecisions", "manifestworks",
		"certificatesigningrequests", "leases", "deployments", "validatingadmissionpolicies",
		"validatingadmissionpolicybindings", "customresourcedefinitions")
	assert.Contains(t, s.get(t, ""), "managedclusters.cluster.open-cluster-management.io may not be read")
	one = s.get(t, "cluster?name=store-003")
	assert.Contains(t, one, "It may not be read, so nothing is said of it")
	assert.NotContains(t, one, "does not exist")
}

func TestAHubThatDoesNotAnswerIsToldAndWhatWasReadStays(t *testing.T) {
	hub, err := simulated.Shop(2)
	s := open(t, hub, err)
	s.Silence(true)
	w := s.ask(http.MethodGet, s.Path(), "localhost")
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.Contains(t, w.Body.String(), "the hub does not answer")
	assert.Contains(t, w.Body.String(), `href="problems?code=SPK001"`)
	s.Silence(false)
	s.now = s.now.Add(time.Minute)
	assert.NotContains(t, s.get(t, ""), "SPK001")
	s.Silence(true)
	s.now = s.now.Add(time.Minute)
	for _, view := range []string{"", "cluster?name=store-003&addon=logs"} {
		got := s.get(t, view)
		assert.Contains(t, got, "SPK001")
		assert.Contains(t, got, "What you see is older")
		assert.Contains(t, got, "store-003")
	}
}

// Each state has a sign and a word of its own, so that nobody needs colours.
func TestEachStateHasASign(t *testing.T) {
	for _, standing := range report.Standings() {
		assert.NotEmpty(t, sign(standing), standing)
		assert.Contains(t, barOrder(), standing)
	}
	for _, stage := range stageOrder() {
		assert.NotEmpty(t, sign(stage), stage)
	}
	for _, state := range []report.State{report.OK, report.Failed, report.Warning, report.Waiting} {
		assert.NotEmpty(t, sign(state), state)
	}
}

func TestEachCodeIsExplainedByThePageOfMessages(t *testing.T) {
	for code := range causes.Titles() {
		text := explained(code)
		require.NotEmpty(t, text, code)
		for _, paragraph := range text {
			for _, part := range paragraph {
				assert.NotContains(t, part.Text, "](")
				assert.NotContains(t, part.Text, "`")
				assert.NotContains(t, part.Text, "###")
			}
		}
	}
	assert.Nil(t, explained("SPK999"))
	assert.Equal(t, "a b c [d", unlinked("a [b](x.md#y) c [d"))
}

func TestTheScriptAndTheStyleAreSmall(t *testing.T) {
	for name, most := range map[string]int{"page.js": 6 << 10, "page.css": 16 << 10, "icon.svg": 1 << 10} {
		raw, err := files.ReadFile(name)
		require.NoError(t, err)
		assert.Less(t, len(raw), most, name)
		for _, address := range []string{"http://", "https://", "//cdn", "@import"} {
			text := strings.ReplaceAll(string(raw), "http://www.w3.org/2000/svg", "")
			assert.NotContains(t, text, address, "nothing is asked of anybody but this page")
		}
	}
}
