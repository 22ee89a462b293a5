// Package cluster makes real Kubernetes clusters for the end-to-end tests: kind clusters of one node, each with a
// kubeconfig file of its own, on a Docker network that belongs to the run.
//
//   - network.go: the network. Its label is the record of who owns the containers on it, by which "make clean" finds
//     what a killed run left behind.
//   - cluster.go: creates, deletes and describes a cluster, and loads images into it.
//   - faults.go: what goes wrong: the network between two clusters is cut, a node is restarted; and what an
//     administrator of the control plane changes.
//   - memory.go: the memory of containers, by the kubelet's own figures.
//   - forward.go: asks a pod for a page on its loopback interface.
//   - snapshot.go: all objects of a cluster, to compare them with those of another moment.
package cluster
