// Package rights_test holds the roles that we ship to what is done with them, and shows what each role on a hub can do.
//
// Before the tests, the hub manager and an agent do all that they can do, as processes with the RBAC and the policies
// that we ship, on control planes that write audit logs (scenario_test.go). The tests look at what was recorded:
//
//   - used_test.go: every rule of every shipped role, down to the verb, the resource and the name, was used, or stands
//     in a table with the reason why nobody uses it in a request. A rule that nobody needs fails, and is named. A rule
//     that is missing ends the scenario, and the refused request is named. No other request was refused.
//   - held_test.go: every rule in our YAML has its reason beside it. What the hub manager only holds in order to grant
//     it is marked there, and is really granted.
//   - golden_test.go: for every persona, testdata/<persona>.golden lists all that it can do, as the API server answers
//     it, and the policies that bound it. Rights that everybody has are in everybody.golden only.
//
// After a change of roles or policies, go test ./test/integration/rights -update writes the golden files again.
package rights_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// patience is how long a step waits for what must happen; on an idle machine it takes a second or two.
const patience = 90 * time.Second

// update writes the golden files instead of comparing them.
var update = flag.Bool("update", false, "write the golden files")

// recorded holds what the scenario left behind; tests only read it.
var recorded record

// record holds what the tests look at.
type record struct {
	// requests are those that the audit logs have.
	requests []request
	// deniedFrom and deniedUntil bound the time in which the cluster is denied.
	deniedFrom, deniedUntil time.Time
	// grants are the shipped and the rendered roles with their holders.
	grants []grant
	// rights are what each persona could do.
	rights []rights
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(sandbox.Main(m, func(ctx context.Context) (func(), error) { return func() {}, play(ctx) }))
}

// play runs the scenario and keeps what it leaves behind.
func play(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "spokelet-binaries-")
	if err != nil {
		return fmt.Errorf("making a directory for our programs: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := fleet.Build(ctx, dir, map[string]string{
		"spokelet": "./cmd/spokelet", "spokelet-hub": "./cmd/spokelet-hub",
	}); err != nil {
		return err
	}
	f, err := fleet.New(ctx, fleet.Options{
		Clusters: []string{own}, Binaries: dir, Audit: true, SigningDuration: lifetime, Link: true, Log: os.Stderr,
		// This one asks for the right to block the deletion of an owner.
		Admission: []string{"OwnerReferencesPermissionEnforcement"},
	})
	if err != nil {
		return err
	}
	w := &world{Fleet: f, cluster: f.Cluster(own)}
	err = w.play(ctx)
	recorded = w.record
	return errors.Join(err, f.Close())
}
