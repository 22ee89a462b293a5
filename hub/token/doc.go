// Package token keeps, on the hub, what an add-on agent with the driver "token" needs to be somebody: a ServiceAccount
// in the namespace of its cluster, and a Role with its RoleBinding that let the agent of that cluster ask for tokens of
// this one ServiceAccount. The agent of the cluster chooses the driver, in the status of the ManagedClusterAddOn; so
// this holds for every add-on, whoever manages it otherwise. Names, words and grammar are those of the library token,
// which both sides share (contract, registration 2.7).
//
//	add-on gone                              ──> nothing stays, and every token ends with its ServiceAccount
//	cluster not accepted, or gone            ──> nothing stays, and the condition says why
//	add-on leaves                            ──> all stays as it is: what runs before it goes needs the hub
//	another driver                           ──> nothing stays, nor does the condition
//	driver token                             ──> all three are there, as they shall be
//
// The condition TokenInfrastructureReady says so, and the UID of the ServiceAccount in its message tells the agent that
// an older token is void. The three objects are owned by their add-on; one that belongs to an earlier add-on of the
// same name is replaced, so that no token outlives the add-on that it was for. An object of somebody else under one of
// the names is never touched: the condition says which, and what to do. What the ServiceAccount may do elsewhere on the
// hub (package deploy binds it) goes with it.
//
// To grant the right to ask for tokens, the hub manager must hold it, for any ServiceAccount, since RBAC knows no
// patterns of names. That it never uses it, and grants it only in this form, is enforced by the policies in
// manifests/hub/policies/manager-tokens.yaml.
package token
