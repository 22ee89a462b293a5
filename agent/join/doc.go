// Package join makes a cluster a member of its hub and keeps it one: it owns the hub credential of the cluster, the
// Secret hub-kubeconfig-secret in the agent's namespace.
//
// An agent starts with a bootstrap kubeconfig, which allows two things only: to create the ManagedCluster and to
// request a certificate. An administrator of the hub accepts the one and approves the other, in any order. From then on
// the agent uses its certificate and renews it itself.
//
//   - identity.go: the names of the agent. They come from the flags, from the Secrets of a former agent, or are random,
//     and never change afterwards.
//   - credential.go: whether the stored credential may be used. Judge is pure; the composition root calls Prepare
//     before it chooses between joining and serving.
//   - reconciler.go and its siblings: one Reconciler for both phases. While joining it uses the bootstrap client,
//     creates the ManagedCluster, and stores a credential only then: a stored credential ends the joining phase for
//     good. While serving it uses the hub client, replaces the certificate in the last quarter of its lifetime and
//     reports that in the condition ClusterCertificateRotated.
//
// The composition root sees the answers of the hub and notices a credential that looks valid but is refused with 401.
// It passes the refused certificate to the joining Reconciler, which requests a new one and keeps the stored one until
// then.
package join
