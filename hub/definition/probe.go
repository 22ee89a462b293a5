package definition

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// probeName names the add-on that is never created.
	probeName = "spokelet-conversion-probe"
	// probeTimeout is how long the API server gets.
	probeTimeout = 15 * time.Second
	// failedConversion is in every error of the API server about a webhook that does not convert.
	failedConversion = "conversion webhook for"
)

// ask has the API server convert an add-on: it answers a dry run in v1beta1 with what would be stored, converted there
// and back. Where that fails for another reason, as by an admission webhook that knows no dry runs, a list of the
// add-ons that are there answers instead.
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
	if err != nil && !strings.Contains(err.Error(), failedConversion) {
		probe := k.list(ctx, "ManagedClusterAddOn")
		if probe.Answer == Unknown {
			probe.Message = err.Error()
		}
		return probe
	}
	return answer(err)
}

// list has the API server convert the objects of a kind that are there, the first of them.
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
	case strings.Contains(err.Error(), failedConversion):
		return Probe{Answer: NotConverted, Message: err.Error()}
	}
	return Probe{Message: err.Error()}
}
