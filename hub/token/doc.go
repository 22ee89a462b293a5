// Package token maintains the identity on the hub of an add-on agent with the driver "token": a ServiceAccount in the
// namespace of its cluster, and a Role with its RoleBinding that let the agent of that cluster request tokens of this
// one ServiceAccount. The agent of the cluster chooses the driver, in the status of the ManagedClusterAddOn; so
// this holds for every add-on, no matter who manages it otherwise. Names and messages come from the library token,
// which both sides share (docs/reference/registration.md, "Tokens").
//
//	add-on gone                              ──> everything is deleted; tokens end with their ServiceAccount
//	cluster not accepted, or gone            ──> everything is deleted, and the condition explains why
//	add-on being deleted, and a hook runs    ──> everything stays: the hook may need the hub
//	add-on being deleted otherwise           ──> everything is deleted, and the condition is removed
//	another driver                           ──> everything is deleted, and the condition is removed
//	the namespace is that of others          ──> nothing is made, and the condition explains why
//	driver token                             ──> all three exist in their desired form
//
// While the add-on cannot be read, everything stays on an accepted cluster; on any other it is deleted.
//
// The condition TokenInfrastructureReady reports that. By the UID of the ServiceAccount in its message, the agent knows
// that an older token is void. The three objects are owned by their add-on; one that belongs to an earlier add-on of
// the same name is replaced, so that no token outlives its add-on. An object of another client with one of the names is
// never touched: the condition names it, with a remedy. Role and RoleBinding come after the ServiceAccount was found or
// made ours: while the name belongs to another client, nobody gets tokens of it, and what was granted is withdrawn.
// Package deploy binds the ServiceAccount only as long as that RoleBinding exists.
//
// To grant the right to request tokens, the hub manager must have it, for any ServiceAccount, since RBAC has no
// patterns of names. That it never uses that right, and grants it only in this form, is enforced by the policies in
// manifests/hub/policies/manager-tokens.yaml.
package token
