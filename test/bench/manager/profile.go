package manager

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// build builds the hub manager that can be profiled, when profiles are wanted, and uses it from then on.
func (o *Options) build(ctx context.Context) error {
	if o.Profiles == "" {
		return nil
	}
	dir := filepath.Join(o.Profiles, "bin")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("making a directory for programs: %w", err)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("finding directory %s: %w", o.Profiles, err)
	}
	o.Binaries = dir
	return fleet.Build(ctx, dir, map[string]string{
		"spokelet-hub": "./test/bench/cmd/profiled", "spokelet": "./cmd/spokelet",
	})
}

// probe takes profiles of the hub manager; nil takes none.
type probe struct {
	dir, prefix, address string
}

// newProbe returns a probe, and the arguments with which the hub manager serves it.
func newProbe(dir, title string) (*probe, []string, error) {
	if dir == "" {
		return nil, nil, nil
	}
	ports, err := sandbox.FreePorts(1)
	if err != nil {
		return nil, nil, err
	}
	p := &probe{
		dir: dir, prefix: strings.NewReplacer(": ", "-", " ", "-").Replace(title),
		address: "127.0.0.1:" + strconv.Itoa(ports[0]),
	}
	return p, []string{"--profile-address=" + p.address}, nil
}

// begin begins a profile of the processor time.
func (p *probe) begin(ctx context.Context) error {
	if p == nil {
		return nil
	}
	_, err := p.get(ctx, "start")
	return err
}

// end ends it, and writes it and a profile of the memory to files.
func (p *probe) end(ctx context.Context, step string) error {
	if p == nil {
		return nil
	}
	for path, kind := range map[string]string{"stop": "cpu", "heap": "heap"} {
		profile, err := p.get(ctx, path)
		if err != nil {
			return err
		}
		name := strings.ReplaceAll(p.prefix+step, " ", "-") + "." + kind + ".pprof"
		if err := os.WriteFile(filepath.Join(p.dir, name), profile, 0o600); err != nil {
			return fmt.Errorf("writing a profile: %w", err)
		}
	}
	return nil
}

func (p *probe) get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+p.address+"/"+path, nil)
	if err != nil {
		return nil, fmt.Errorf("profiling the hub manager: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("profiling the hub manager: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, body)
	}
	return body, err
}
