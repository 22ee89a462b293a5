package twoclusters

import (
	"slices"
	"time"

	"github.com/spokelet/spokelet/test/e2e/cluster"
	"github.com/spokelet/spokelet/test/e2e/suite"
)

const (
	// clusterName is the name of the managed cluster on the hub.
	clusterName = "cluster1"
	// shortLifetime is the lifetime of certificates until their rotation was seen. A certificate is replaced after at most
	// four fifths of it, and a Secret reaches the pods that mount it within secretSync and some seconds: before the old
	// one expires.
	shortLifetime = 3 * time.Minute
	secretSync    = 10 * time.Second
	// longLifetime is their lifetime from then on, longer than a run.
	longLifetime = 6 * time.Hour
)

// play holds what later scenarios know of earlier ones.
type play struct {
	// before are all objects of the clusters before anything was installed.
	before map[suite.Role]cluster.Snapshot
}

// New returns the suite.
func New() *suite.Suite {
	p := &play{before: map[suite.Role]cluster.Snapshot{}}
	return &suite.Suite{
		Name: "two-clusters",
		Clusters: []suite.ClusterSpec{
			{Role: suite.Hub, SigningDuration: shortLifetime}, {Role: suite.Managed, SecretSync: secretSync},
		},
		Scenarios: p.scenarios(),
	}
}

func (p *play) scenarios() []suite.Scenario {
	return slices.Concat(p.ofAddOns(), p.ofPolicies(), p.ofFaults())
}

// ofAddOns are the scenarios of installation and of add-ons.
func (p *play) ofAddOns() []suite.Scenario {
	install, join, hello := []string{"install"}, []string{"join-and-accept"}, []string{"add-on-by-placement"}
	return []suite.Scenario{
		{Name: "install", Doc: "Hub manager and agent are installed from manifests/ with kustomize", Run: p.install},
		{
			Name: "join-and-accept", Needs: install, Run: p.join,
			Doc: "The agent waits for a person, is accepted, and its cluster becomes available",
		},
		{
			Name: "add-on-by-placement", Needs: join, Run: p.enableHello,
			Doc: "A label brings the add-on hello: its pod runs with the Secret mounted, and copies ConfigMaps",
		},
		{
			Name: "certificate-rotation", Needs: hello, Timeout: 10 * time.Minute, Run: p.rotate,
			Doc: "Certificates of agent and add-on are replaced in time, and no pod is restarted for it",
		},
		{
			Name: "configuration-change", Needs: hello, Run: p.configure,
			Doc: "A changed variable and a new template are rolled out to the pods",
		},
		{
			Name: "daemon-set", Needs: join, Run: p.daemonSet,
			Doc: "An add-on with a DaemonSet is available when its pods are ready",
		},
		{
			Name: "pre-delete-job", Needs: []string{"daemon-set"}, Run: p.preDeleteJob,
			Doc: "The Job of an add-on runs to its end before anything of the add-on is removed",
		},
		{
			Name: "orphaned-config-map", Needs: []string{"pre-delete-job"}, Run: p.orphan,
			Doc: "A ConfigMap that is to be orphaned stays when its add-on goes",
		},
		{
			Name: "image-cannot-be-pulled", Needs: join, Run: p.imagePull,
			Doc: "The add-on's condition names the image and why it cannot be pulled",
		},
		{
			Name: "crash-loop", Needs: join, Run: p.crashLoop,
			Doc: "The add-on's condition names the container that ends again and again, and how it ends",
		},
	}
}

// ofPolicies are the scenarios of policies and windows.
func (p *play) ofPolicies() []suite.Scenario {
	hello := []string{"add-on-by-placement"}
	return []suite.Scenario{
		{
			Name: "maintenance-window", Needs: hello, Run: p.window,
			Doc: "A change waits for a window, says until when, and begins when the clock opens it",
		},
		{
			Name: "approval", Needs: hello, Run: p.approve,
			Doc: "A change waits until its content is approved by its name",
		},
		{
			Name: "undo", Needs: hello, Run: p.undo,
			Doc: "A version whose image cannot be pulled goes back by itself to the last one that completed",
		},
		{
			Name: "dependency", Needs: hello, Run: p.depend,
			Doc: "An add-on brings another one along and waits for it; both go in the reverse order",
		},
	}
}

// ofFaults are the scenarios of what goes wrong, of upgrades and of the end.
func (p *play) ofFaults() []suite.Scenario {
	install, join, hello := []string{"install"}, []string{"join-and-accept"}, []string{"add-on-by-placement"}
	return []suite.Scenario{
		{
			Name: "pod-deleted", Needs: hello, Run: p.deletePods,
			Doc: "The pods of agent, hub manager and add-on are deleted; their successors go on, without new certificates",
		},
		{
			Name: "node-restarted", Needs: hello, Timeout: 8 * time.Minute, Run: p.restartNode,
			Doc: "The node of the managed cluster is restarted; agent and add-on come back",
		},
		{
			Name: "hub-unreachable", Needs: hello, Timeout: 15 * time.Minute, Run: p.cutHub,
			Doc: "Without the hub for minutes the agent's pod stays ready, is not restarted, and repairs drift",
		},
		{
			Name: "memory", Needs: join, Timeout: 12 * time.Minute, Run: p.memory,
			Doc: "Memory of our pods at rest and under 200 works, by the kubelet's figure",
		},
		{
			Name: "upgrade-in-place", Needs: hello, Run: p.upgrade,
			Doc: "Hub manager and agent move to another image; add-ons keep their pods, and nobody gets a new certificate",
		},
		{
			Name: "uninstall", Needs: install, Timeout: 8 * time.Minute, Run: p.uninstall,
			Doc: "Uninstalling leaves both clusters as they were",
		},
	}
}
