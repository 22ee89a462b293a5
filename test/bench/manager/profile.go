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
	"sync"

	"k8s.io/client-go/rest"

	"github.com/spokelet/spokelet/test/bench/measure"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// profiled is the package of the hub manager that can be profiled.
const profiled = "./test/bench/cmd/profiled"

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
		"spokelet-hub": profiled, "spokelet": "./cmd/spokelet",
	})
}

// probe takes profiles of the hub manager and of the API server; nil takes none.
type probe struct {
	dir, prefix, address string
	// server is the configuration for the API server, whose profiles take a while.
	server  *rest.Config
	servers sync.WaitGroup
	log     io.Writer
}

// newProbe returns a probe, and the arguments with which the hub manager serves it.
func newProbe(dir, title string, server *rest.Config, log io.Writer) (*probe, []string, error) {
	if dir == "" {
		return nil, nil, nil
	}
	ports, err := sandbox.FreePorts(1)
	if err != nil {
		return nil, nil, err
	}
	p := &probe{
		dir: dir, prefix: strings.NewReplacer(": ", "-", " ", "-").Replace(title),
		address: "127.0.0.1:" + strconv.Itoa(ports[0]), server: server, log: log,
	}
	return p, []string{"--profile-address=" + p.address}, nil
}

// file is the file for a profile of a kind.
func (p *probe) file(step, kind string) string {
	return filepath.Join(p.dir, strings.ReplaceAll(p.prefix+step, " ", "-")+"."+kind+".pprof")
}

// begin begins a profile of the processor time. One of the API server that fails is logged only.
func (p *probe) begin(ctx context.Context, step string) error {
	if p == nil {
		return nil
	}
	p.servers.Go(func() {
		if err := measure.ProfileServer(ctx, p.server, p.file(step, "apiserver")); err != nil {
			fmt.Fprintln(p.log, "profile of the API server:", err)
		}
	})
	_, err := p.get(ctx, "start")
	return err
}

// end ends it, and writes it and a profile of the memory to files.
func (p *probe) end(ctx context.Context, step string) error {
	if p == nil {
		return nil
	}
	p.servers.Wait()
	for path, kind := range map[string]string{"stop": "cpu", "heap": "heap"} {
		profile, err := p.get(ctx, path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(p.file(step, kind), profile, 0o600); err != nil {
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
