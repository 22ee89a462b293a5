package manager

import (
	"fmt"

	"github.com/spokelet/spokelet/test/bench/spokes"
)

// auditPolicy logs the requests of those whom the benchmark counts, one line each, and the begin of each watch, so that
// it shows when the garbage collector knows a kind.
func auditPolicy() string {
	users := fmt.Sprintf("[%q, %q, %q, %q]", managerUser(), authorUser(), spokes.User, collectorUser)
	watchers := fmt.Sprintf("[%q, %q, %q]", managerUser(), authorUser(), controllersUser)
	return `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: ` + watchers + `
  verbs: [watch]
- level: Metadata
  users: ` + users + `
  omitStages: [ResponseStarted]
- level: None
`
}

// lean are the arguments of an API server that serves thousands of clusters on two processors: it never makes anybody
// wait in a queue, and it has no admission of quotas and limits, which nobody sets here and which list them for each
// new namespace.
func lean() []string {
	return []string{
		"--max-requests-inflight=3000", "--max-mutating-requests-inflight=3000",
		"--disable-admission-plugins=ResourceQuota,LimitRanger",
	}
}
