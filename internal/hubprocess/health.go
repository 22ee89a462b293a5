package hubprocess

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/probe"
)

const (
	// syncTimeout is how long a readiness request waits for the cache.
	syncTimeout = time.Second
	// headerTimeout is how long a client may take to send its request.
	headerTimeout = 10 * time.Second
)

// Off is the address of a disabled endpoint.
const Off = "0"

// Check is a condition for a program to be ready.
type Check struct {
	// Name is the name of the check in the answer of /readyz.
	Name string
	// Fail returns why the program is not ready; nil when it is. Nil is a check that only has notes.
	Fail func(ctx context.Context) error
	// Notes returns lines that inform and fail nothing, for /readyz?verbose. Optional.
	Notes func() []string
}

// AddChecks adds a server at an address for /healthz, which always succeeds, and for /readyz, which reports the cause
// of each failed check to clients on the loopback address. It adds none if the address is empty or Off.
func AddChecks(mgr ctrl.Manager, address string, checks ...Check) error {
	if address == Off || address == "" {
		return nil
	}
	server := &manager.Server{Name: "health probe", Server: &http.Server{
		Addr: address, Handler: Health(checks), ReadHeaderTimeout: headerTimeout,
	}}
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("registering the server of health probes: %w", err)
	}
	return nil
}

// CacheCheck fails until the cache is synced.
func CacheCheck(mgr ctrl.Manager) Check {
	return Check{Name: "cache", Fail: func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, syncTimeout)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the cache is not filled yet")
		}
		return nil
	}}
}

// ObjectsCheck fails when a kind cannot be listed or watched for a minute. Its notes are the objects that cannot be
// decoded.
func ObjectsCheck(objects *decode.Objects) Check {
	return Check{
		Name: "watches", Fail: func(context.Context) error { return objects.Failing() },
		Notes: func() []string {
			var notes []string
			for _, bad := range objects.Bad() {
				notes = append(notes, "cannot decode "+bad.String())
			}
			return notes
		},
	}
}

// Health answers /healthz and /readyz.
func Health(checks []Check) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) { probe.Respond(w, r, true) })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		var lines []probe.Line
		good := true
		for _, one := range checks {
			if one.Fail != nil {
				line := probe.Line{Name: one.Name, Text: "ok"}
				if err := one.Fail(r.Context()); err != nil {
					line.Text, line.State, good = err.Error(), probe.Failed, false
				}
				lines = append(lines, line)
			}
			if one.Notes == nil {
				continue
			}
			for _, note := range one.Notes() {
				lines = append(lines, probe.Line{Name: one.Name, Text: note, State: probe.Note})
			}
		}
		probe.Respond(w, r, good, lines...)
	})
	return mux
}
