// Profiled is the hub manager with a port at which a benchmark takes profiles: with the first argument
// --profile-address=HOST:PORT it serves /start and /stop for the processor time between them, and /heap. All other
// arguments are those of spokelet-hub.
package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spokelet/spokelet/hub"
)

// sampled is how many bytes are allocated for each sample of the heap: the default is too much for one of 20 MiB.
const sampled = 16 << 10

func main() {
	runtime.MemProfileRate = sampled
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var rest []string
	for _, arg := range args {
		address, found := strings.CutPrefix(arg, "--profile-address=")
		if !found {
			rest = append(rest, arg)
			continue
		}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("serving profiles: %w", err)
		}
		server := &http.Server{Handler: profiles(), ReadHeaderTimeout: time.Second}
		go func() { _ = server.Serve(listener) }()
		defer func() { _ = server.Close() }()
	}
	config, err := hub.ParseFlags(rest, os.Stdout)
	if err != nil {
		return err
	}
	return hub.Run(ctx, config)
}

// profiles serves the profiles.
func profiles() http.Handler {
	var mu sync.Mutex
	var processor bytes.Buffer
	mux := http.NewServeMux()
	mux.HandleFunc("/start", func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		processor.Reset()
		if err := pprof.StartCPUProfile(&processor); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
		}
	})
	mux.HandleFunc("/stop", func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		pprof.StopCPUProfile()
		_, _ = processor.WriteTo(w)
	})
	mux.HandleFunc("/heap", func(w http.ResponseWriter, _ *http.Request) {
		runtime.GC()
		_ = pprof.Lookup("heap").WriteTo(w, 0)
	})
	return mux
}
