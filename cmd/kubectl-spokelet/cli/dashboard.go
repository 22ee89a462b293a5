package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/page"
)

// dashboard returns the command that serves the fleet as pages for a browser of this machine.
func (p *Plugin) dashboard() *cobra.Command {
	var port uint16
	var open bool
	c := &cobra.Command{
		Use: "dashboard", Args: noArgs, Short: "Show the fleet in a browser, for you alone and read-only",
		Long: "dashboard serves the fleet as pages of HTML: all add-ons and clusters, one add-on with its rollout, one " +
			"cluster with what why says of it, and the problems by their codes. It reads with your rights, listens on the " +
			"loopback interface alone, and answers no request that does not have the address that it prints. It ends with " +
			"Ctrl-C.",
		Example: "  kubectl spokelet dashboard\n  kubectl spokelet dashboard --from fleet.tgz\n" +
			"  kubectl spokelet dashboard --port 8080 --open=false",
		RunE: func(c *cobra.Command, _ []string) error { return p.served(c.Context(), int(port), open) },
	}
	c.Flags().Uint16Var(&port, "port", 0, "the port to listen on; 0 means a free one")
	c.Flags().BoolVar(&open, "open", true, "open the page in a browser")
	return c
}

// served serves the fleet until the context ends.
func (p *Plugin) served(ctx context.Context, port int, open bool) error {
	if p.output != "" {
		return fmt.Errorf("%w: dashboard writes no answer, so that it has no --output", errUse)
	}
	r, err := p.reader()
	if err != nil {
		return err
	}
	o := page.Options{Bundle: p.from != "", Now: p.Now, Clock: p.Now, Every: answerAgain}
	o.Open = func() (*fleet.Reader, error) { return readerOf(p.config, false) }
	if o.Bundle {
		o.Clock, o.Open = p.present, func() (*fleet.Reader, error) { return &fleet.Reader{Source: r.Source}, nil }
	}
	spare()
	l, err := page.Listen(ctx, port)
	if err != nil {
		return fmt.Errorf("%w: %w", errUse, err)
	}
	shown := page.New(o)
	address := "http://" + l.Addr().String() + shown.Path()
	fmt.Fprintf(p.Streams.Out, "The fleet is at %s\nThis address lets in each user who knows it. Ctrl-C ends it.\n",
		address)
	if open {
		file, err := redirection(address)
		if err == nil {
			defer func() { _ = os.RemoveAll(filepath.Dir(file)) }() // A folder that is left leads nowhere.
			err = p.opened(ctx, file)
		}
		if err != nil {
			p.warn(fmt.Errorf("no browser was opened, open the address yourself: %w", err))
		}
	}
	return shown.Serve(ctx, l)
}

// enough is how much memory the page takes, beside its program, before it looks for what it can spare: a fleet of 3,000
// clusters with 20 add-ons is there twice while it is read again.
const enough = 330 << 20

// spare limits the memory of the process, unless its user did.
func spare() {
	if before := debug.SetMemoryLimit(-1); before == math.MaxInt64 {
		debug.SetMemoryLimit(enough)
	}
}

// redirection writes a file that leads a browser to an address. The address is no argument of a program: others see
// those.
func redirection(address string) (string, error) {
	folder, err := os.MkdirTemp("", "kubectl-spokelet-") // For this user alone.
	if err != nil {
		return "", fmt.Errorf("making a folder: %w", err)
	}
	file := filepath.Join(folder, "open.html")
	content := fmt.Sprintf("<!doctype html><meta charset=utf-8><title>kubectl spokelet</title>"+
		"<meta http-equiv=refresh content=\"0;url=%s\"><a href=\"%[1]s\">The fleet</a>\n", address)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		return "", errors.Join(fmt.Errorf("writing %s: %w", file, err), os.RemoveAll(folder))
	}
	return file, nil
}

// opened opens a file in a browser.
func (p *Plugin) opened(ctx context.Context, file string) error {
	name, args := "xdg-open", []string{file}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", file}
	}
	found, err := exec.LookPath(name)
	if err != nil {
		return err
	}
	c := exec.CommandContext(context.WithoutCancel(ctx), found, args...) // A browser goes on when the page ends.
	detach(c)
	if err := c.Start(); err != nil {
		return err
	}
	go func() { _ = c.Wait() }() // What a browser says is not about the fleet.
	return nil
}
