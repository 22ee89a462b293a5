package hub

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

// check is a condition for the hub manager to be ready.
type check struct {
	name string
	fail func(ctx context.Context) error
}

// addChecks adds a server for /healthz, which always succeeds, and for /readyz, which reports the cause of each failed
// check.
func addChecks(mgr ctrl.Manager, c Config, checks ...check) error {
	if c.HealthAddress == off || c.HealthAddress == "" {
		return nil
	}
	server := &manager.Server{Name: "health probe", Server: &http.Server{
		Addr: c.HealthAddress, Handler: health(checks), ReadHeaderTimeout: headerTimeout,
	}}
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("registering the server of health probes: %w", err)
	}
	return nil
}

// cacheCheck fails until the cache is synced.
func cacheCheck(mgr ctrl.Manager) check {
	return check{"cache", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, syncTimeout)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the cache is not filled yet")
		}
		return nil
	}}
}

// health answers /healthz and /readyz.
func health(checks []check) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		text, code := "", http.StatusOK
		for _, one := range checks {
			if err := one.fail(r.Context()); err != nil {
				text, code = text+fmt.Sprintf("[-]%s: %v\n", one.name, err), http.StatusServiceUnavailable
				continue
			}
			text += fmt.Sprintf("[+]%s ok\n", one.name)
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(code)
		_, _ = fmt.Fprint(w, text)
	})
	return mux
}
