package hosted

import (
	"time"

	"github.com/spokelet/spokelet/test/e2e/cluster"
	"github.com/spokelet/spokelet/test/e2e/suite"
)

const (
	// managedName is the name of the managed cluster on the hub, and of the namespace of its agent on the hosting cluster.
	managedName = "cluster1"
	// hostingName is the name of the hosting cluster on the hub.
	hostingName = "hosting"
	// secretSync is how long a kubelet may take to bring a changed Secret into a pod.
	secretSync = 10 * time.Second
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
		Name: "hosted",
		Clusters: []suite.ClusterSpec{
			{Role: suite.Hub}, {Role: suite.Hosting, SecretSync: secretSync}, {Role: suite.Managed, SecretSync: secretSync},
		},
		Scenarios: p.scenarios(),
	}
}

func (p *play) scenarios() []suite.Scenario {
	join := []string{"join-from-hosting-cluster"}
	return []suite.Scenario{
		{
			Name: "install-on-hosting-cluster", Run: p.install,
			Doc: "The agent of a managed cluster is installed on a hosting cluster, beside the agent of that cluster itself",
		},
		{
			Name: "join-from-hosting-cluster", Needs: []string{"install-on-hosting-cluster"}, Run: p.join,
			Doc: "Both clusters join; the agent has no right outside of its namespace on the hosting cluster",
		},
		{
			Name: "works-from-hosting-cluster", Needs: join, Run: p.works,
			Doc: "A work is applied to the managed cluster and not to the hosting cluster, and drift is repaired",
		},
		{
			Name: "hosted-add-on", Needs: join, Timeout: 8 * time.Minute, Run: p.hostedAddOn,
			Doc: "The pod of an add-on runs on the hosting cluster with its Secret mounted; its Job runs before it goes",
		},
		{
			Name: "kubeconfig-replaced", Needs: join, Run: p.replaceKubeconfig,
			Doc: "Another kubeconfig of the managed cluster is used without a restart",
		},
		{
			Name: "managed-cluster-unreachable", Needs: join, Timeout: 8 * time.Minute, Run: p.cutManaged,
			Doc: "Without the managed cluster the hub says why, the pod stays ready, and all goes on afterwards",
		},
		{
			Name: "leave-hosting-cluster", Needs: join, Run: p.leave,
			Doc: "The agent is removed from the hosting cluster, which leaves nothing on either cluster",
		},
		{
			Name: "klusterlet-default", Needs: []string{"install-on-hosting-cluster"}, Run: p.dropInDefault,
			Doc: "The two Deployments of a Klusterlet run our image: registration and works apart",
		},
		{
			Name: "klusterlet-singleton", Needs: []string{"klusterlet-default"}, Run: p.dropInSingleton,
			Doc: "The one Deployment of a singleton takes their place: it asks for one certificate, and no work is touched",
		},
		{
			Name: "klusterlet-hosted", Needs: []string{"install-on-hosting-cluster"}, Run: p.dropInHosted,
			Doc: "The Deployments of a Klusterlet in hosted mode run our image on the hosting cluster",
		},
		{
			Name: "uninstall-hosting-cluster", Needs: []string{"install-on-hosting-cluster"}, Timeout: 8 * time.Minute,
			Run: p.uninstall, Doc: "Uninstalling leaves all three clusters as they were",
		},
	}
}
