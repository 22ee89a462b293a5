package neighbours

import (
	"time"

	"github.com/spokelet/spokelet/test/e2e/cluster"
	"github.com/spokelet/spokelet/test/e2e/suite"
	"github.com/spokelet/spokelet/test/sandbox"
)

const (
	// clusterName is the name of the managed cluster on the hub, and homeName that of the hub itself.
	clusterName, homeName = "cluster1", "home"
	// secretSync is how long a kubelet may take to bring a changed Secret into a pod.
	secretSync = 10 * time.Second
)

// play holds what later scenarios know of earlier ones.
type play struct {
	// before are all objects of the clusters before anything was installed.
	before map[suite.Role]cluster.Snapshot
	// relay is the authority of add-on relay.
	relay *sandbox.CA
	// courierSince is when the agent of add-on courier began.
	courierSince time.Time
}

// New returns the suite.
func New() *suite.Suite {
	p := &play{before: map[suite.Role]cluster.Snapshot{}}
	return &suite.Suite{
		Name: "neighbours",
		Clusters: []suite.ClusterSpec{
			{Role: suite.Hub, SecretSync: secretSync}, {Role: suite.Managed, SecretSync: secretSync},
		},
		Scenarios: append(p.addOns(), p.klusterlets()...),
	}
}

func (p *play) addOns() []suite.Scenario {
	install := []string{"install"}
	return []suite.Scenario{
		{
			Name: "install", Run: p.install,
			Doc: "Hub manager and agents are installed; a cluster and the hub itself join",
		},
		{
			Name: "add-on-with-tokens", Needs: install, Run: p.courierRuns,
			Doc: "An agent with a token creates and deletes objects on the hub in a loop, from now on",
		},
		{
			Name: "add-on-with-two-signers", Needs: install, Run: p.relayRuns,
			Doc: "An agent gets certificates of two signers; its hub part trusts one of them, and serves a webhook",
		},
		{
			Name: "its-authority-changes", Needs: []string{"add-on-with-two-signers"}, Run: p.relayChanges,
			Doc: "A new authority of the add-on is followed by a new certificate, and the other one stays",
		},
		{
			Name: "add-on-with-a-manager", Needs: install, Run: p.crewRuns,
			Doc: "A hub manager in Go with finalizers, works and users of its own deploys its agent",
		},
		{
			Name: "its-manager-removes-it", Needs: []string{"add-on-with-a-manager"}, Run: p.crewGoes,
			Doc: "The manager runs its Job, lets the add-on go, and nothing of it is left",
		},
		{
			Name: "daemonset-of-twenty-objects", Needs: install, Run: p.quarry,
			Doc: "A DaemonSet with twenty objects, custom resources among them, comes in order and goes without a rest",
		},
	}
}

func (p *play) klusterlets() []suite.Scenario {
	install := []string{"install"}
	return []suite.Scenario{
		{
			Name: "klusterlet-default", Needs: install, Run: p.klusterletDefault,
			Doc: "The two Deployments of a Klusterlet work with the settings of OCM 1.2, 1.3 and those announced for 1.4",
		},
		{
			Name: "klusterlet-singleton", Needs: install, Run: p.klusterletSingleton,
			Doc: "So does the one Deployment of a singleton",
		},
		{
			Name: "klusterlet-singleton-hosted", Needs: install, Run: p.klusterletSingletonHosted,
			Doc: "So does a singleton on a hosting cluster",
		},
		{
			Name: "klusterlet-hosted", Needs: install, Run: p.klusterletHosted, Timeout: 8 * time.Minute,
			Doc: "So do two Deployments on a hosting cluster, which they report: the hub finds it for a hosted add-on",
		},
		{
			Name: "token-rotates", Needs: []string{"add-on-with-tokens"}, Run: p.courierRotates, Timeout: 11 * time.Minute,
			Doc: "The token was replaced while the agent used it, and no request failed since it began",
		},
		{
			Name: "uninstall", Needs: install, Run: p.uninstall, Timeout: 8 * time.Minute,
			Doc: "Uninstalling leaves both clusters as they were",
		},
	}
}
