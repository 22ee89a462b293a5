// Package join makes a cluster a member of its hub and keeps it one: it owns the cluster's own hub credential, the
// Secret hub-kubeconfig-secret in the agent's namespace.
//
// An agent starts with a bootstrap kubeconfig, which may do two things only: create the ManagedCluster and ask for a
// certificate. A person on the hub accepts the one and approves the other, in any order. From then on the agent lives
// on its certificate and renews it alone.
//
//   - identity.go: who we are. The names come from the flags, from what a former agent left behind, or from chance, and
//     stay the same ever after.
//   - credential.go: whether the stored credential may be used. Judge is pure; Prepare is what the composition root
//     calls before it chooses between joining and serving.
//   - reconciler.go and its siblings: one Reconciler for both phases. While joining it holds the bootstrap client, sees
//     to it that the ManagedCluster exists, and stores a credential only then: a stored credential ends the joining for
//     good. While serving it holds the hub client, replaces the certificate in the last quarter of its lifetime and
//     tells so in the condition ClusterCertificateRotated.
//
// A credential that the hub refuses although it looks good (401) is noticed by the composition root, which sees the
// answers; told of it, the Reconciler that joins asks for a successor and leaves the stored one alone until then.
package join
