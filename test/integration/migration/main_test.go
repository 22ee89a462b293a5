// Package migration_test moves a hub from OCM to the hub manager and back, by the commands of
// docs/operations/move-from-ocm.md. What OCM leaves on a hub is built as facts: nothing of OCM runs here.
package migration_test

import (
	"fmt"
	"testing"

	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// plane is the hub.
var plane *suite.Plane

func TestMain(m *testing.M) { suite.Main(m, func(suite.T) {}) }

// startPlane starts a control plane of its own for a test, because a hub cannot be moved twice.
func startPlane(t *testing.T) {
	t.Helper()
	plane = suite.Start(t, sandbox.Options{Name: "migration"})
}

// notYet is an error that names what is missing.
func notYet(format string, args ...any) error { return fmt.Errorf(format, args...) }
