package agent

import (
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/agent/bootstrap"
	"github.com/spokelet/spokelet/agent/cluster"
	"github.com/spokelet/spokelet/agent/health"
	"github.com/spokelet/spokelet/agent/hubconn"
	"github.com/spokelet/spokelet/agent/join"
	"github.com/spokelet/spokelet/agent/work/latency"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/expiry"
	"github.com/spokelet/spokelet/internal/names"
)

const (
	// userAgent is the user agent of all requests. On the spoke it is also the field manager of applied objects; OCM
	// fixes it.
	userAgent = names.FieldManagerWork
	// gcPercent lets the heap grow by half between two collections: memory is scarcer than CPU on a small node.
	gcPercent = 50
)

// agent is the state that lives as long as the process: configuration, clients of its own cluster, health.
type agent struct {
	config Config
	scheme *runtime.Scheme
	state  health.State
	// objects are the informers of all caches, and the objects that they cannot decode.
	objects *decode.Objects
	// host is the cluster that the agent runs on, spoke the managed cluster; outside hosted mode they are one. spokeRaw
	// is the file that spoke was read from in hosted mode.
	host, spoke *rest.Config
	spokeRaw    []byte
	// live reads from and writes to the host without a cache.
	live client.Client
	// spokeHealth checks the API server of the spoke.
	spokeHealth *cluster.Health
	clock       clock.WithDelayedExecution
	// hubClock is the clock of the hub.
	hubClock *hubconn.Clock
	// latency gets a line when a generation of a work is applied; nil writes none.
	latency *latency.Log
	// certificates tells when the certificates that the agent holds end.
	certificates *expiry.Ends
	// selector selects one of several hubs.
	selector *bootstrap.Selector
	// rejected is the last credential that the hub responded to with nothing but 401; nil when there is none.
	rejected atomic.Pointer[join.Credential]
}

// hosted reports whether the managed cluster is another one than the cluster that the agent runs on.
func (a *agent) hosted() bool { return a.config.SpokeKubeconfig != "" }
