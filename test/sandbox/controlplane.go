package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// startTimeout ends a start that hangs; a control plane takes some seconds, many at once on a slow machine more.
	startTimeout = 3 * time.Minute
	// startAttempts is how often a start is tried when another program takes a port that was free a moment before.
	startAttempts = 3
	// stopGrace is how long a process gets to end by itself; etcd and the API server need no longer.
	stopGrace = 2 * time.Second
	// pollInterval is how often readiness is asked for.
	pollInterval = 50 * time.Millisecond
)

// FrontProxy is the user who may pass on requests of others, see Options.
const FrontProxy = "front-proxy"

// Options are the options of a control plane. All fields may stay empty.
type Options struct {
	// Name is in errors and in what Log receives.
	Name string
	// Dir is the directory of the control plane, made if missing and removed by Stop, so one that holds anything is
	// refused; empty means a temporary one.
	Dir string
	// Assets is the directory with etcd, kube-apiserver and kube-controller-manager; empty means the environment
	// variable KUBE_ASSETS, and bin/kube below the module root without it.
	Assets string
	// Managed reports that it is the control plane of a managed cluster and not of a hub. Then the variable
	// KUBE_ASSETS_MANAGED goes before KUBE_ASSETS, so that both have versions of their own.
	Managed bool
	// Log receives a line per event of interest; nil drops them.
	Log io.Writer
	// Audit lets the API server write an audit log, one JSON line per finished request, see AuditLog.
	Audit bool
	// AuditPolicy is the policy of the audit log as YAML; empty logs one line per finished request, without bodies.
	AuditPolicy string
	// APIServerArgs are further arguments of the API server.
	APIServerArgs []string
	// StoreArgs are further arguments of each etcd.
	StoreArgs []string
	// Admission names admission plugins of the API server to turn on besides those that are on by default.
	Admission []string
	// LeasesApart gives leases an etcd of their own, so that heartbeats are not in the way of other writes.
	LeasesApart bool
	// Stores is a directory with what Keep has kept of another control plane, which this one goes on with; empty begins
	// with empty stores. With LeasesApart, leases begin empty when the other one had them in its only store.
	Stores string
	// FrontProxy lets the API server believe user FrontProxy, by a certificate, who sent a request that it passes on.
	FrontProxy bool
	// SigningDuration is the lifetime of the certificates that the controllers sign; zero leaves it to them, a year.
	// They date every certificate back by five minutes on top.
	SigningDuration time.Duration
}

// ControlPlane is a running Kubernetes control plane.
type ControlPlane struct {
	// Name is the name from the options.
	Name string
	// Dir holds keys, data and logs of the control plane.
	Dir string
	// Host is the URL of the API server.
	Host string

	opts   Options
	assets string
	// store is the URL of etcd.
	store      string
	authority  *authority
	admin      *rest.Config
	etcd       *Process
	leases     *Process // nil unless the options ask for it
	apiserver  *Process
	controller *Process
	janitor    *Janitor
	stop       sync.Once
}

// Start starts a control plane and returns when its API server is ready and its controllers work. The context bounds
// the start only; the caller must call Stop.
func Start(ctx context.Context, opts Options) (*ControlPlane, error) {
	assets, err := findAssets(opts.Assets, opts.Managed)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("gave up after %s", startTimeout))
	defer cancel()
	if opts.Log == nil {
		opts.Log = io.Discard
	}
	var failed error
	for range startAttempts {
		c, err := startOnce(ctx, opts, assets)
		if err == nil {
			return c, nil
		}
		failed = errors.Join(failed, err)
		if !isPortTaken(err) || ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("starting control plane %s: %w", opts.Name, failed)
}

func startOnce(ctx context.Context, opts Options, assets string) (*ControlPlane, error) {
	started := time.Now()
	c := &ControlPlane{Name: opts.Name, Dir: opts.Dir, opts: opts, assets: assets}
	if err := c.makeDir(); err != nil {
		return nil, err
	}
	var err error
	if c.janitor, err = StartJanitor(c.Dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(c.Dir))
	}
	if err := c.startProcesses(ctx, started); err != nil {
		c.Stop()
		return nil, err
	}
	fmt.Fprintf(opts.Log, "control plane %s: ready at %s after %s\n",
		c.Name, c.Host, time.Since(started).Round(10*time.Millisecond))
	return c, nil
}

func (c *ControlPlane) makeDir() error {
	if c.Dir == "" {
		dir, err := os.MkdirTemp("", "spokelet-sandbox-")
		if err != nil {
			return fmt.Errorf("making a directory: %w", err)
		}
		c.Dir = dir
		return nil
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return fmt.Errorf("finding directory %s: %w", c.Dir, err)
	}
	c.Dir = dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making a directory: %w", err)
	}
	content, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("looking into directory %s: %w", dir, err)
	}
	if len(content) > 0 {
		return fmt.Errorf("directory %s is not empty (it has %s), and a control plane removes its directory when it "+
			"stops: name one that is new or empty", dir, content[0].Name())
	}
	return nil
}

