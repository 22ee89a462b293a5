package template

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/confighash"
)

// content says which content of a configuration is wanted.
type content bool

const (
	// asItIs takes the configuration as it stands now.
	asItIs content = false
	// asRolledOut takes it only if it is what the rollout chose, and waits for the rollout otherwise.
	asRolledOut content = true
)

// read returns the first configuration of a resource that the rollout chose for an add-on; nil when it chose none. The
// object belongs to the cache and must not be changed.
func (a *agent) read(
	ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn, resource addonv1beta1.ConfigGroupResource,
	want content,
) (*unstructured.Unstructured, error) {
	chosen := chosenConfig(addOn, resource)
	if chosen == nil {
		return nil, nil //nolint:nilnil // no configuration is not an error
	}
	u, _ := confighash.New(resource)
	what := u.GetKind() + " " + describeReferent(chosen.ConfigReferent)
	err := a.configs.Get(ctx, types.NamespacedName{Namespace: chosen.Namespace, Name: chosen.Name}, u,
		&client.GetOptions{UnsafeDisableDeepCopy: new(true)})
	switch {
	case apierrors.IsNotFound(err):
		return nil, &addon.InvalidError{Message: fmt.Sprintf(
			"%s does not exist: create it, or correct the configuration of add-on %s", what, addOn.Name)}
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", what, err)
	case !a.asksFor(addOn, resource, chosen.ConfigReferent, u):
		return nil, &addon.NotReadyError{Message: fmt.Sprintf("status.configReferences names %s, which neither "+
			"ClusterManagementAddOn %s nor the add-on's own spec asks for: waiting for the rollout to correct it",
			what, a.management.Name)}
	case chosen.SpecHash == "":
		return nil, &addon.NotReadyError{Message: "waiting for the rollout to note the content of " + what}
	}
	if want == asRolledOut {
		hash, err := confighash.SpecHash(u)
		if err != nil {
			return nil, err
		}
		if hash != chosen.SpecHash {
			return nil, &addon.NotReadyError{Message: what + " has changed: waiting for the rollout to reach this cluster"}
		}
	}
	return u, nil
}

// chosenConfig is the first configuration of a resource among those that the rollout chose.
func chosenConfig(
	addOn *addonv1beta1.ManagedClusterAddOn, resource addonv1beta1.ConfigGroupResource,
) *addonv1beta1.ConfigSpecHash {
	for i := range addOn.Status.ConfigReferences {
		reference := &addOn.Status.ConfigReferences[i]
		if reference.ConfigGroupResource == resource && reference.DesiredConfig != nil {
			return reference.DesiredConfig
		}
	}
	return nil
}

// asksFor tells whether anything that no agent can write asks for a configuration: the add-on's own spec, its
// ClusterManagementAddOn, or the template itself by the name of the add-on that it says to be made for.
func (a *agent) asksFor(
	addOn *addonv1beta1.ManagedClusterAddOn, resource addonv1beta1.ConfigGroupResource,
	referent addonv1beta1.ConfigReferent, u *unstructured.Unstructured,
) bool {
	if resource == confighash.Template() {
		if made, _, _ := unstructured.NestedString(u.Object, "spec", "addonName"); made == addOn.Name {
			return true
		}
	}
	stated := func(config addonv1beta1.AddOnConfig) bool {
		return config.ConfigGroupResource == resource && config.ConfigReferent == referent
	}
	if slices.ContainsFunc(addOn.Spec.Configs, stated) ||
		slices.ContainsFunc(a.management.Spec.DefaultConfigs, stated) {
		return true
	}
	for i := range a.management.Spec.InstallStrategy.Placements {
		if slices.ContainsFunc(a.management.Spec.InstallStrategy.Placements[i].Configs, stated) {
			return true
		}
	}
	return a.remembers(resource, referent)
}

// remembers tells whether the rollout still knows a configuration, as it does of the last one while a new one goes out.
func (a *agent) remembers(
	resource addonv1beta1.ConfigGroupResource, referent addonv1beta1.ConfigReferent,
) bool {
	for _, progression := range a.management.Status.InstallProgressions {
		for _, reference := range progression.ConfigReferences {
			if reference.ConfigGroupResource != resource {
				continue
			}
			for _, config := range []*addonv1beta1.ConfigSpecHash{
				reference.DesiredConfig, reference.LastAppliedConfig, reference.LastKnownGoodConfig,
			} {
				if config != nil && config.ConfigReferent == referent {
					return true
				}
			}
		}
	}
	return slices.ContainsFunc(a.management.Status.DefaultConfigReferences,
		func(reference addonv1beta1.DefaultConfigReference) bool {
			return reference.ConfigGroupResource == resource && reference.DesiredConfig != nil &&
				reference.DesiredConfig.ConfigReferent == referent
		})
}

func describeReferent(referent addonv1beta1.ConfigReferent) string {
	if referent.Namespace == "" {
		return referent.Name
	}
	return referent.Namespace + "/" + referent.Name
}
