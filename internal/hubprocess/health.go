package hubprocess

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
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
	// Fail returns why the program is not ready; nil when it is.
	Fail func(ctx context.Context) error
}

// AddChecks adds a server at an address for /healthz, which always succeeds, and for /readyz, which reports the cause
// of each failed check. It adds none if the address is empty or Off.
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
	return Check{"cache", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, syncTimeout)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the cache is not filled yet")
		}
		return nil
	}}
}

// Health answers /healthz and /readyz.
func Health(checks []Check) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		text, code := "", http.StatusOK
		for _, one := range checks {
			if err := one.Fail(r.Context()); err != nil {
				text, code = text+fmt.Sprintf("[-]%s: %v\n", one.Name, err), http.StatusServiceUnavailable
				continue
			}
			text += fmt.Sprintf("[+]%s ok\n", one.Name)
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(code)
		_, _ = fmt.Fprint(w, text)
	})
	return mux
}
