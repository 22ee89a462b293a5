package browser

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
	"k8s.io/client-go/rest"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/page"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/simulated"
)

// Find returns the path of a browser; empty for none.
func Find() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "headless-shell"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Start starts a browser, which ends with the context that it returns. It has no sandbox: that takes rights which root
// in a container has not, and what it opens is our own.
func Start(ctx context.Context, path string) (context.Context, context.CancelFunc) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("hide-scrollbars", true))
	allocated, stop := chromedp.NewExecAllocator(ctx, options...)
	tab, end := chromedp.NewContext(allocated)
	return tab, func() {
		end()
		stop()
	}
}

// named is a hub with the name of an example.
type named struct{ fleet.Source }

// Name implements fleet.Source.
func (named) Name() string { return "https://hub.example:6443" }

// Serve serves the page of a simulated hub until the context ends, and returns its address. The fleet is read again
// after every.
func Serve(ctx context.Context, hub *simulated.Hub, every time.Duration) (string, <-chan error, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listening: %w", err)
	}
	api := &http.Server{Handler: hub, ReadHeaderTimeout: time.Minute}
	go func() { _ = api.Serve(l) }() // It ends with the context.
	context.AfterFunc(ctx, func() { _ = api.Close() })
	p := page.New(page.Options{
		Open: func() (*fleet.Reader, error) {
			source, err := fleet.NewHub(&rest.Config{Host: "http://" + l.Addr().String()})
			return &fleet.Reader{Source: named{source}}, err
		},
		Now: simulated.Noon, Clock: time.Now, Every: every,
	})
	own, err := page.Listen(ctx, 0)
	if err != nil {
		return "", nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Serve(ctx, own) }()
	return "http://" + own.Addr().String() + p.Path(), ended, nil
}

// Call is the action that a command of the protocol is.
func Call[P any](command cdp.Command[P, cdp.Empty], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, command, params)
		return err
	})
}
