package reconcile

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Setup adds a reconciler to a manager.
type Setup interface {
	SetupWithManager(mgr ctrl.Manager) error
}

// SetupAll adds reconcilers to a manager that may be running. A running manager starts a controller as soon as it is
// added, which is before it has its sources: the controller would not wait for their caches, and the first pass would
// read from informers that do not exist yet. SetupAll therefore adds everything when all reconcilers are set up, and
// nothing if one fails.
func SetupAll(mgr ctrl.Manager, setups ...Setup) error {
	deferred := &deferredManager{Manager: mgr}
	for _, s := range setups {
		if err := s.SetupWithManager(deferred); err != nil {
			return err
		}
	}
	for _, runnable := range deferred.added {
		if err := mgr.Add(runnable); err != nil {
			return fmt.Errorf("adding %T to the manager: %w", runnable, err)
		}
	}
	return nil
}

// deferredManager collects runnables instead of starting them.
type deferredManager struct {
	ctrl.Manager
	added []manager.Runnable
}

// Add implements manager.Manager.
func (m *deferredManager) Add(runnable manager.Runnable) error {
	m.added = append(m.added, runnable)
	return nil
}
