// Package policy reports whether the admission policies of the hub are in force. They bound what agents, those who let
// clusters join, and the hub manager itself may write; without them the hub manager holds more rights than it needs. So
// it checks them once at its start, before it reconciles anything.
//
//	Checker.Wait --who are we?--> render the policies for that ServiceAccount --> Parse
//	             --read them by name--> problems (pure) --> none, or every one in words
//	             --a dry run that must be refused--> admission really asks them
//
// A policy is in force when it has the rules, conditions, variables and validations that we ship, fails closed, names
// the ServiceAccount under which the hub manager runs, and has a binding that denies, everywhere. Messages may differ.
//
// Excess says what was granted to the account of add-ons that no add-on needs: a warning, since an administrator
// granted it.
//
// An API server takes about a second to put into force what was just applied, so Wait asks again for a while.
package policy
