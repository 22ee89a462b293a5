// Package fleet puts Spokelet into a sandbox: one hub and any number of managed clusters, each a control plane of
// package sandbox, with our hub manager and one agent per cluster as processes of their own. The demo, the tests of
// whole flows and the benchmarks are built on it.
//
// Hub manager and agents get a token of the ServiceAccount that manifests/ ships and nothing else, so a rule that is
// missing there is missing here. Processes can be killed and started again at any moment.
//
// There is no kubelet. RunDeployment is in for one: it starts the program of a Deployment as a process, with the
// arguments and environment of its container, the files of its Secret volumes and a token of its ServiceAccount.
//
// A fleet can sample what its programs use, see Options.Samples: resident memory, goroutines and open files of ours;
// memory, open watches and stored bytes of the control planes. A program that is started again is another one. One that
// is away, or does not answer in time, leaves out what it would have told.
//
// RunPods is in for a kubelet where nobody needs the program to run: pods are ready at once.
package fleet
