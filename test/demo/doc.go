// Command demo shows a whole fleet on one machine: a hub and three managed clusters, each a real etcd, kube-apiserver
// and kube-controller-manager, our hub manager, one agent per cluster, and three add-ons from nothing to healthy and
// back to nothing. Everything runs as its own process with only the RBAC that manifests/ ships.
//
// Nothing is faked except scheduler and kubelet. For the hello add-on, the demo starts the program of the rendered
// Deployment as a process, with the arguments of its container, the files of its Secret volumes and a token of its
// ServiceAccount. For the add-ons web and gateway it writes the status of their pods, as a kubelet would that starts
// containers, cannot pull an image, or sees a Job end.
//
// At a terminal the fleet stays up at the end and the demo prints how to look around; otherwise it ends with status 0,
// or with another status and the reason.
package main
