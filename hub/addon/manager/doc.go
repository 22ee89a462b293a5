// Package manager runs add-ons in the program of their author, beside a hub manager of Spokelet or OCM:
//
//	func main() { os.Exit(manager.Main(weather)) }
//
// where weather returns an addon.Agent. Any number of add-ons may be in one program.
//
// The two share the work as OCM does (docs/reference/hub.md, "Authors' programs"):
//
//	the hub manager                        this program, for its own add-ons
//	installs by placements                 resolves and renders the agent of each cluster
//	configures, rolls out, reports         writes ManifestWorks, runs pre-delete hooks, hosts agents
//	the progress                           binds roles, approves and signs certificate requests
//	confirms identities in requests        approves such requests for the API server of the hub
//	keeps ServiceAccounts for tokens       reports supported configurations, registrations and health
//	                                       reports hashes of configurations that the hub manager does not read
//
// The engine is the same as that of templates: packages hub/deploy and hub/approval. Only where the configuration comes
// from differs: configure.Follower reads from the status what the hub manager decided, and the content from where a hub
// manager of Spokelet stored it. A hub manager of OCM stores none; then a cluster that waits for its turn keeps what it
// has while a configuration is edited in place.
//
//   - main.go has the command line of such a program: it runs, prints its rights (rbac), or renders files (render).
//   - config.go is the configuration. Its zero value works.
//   - manager.go builds the reconcilers, with a cache of what belongs to the add-ons (cache.go).
//   - rights.go generates the ServiceAccount, the roles and the bindings that exactly these add-ons need, and
//     guard.go an admission policy, because RBAC cannot restrict objects by their labels.
//
// Several replicas elect a leader. A program that is not there stops nothing that runs: agents keep their works, their
// credentials and their rights.
package manager
