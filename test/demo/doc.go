// Command demo shows a whole fleet on one machine: a hub and two managed clusters, each a real etcd, kube-apiserver
// and kube-controller-manager, our hub manager, one agent per cluster, and the hello add-on going from nothing to
// healthy on both. Everything runs as its own process with only the RBAC that manifests/ ships.
//
// Nothing is faked except the kubelet: there are no pods. Where a kubelet would start the container of the add-on's
// Deployment, the demo starts the same program as a process, with the arguments of the rendered Deployment, the files
// of its Secret volumes and a token of its ServiceAccount.
//
// At a terminal the fleet stays up at the end and the demo prints how to look around; otherwise it ends with status 0,
// or with another status and the reason.
package main
