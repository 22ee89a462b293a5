package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// clientOf returns a client for the cluster of a kubeconfig; no file means the cluster of the pod. The client reads the
// certificate that the kubeconfig names again when it changes.
func clientOf(kubeconfig string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.Timeout = 15 * time.Second
	return kubernetes.NewForConfig(config)
}

// run reports until ctx ends, and serves whether the last report was written.
func run(ctx context.Context, o options) error {
	hub, err := clientOf(o.hubKubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of the hub: %w", err)
	}
	managed, err := clientOf(o.kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of the managed cluster: %w", err)
	}
	s := &station{hub: hub, managed: managed, cluster: o.cluster, certificate: o.certificate}
	state := &health{err: errors.New("there was no report yet")}
	server := &http.Server{Addr: o.listen, Handler: state, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	defer func() { _ = server.Close() }()

	ticker := time.NewTicker(o.interval)
	defer ticker.Stop()
	for {
		state.set(s.report(ctx))
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			return fmt.Errorf("serving %s: %w", o.listen, err)
		case <-ticker.C:
		}
	}
}

// health is the result of the last report.
type health struct {
	mu  sync.Mutex
	err error
}

// set records the result of a report, and logs it when it changed.
func (h *health) set(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err == nil && h.err != nil:
		slog.Info("the report is on the hub")
	case err != nil && (h.err == nil || h.err.Error() != err.Error()):
		slog.Error("no report", "error", err)
	}
	h.err = err
}

// ServeHTTP implements http.Handler.
func (h *health) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		http.Error(w, h.err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
}
