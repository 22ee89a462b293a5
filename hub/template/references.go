package template

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/confighash"
)

// content selects which content of a configuration is read.
type content bool

const (
	// asItIs reads the current content.
	asItIs content = false
	// asRolledOut reads the content only if the rollout chose it, and otherwise waits for the rollout.
	asRolledOut content = true
)

// template reads the template that was chosen for an add-on on a cluster, and refuses one that asks for too much.
func (a *agent) template(
	ctx context.Context, cluster string, addOn *addonv1beta1.ManagedClusterAddOn, choice addon.Choice, want content,
) (*Template, error) {
	u, err := a.read(ctx, addOn, choice, confighash.Template(), want)
	if err != nil {
		return nil, err
	}
	if u == nil {
		return nil, &addon.NotReadyError{Message: "waiting for the rollout to choose an AddOnTemplate"}
	}
	t, err := ReadTemplate(u)
	if err != nil {
		return nil, err
	}
	return t, CheckTrust(t, cluster, addOn.Name, a.home)
}

// config returns the first AddOnDeploymentConfig that was chosen for an add-on; nil for none.
func (a *agent) config(
	ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn, choice addon.Choice, want content,
) (*addonv1beta1.AddOnDeploymentConfig, error) {
	u, err := a.read(ctx, addOn, choice, confighash.DeploymentConfig(), want)
	if err != nil || u == nil {
		return nil, err
	}
	return ReadConfig(u)
}

// input reads the template and the configuration of an add-on on a cluster.
func (a *agent) input(
	ctx context.Context, cluster *clusterv1.ManagedCluster, addOn *addonv1beta1.ManagedClusterAddOn, choice addon.Choice,
	want content,
) (Input, error) {
	t, err := a.template(ctx, cluster.Name, addOn, choice, want)
	if err != nil {
		return Input{}, err
	}
	config, err := a.config(ctx, addOn, choice, want)
	if err != nil {
		return Input{}, err
	}
	return Input{Template: t, Config: config, Cluster: cluster, AddOn: addOn.Name}, nil
}

// read returns the first configuration of a resource that was chosen for an add-on; nil for none. The object belongs to
// the cache and must not be changed.
func (a *agent) read(
	ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn, choice addon.Choice,
	resource addonv1beta1.ConfigGroupResource, want content,
) (*unstructured.Unstructured, error) {
	chosen := first(choice, resource)
	if chosen == nil {
		return nil, nil // no configuration is not an error
	}
	u, _ := a.versions.New(resource)
	what := u.GetKind() + " " + describeReferent(chosen.ConfigReferent)
	err := a.configs.Get(ctx, types.NamespacedName{Namespace: chosen.Namespace, Name: chosen.Name}, u,
		&client.GetOptions{UnsafeDisableDeepCopy: new(true)})
	switch {
	case apierrors.IsNotFound(err) && choice.Blocked != "":
		return nil, &addon.NotReadyError{Message: "waiting for the rollout: " + choice.Blocked}
	case apierrors.IsNotFound(err):
		return nil, &addon.InvalidError{Message: fmt.Sprintf(
			"%s does not exist: create it, or correct the configuration of add-on %s", what, addOn.Name)}
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", what, err)
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

// first returns the first chosen configuration of a resource; nil for none.
func first(choice addon.Choice, resource addonv1beta1.ConfigGroupResource) *addon.ChosenConfig {
	for i := range choice.Configs {
		if choice.Configs[i].ConfigGroupResource == resource {
			return &choice.Configs[i]
		}
	}
	return nil
}

func describeReferent(referent addonv1beta1.ConfigReferent) string {
	if referent.Namespace == "" {
		return referent.Name
	}
	return referent.Namespace + "/" + referent.Name
}
