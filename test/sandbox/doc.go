// Package sandbox starts real Kubernetes control planes on loopback: etcd, kube-apiserver and kube-controller-manager,
// each a process of its own, with RBAC, ServiceAccount tokens, certificate signing and garbage collection. There is no
// scheduler and no kubelet, so pods are created and stay pending.
//
// A control plane lives in a directory of its own, on free ports, with its own certificate authority, so any number of
// them stand side by side. It hands out credentials per user: Admin may everything, User and ServiceAccount may what
// RBAC gives them, which is how tests run with the rules that we ship and nothing more.
//
// Nothing outlives the program: Stop ends the processes and removes the directory, Main does so for a test binary also
// after a panic or a signal, and where neither gets to run (kill -9), Linux ends the processes with their
// parent and a waiting shell removes the directory.
//
// The garbage collector learns of new CustomResourceDefinitions within 30 seconds; dependents of custom resources are
// collected only after that.
package sandbox
