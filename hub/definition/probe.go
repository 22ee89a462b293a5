package definition

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/apierror"
)

const (
	// probeName names the add-on that is never created.
	probeName = "spokelet-conversion-probe"
	// probeTimeout is the limit for a probe.
	probeTimeout = 15 * time.Second
)

// ask probes the conversion of add-ons by a dry run in v1beta1, which the API server converts to the stored version and
// back. If it fails for another reason, such as an admission webhook without dry runs, a list of existing add-ons
// decides.
func (k *Keeper) ask(ctx context.Context) Probe {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(addonv1beta1.GroupVersion.String())
	u.SetKind("ManagedClusterAddOn")
	u.SetNamespace(metav1.NamespaceDefault)
	u.SetName(probeName)
	u.Object["spec"] = map[string]any{}
	err := k.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.DryRunAll,
		client.FieldOwner(managerConversion), client.ForceOwnership)
	if err != nil && !apierror.NotConverted(err) {
		probe := k.list(ctx, "ManagedClusterAddOn")
		if probe.Answer == Unknown {
			probe.Message = err.Error()
		}
		return probe
	}
	return answer(err)
}

// list probes the conversion of a kind by listing its first object.
func (k *Keeper) list(ctx context.Context, kind string) Probe {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(addonv1beta1.GroupVersion.String())
	list.SetKind(kind + "List")
	err := k.Client.List(ctx, list, client.Limit(1))
	if err == nil && len(list.Items) == 0 {
		return Probe{Message: "there is no " + kind + " to convert"}
	}
	return answer(err)
}

func answer(err error) Probe {
	switch {
	case err == nil:
		return Probe{Answer: Converted}
	case apierror.NotConverted(err):
		return Probe{Answer: NotConverted, Message: err.Error()}
	}
	return Probe{Message: err.Error()}
}
