// Package probe answers health probes, for the hub manager, the programs of authors and agents alike.
//
// A client on the loopback address, which is where kubectl port-forward arrives, is told causes: addresses, names of
// objects, errors. Every other client, which may be any pod of the cluster, is told the names of the checks and whether
// each succeeds, which is all that a kubelet needs.
package probe
