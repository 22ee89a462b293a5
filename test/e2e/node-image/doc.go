// Package nodeimage builds a node image for kind where no container registry can be reached, from Debian packages and
// Go modules ("make node-image"). It is a module of its own, which pins every program of a node and Kubernetes with it.
//
//   - build.sh: everything: programs, root file system, the images of the control plane, the node.
//   - build-programs.sh: compiles the programs that tools.go pins, and those of cmd.
//   - packages.txt: the Debian packages of the root file system.
//   - Dockerfile, files: the node: its first process, units, containerd, kubelet, pod network, storage.
//   - cmd: what a node needs and no pinned module has: pause, CoreDNS with the plugins that kubeadm configures, the
//     verbs of crictl that kind uses; and capruntime, for machines whose root lacks a capability.
//
// A node of it has no NetworkPolicies, one address family, and one control plane node for each cluster.
package nodeimage