func (c *ControlPlane) startProcesses(ctx context.Context, now time.Time) error {
	var err error
	if c.authority, err = newAuthority("spokelet-sandbox-"+c.Name, nil, now); err != nil {
		return err
	}
	if err := c.authority.writePKI(c.Dir, now); err != nil {
		return fmt.Errorf("writing keys and certificates: %w", err)
	}
	ports, err := FreePorts(5)
	if err != nil {
		return err
	}
	c.Host = "https://127.0.0.1:" + strconv.Itoa(ports[2])
	c.store = etcdURL(ports[0])
	if c.admin, err = c.User("sandbox-admin", "system:masters"); err != nil {
		return err
	}
	if err := c.writeFiles(); err != nil {
		return err
	}
	if err := c.takeOver(); err != nil {
		return err
	}
	c.etcd = c.process("etcd", "etcd", c.etcdArgs("etcd", ports[0], ports[1]))
	args := c.apiserverArgs(ports[2], ports[0])
	first := []*Process{c.etcd}
	if c.opts.LeasesApart {
		c.leases = c.process("etcd", leaseStore, c.etcdArgs(leaseStore, ports[3], ports[4]))
		args = append(args, "--etcd-servers-overrides=coordination.k8s.io/leases#"+etcdURL(ports[3]))
		first = append(first, c.leases)
	}
	c.apiserver = c.process("kube-apiserver", "kube-apiserver", args)
	c.controller = c.process("kube-controller-manager", "kube-controller-manager", c.controllerArgs())
	// The API server retries its connection to etcd, so both start at once; the controllers would exit without it.
	for _, p := range append(first, c.apiserver) {
		if err := p.Start(); err != nil {
			return err
		}
	}
	if err := c.waitReady(ctx); err != nil {
		return err
	}
	if err := c.controller.Start(); err != nil {
		return err
	}
	return c.waitControllers(ctx)
}

// process is one of the processes, by a name of its own, as two may run the same program.
func (c *ControlPlane) process(program, name string, args []string) *Process {
	return &Process{
		Name: name + " of " + c.Name, Path: filepath.Join(c.assets, program), Args: args,
		LogPath: filepath.Join(c.Dir, name+".log"),
	}
}

// Stop ends the control plane and removes its directory. It may be called more than once.
func (c *ControlPlane) Stop() {
	c.stop.Do(func() {
		var group sync.WaitGroup
		for _, p := range []*Process{c.controller, c.apiserver, c.etcd, c.leases} {
			if p != nil {
				group.Go(func() { p.Stop(stopGrace) })
			}
		}
		group.Wait()
		if err := c.janitor.Finish(); err != nil {
			fmt.Fprintf(c.opts.Log, "control plane %s: removing its directory: %v\n", c.Name, err)
		}
	})
}

// PIDs returns the process IDs of etcd, the API server and the controller manager, and that of the etcd of leases where
// there is one.
func (c *ControlPlane) PIDs() []int {
	pids := []int{c.etcd.PID(), c.apiserver.PID(), c.controller.PID()}
	if c.leases != nil {
		pids = append(pids, c.leases.PID())
	}
	return pids
}

// Stores returns the process of etcd, whose figures StoreMetrics reads, and after it that of leases where there is one.
func (c *ControlPlane) Stores() []*Process {
	if c.leases == nil {
		return []*Process{c.etcd}
	}
	return []*Process{c.etcd, c.leases}
}

// StoreSizes returns how large the files of the Stores are, in bytes. A file has room for what was compacted, and never
// shrinks.
func (c *ControlPlane) StoreSizes() ([]float64, error) {
	var sizes []float64
	for _, name := range c.storeNames() {
		info, err := os.Stat(c.path(filepath.Join(name, "member", "snap", "db")))
		if err != nil {
			return nil, fmt.Errorf("looking at the size of a store: %w", err)
		}
		sizes = append(sizes, float64(info.Size()))
	}
	return sizes, nil
}

// APIServer returns the process of the API server, whose figures Metrics reads.
func (c *ControlPlane) APIServer() *Process { return c.apiserver }

// AuditLog returns the path of the audit log, empty when the options did not ask for one.
func (c *ControlPlane) AuditLog() string {
	if !c.opts.Audit {
		return ""
	}
	return filepath.Join(c.Dir, "audit.log")
}

// CA returns the certificate of the control plane's authority as PEM.
func (c *ControlPlane) CA() []byte { return append([]byte(nil), c.authority.certPEM...) }

// exited returns why one of the processes ended, nil while all that were started run.
func (c *ControlPlane) exited() error {
	for _, p := range []*Process{c.etcd, c.leases, c.apiserver, c.controller} {
		if p == nil || p.PID() == 0 {
			continue
		}
		if err := p.Exited(); err != nil {
			return err
		}
	}
	return nil
}
