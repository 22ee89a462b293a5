package addon

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// restoreNamespace creates the namespace that add-ons share when a credential is to be stored there and it is missing:
// an add-on that has it among its manifests takes it along when it is uninstalled. Other namespaces are for the
// manifests of their add-ons to create. The agent may lack the right; then the namespace is waited for.
func (s *serving) restoreNamespace(ctx context.Context) reconcile.Outcome {
	name := s.place.namespace
	if name != names.NamespaceAgentAddon || !s.facts.addon.DeletionTimestamp.IsZero() {
		return reconcile.Outcome{}
	}
	// A user who uninstalls the agent deletes both namespaces, and wants neither back.
	if own, err := readPresence(ctx, s.sides[sideAgent].GetAPIReader(), s.Namespace); err != nil || own != presenceThere {
		return reconcile.Outcome{}
	}
	err := s.sides[s.place.side].GetClient().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	switch {
	case err == nil:
		log.FromContext(ctx).Info("created the namespace of add-ons, which was missing", "namespace", name)
	case apierrors.IsForbidden(err), apierrors.IsAlreadyExists(err): // it may be on its way out, and is watched
	default:
		return reconcile.FromError(fmt.Errorf("creating namespace %s: %w", name, err))
	}
	return reconcile.Outcome{}
}
