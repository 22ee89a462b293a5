// Package e2e tests Spokelet on real Kubernetes clusters with real pods ("make e2e"): it creates kind clusters, loads
// our images, installs from manifests/ as a user does, and plays scenarios. It is a module of its own, because kind and
// kustomize are nobody else's dependencies.
//
//   - cluster: kind clusters: create, delete, load images, cut the network, restart a node, measure memory.
//   - images: the images that are loaded.
//   - suite: what a suite is made of: scenarios, the fleet that they play on, installing, the report.
//   - twoclusters: the suite of a hub and a managed cluster.
//   - hosted: the suite of agents on a hosting cluster.
//   - authors: the suite of the sample add-ons in test/samples.
//   - neighbours: the suite of add-ons in the shapes that people run, and of Klusterlets with other settings.
//   - cmd/e2e: the program; it names all suites. cmd/workload: the program in the pods of add-ons that do nothing.
//     cmd/neighbour: the programs of the add-ons of suite neighbours.
//   - clean.sh: removes what a killed run left behind ("make clean").
//   - node-image: the image of a node, built without a container registry ("make node-image"); a module of its own.
//
// # Add a scenario
//
// A scenario is a name, a sentence, and a function that returns an error; it is an entry in the list of its suite:
//
//	{
//		Name: "pod-deleted", Doc: "The pod of the agent is deleted; its successor goes on", Needs: []string{"join"},
//		Run: func(ctx context.Context, s *suite.Session) error {
//			...
//			s.Cleanup("delete the work", func(ctx context.Context) error { return ... })
//			s.Note("repaired after %s", took)
//			return cluster.Until(ctx, "the work to be applied", func(ctx context.Context) error { ... })
//		},
//	}
//
// Scenarios run in the order of the list, one at a time. One whose Needs did not pass is not run and counts as failed.
// Cleanups run when the scenario ends, last one first, whatever its result; one that fails makes the scenario fail. A
// note stands beside the result in the report. Conditions are waited for (cluster.Until), with the deadline of the
// scenario; there are no sleeps. s.Fleet has the clusters by their roles, each with clients of its administrator, and
// what installs.
//
// # Add a suite
//
// A suite names the clusters that it needs, by role, and its scenarios:
//
//	func New() *suite.Suite {
//		p := &play{} // what later scenarios know of earlier ones
//		return &suite.Suite{
//			Name:     "hosted",
//			Clusters: []suite.ClusterSpec{{Role: suite.Hub}, {Role: suite.Managed}, {Role: suite.Hosting}},
//			Scenarios: []suite.Scenario{{Name: "install", Run: p.install}, ...},
//		}
//	}
//
// and is in the list of cmd/e2e. Each suite gets clusters of its own, which exist, have our images, and have
// nothing of ours installed when its first scenario runs. s.Fleet.InstallHub, InstallAgent, Join and Uninstall are what
// suites share.
//
// # Rules
//
// Pods run images that were loaded before, named with a tag, with the pull policy IfNotPresent; public images are not
// there. Other clusters of a run are reached at the address in Cluster.InternalKubeconfig.
package e2e
