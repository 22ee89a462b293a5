// Package persona has the people that tests of rights play on a hub: those who are trusted with something, but not with
// the hub. We ship no roles for them, so theirs stand here.
package persona

import _ "embed"

const (
	// Author is the user who writes AddOnTemplates, defines add-ons and enables them, and has no other right.
	Author = "author@example.com"
	// NamespaceAdmin is the user who administers the namespace Cluster, and has no right elsewhere.
	NamespaceAdmin = "namespace-admin@example.com"
	// Cluster is the cluster whose namespace NamespaceAdmin administers. Documents makes the namespace.
	Cluster = "cluster1"
)

//go:embed personas.yaml
var documents []byte

// Documents returns the roles of the personas with their bindings, and the namespace of the cluster.
func Documents() []byte { return append([]byte(nil), documents...) }
