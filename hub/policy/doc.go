// Package policy checks that the admission policies of the hub are in force. They restrict the writes of agents, of
// bootstrap credentials, and of the hub manager itself, which without them has more rights than it needs. So it checks
// them once at its start, before it reconciles anything.
//
//	Checker.Wait --who are we?--> render the policies for that ServiceAccount --> parse
//	             --read them by name--> problems (pure) --> none, or a list
//	             --a dry run that must be denied--> admission really evaluates them
//
// A policy is in force when it has the rules, conditions, variables and validations that we ship, fails closed, names
// the ServiceAccount of the hub manager, and has a binding that denies, everywhere. Messages may differ.
//
// Excess lists rights of the account of add-ons that no add-on needs. They cause a warning only, because an
// administrator granted them.
//
// An API server takes about a second to put a new policy into force, so Wait checks again for a while.
package policy
