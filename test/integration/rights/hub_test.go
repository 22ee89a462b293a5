package rights_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

const addOn = "hello"

// plainLists has a program list as it does on API servers that do not stream lists, which are watches.
const plainLists = "KUBE_FEATURE_WatchListClient=false"

// createCA creates the CA of the custom signer.
func (w *world) createCA(ctx context.Context) error {
	ca, err := sandbox.NewCA("ca", nil)
	if err != nil {
		return err
	}
	return w.HubClient.Create(ctx, ca.Secret("signing", "ca", addOn))
}

// createOther creates and accepts a cluster without an agent. A user made a ClusterRole and a ClusterRoleBinding of
// the name that its own will have, without our label, and a certificate request is there for it.
func (w *world) createOther(ctx context.Context) error {
	name := names.RolePrefixCluster + other
	key, err := csr.NewKey()
	if err != nil {
		return err
	}
	request, err := csr.ForCluster(other, "agent").Build(key)
	if err != nil {
		return err
	}
	cluster := &clusterv1.ManagedCluster{ObjectMeta: in("", other)}
	cluster.Spec.HubAcceptsClient, cluster.Spec.LeaseDurationSeconds = true, 1
	for _, object := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: in("", name)},
		&rbacv1.ClusterRoleBinding{ObjectMeta: in("", name), RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name,
		}},
		request, cluster,
	} {
		if err := w.HubClient.Create(ctx, object); err != nil {
			return err
		}
	}
	return w.onHub(ctx, other, name+":work", &rbacv1.RoleBinding{})
}

// silence waits until the hub manager sees that nobody renews the lease of that cluster, and tells so.
func (w *world) silence(ctx context.Context) error {
	return fleet.Wait(ctx, "an Event about "+other, nil, func(ctx context.Context) error {
		var events eventsv1.EventList
		if err := w.HubClient.List(ctx, &events, client.InNamespace(other)); err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Reason == "AvailableUnknown" {
				return nil
			}
		}
		return fleet.NotYet("%d Events", len(events.Items))
	})
}

// onHub waits until an object is on the hub.
func (w *world) onHub(ctx context.Context, namespace, name string, object client.Object) error {
	return fleet.Wait(ctx, name+" on the hub", nil, func(ctx context.Context) error {
		return w.HubClient.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	})
}

// installAddOns waits for the add-on that a placement selects the cluster for, and installs another whose pod never
// starts. The agent has looked why long before the scenario is over.
func (w *world) installAddOns(ctx context.Context) error {
	podful := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in(own, "podful")}
	if err := w.HubClient.Create(ctx, podful); err != nil {
		return err
	}
	for _, secret := range []string{addOn + "-hub-kubeconfig", addOn + "-example.com-hello-client-cert"} {
		if err := w.onSpoke(ctx, names.NamespaceAgentAddon, secret, &corev1.Secret{}); err != nil {
			return err
		}
	}
	if err := w.addOnSays(ctx, "Progressing", "Completed"); err != nil {
		return err
	}
	return fleet.Wait(ctx, "the cause why the add-on has no lease", nil, func(ctx context.Context) error {
		var found addonv1alpha1.ManagedClusterAddOn
		if err := w.HubClient.Get(ctx, client.ObjectKey{Namespace: own, Name: addOn}, &found); err != nil {
			return err
		}
		c := meta.FindStatusCondition(found.Status.Conditions, "Available")
		if c == nil || !strings.Contains(c.Message, ". There ") {
			return fleet.NotYet("Available: %v", c)
		}
		return nil
	})
}

// addOnSays waits until a condition of the add-on has a reason.
func (w *world) addOnSays(ctx context.Context, condition, reason string) error {
	return fleet.Wait(ctx, "the add-on to be "+reason, nil, func(ctx context.Context) error {
		var found addonv1alpha1.ManagedClusterAddOn
		if err := w.HubClient.Get(ctx, client.ObjectKey{Namespace: own, Name: addOn}, &found); err != nil {
			return err
		}
		c := meta.FindStatusCondition(found.Status.Conditions, condition)
		if c == nil || c.Reason != reason {
			return fleet.NotYet("%s: %v", condition, found.Status.Conditions)
		}
		return nil
	})
}

// changeAddOns changes the values of the template, and has the placement select another cluster for a while.
func (w *world) changeAddOns(ctx context.Context) error {
	config := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: in("add-ons", addOn)}
	if err := w.patch(ctx, config, `{"spec":{"customizedVariables":[{"name":"LEVEL","value":"2"}]}}`); err != nil {
		return err
	}
	if err := w.spokeHas(ctx, names.NamespaceAgentAddon, addOn, "level", "2"); err != nil {
		return err
	}
	for _, change := range []func(context.Context) error{w.occupy, w.selectOther, w.drift, w.dropOther, w.deselectOther} {
		if err := change(ctx); err != nil {
			return err
		}
	}
	return nil
}

// occupy has a user take the names of what the add-on needs on the cluster without an agent.
func (w *world) occupy(ctx context.Context) error {
	binding := &rbacv1.RoleBinding{ObjectMeta: in(other, "open-cluster-management:"+addOn+":clusterrole:agent")}
	binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}
	work := w.work(other, "addon-"+addOn+"-deploy-0", configMap("default", "mine"))
	for _, object := range []client.Object{binding, work} {
		if err := w.HubClient.Create(ctx, object); err != nil {
			return err
		}
	}
	cluster := &clusterv1.ManagedCluster{ObjectMeta: in("", other)}
	if err := w.patch(ctx, cluster, `{"metadata":{"labels":{"environment":"demo"}}}`); err != nil {
		return err
	}
	for _, object := range []client.Object{binding, work} {
		if err := fleet.Wait(ctx, "the add-on to name what is in its way", nil, func(ctx context.Context) error {
			var found addonv1alpha1.ManagedClusterAddOn
			if err := w.HubClient.Get(ctx, client.ObjectKey{Namespace: other, Name: addOn}, &found); err != nil {
				return err
			}
			if said := fmt.Sprint(found.Status.Conditions); !strings.Contains(said, object.GetName()+" exists") {
				return fleet.NotYet("%s", said)
			}
			return nil
		}); err != nil {
			return err
		}
		if err := w.HubClient.Delete(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// selectOther waits for the add-on on the cluster without an agent.
func (w *world) selectOther(ctx context.Context) error {
	return fleet.Wait(ctx, "the work of the add-on on "+other, nil, func(ctx context.Context) error {
		var work workv1.ManifestWork
		key := client.ObjectKey{Namespace: other, Name: "addon-" + addOn + "-deploy-0"}
		if err := w.HubClient.Get(ctx, key, &work); err != nil {
			return err
		}
		if len(work.OwnerReferences) == 0 {
			return fleet.NotYet("the work is not that of the add-on")
		}
		return nil
	})
}

// drift has a user change objects of the hub manager, and waits until they are as they were.
func (w *world) drift(ctx context.Context) error {
	demo := &clusterv1beta1.PlacementDecision{ObjectMeta: in("add-ons", "demo-decision-1")}
	if err := w.onHub(ctx, demo.Namespace, demo.Name, demo); err != nil {
		return err
	}
	more := &clusterv1beta1.PlacementDecision{ObjectMeta: in("add-ons", "demo-decision-2")}
	more.Labels = map[string]string{clusterv1beta1.PlacementLabel: "demo"}
	if err := w.HubClient.Create(ctx, more); err != nil {
		return err
	}
	if err := w.goes(ctx, more); err != nil {
		return err
	}
	everywhere := "open-cluster-management:" + addOn + ":clusterrole:" + other + ":agent"
	for _, object := range []client.Object{
		demo, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in(other, addOn)},
		&rbacv1.ClusterRoleBinding{ObjectMeta: in("", everywhere)},
	} {
		if err := w.strip(ctx, object, `{"metadata":{"ownerReferences":null}}`); err != nil {
			return err
		}
	}
	return w.strip(ctx, &coordinationv1.Lease{ObjectMeta: in(other, names.LeaseCluster)}, withoutLabels)
}

// withoutLabels is a patch that takes all labels from an object.
const withoutLabels = `{"metadata":{"labels":null}}`

// strip takes labels or owners from an object, and waits until it has them again.
func (w *world) strip(ctx context.Context, object client.Object, patch string) error {
	key := client.ObjectKeyFromObject(object)
	if err := w.HubClient.Get(ctx, key, object); err != nil {
		return err
	}
	labels, owners := object.GetLabels(), object.GetOwnerReferences()
	if err := w.patch(ctx, object, patch); err != nil {
		return err
	}
	return fleet.Wait(ctx, fmt.Sprintf("%T %s to be repaired", object, key), nil, func(ctx context.Context) error {
		if err := w.HubClient.Get(ctx, key, object); err != nil {
			return err
		}
		if !maps.Equal(labels, object.GetLabels()) || len(owners) != len(object.GetOwnerReferences()) {
			return fleet.NotYet("its labels are %v, its owners %v", object.GetLabels(), object.GetOwnerReferences())
		}
		return nil
	})
}

// goes waits until an object of the hub is gone.
func (w *world) goes(ctx context.Context, object client.Object) error {
	key := client.ObjectKeyFromObject(object)
	return fleet.Wait(ctx, fmt.Sprintf("%T %s to go", object, key), nil, func(ctx context.Context) error {
		return gone(w.HubClient.Get(ctx, key, object))
	})
}

// dropOther has a user delete the add-on of the cluster without an agent, and waits until it is installed again.
func (w *world) dropOther(ctx context.Context) error {
	before := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in(other, addOn)}
	key := client.ObjectKeyFromObject(before)
	if err := w.HubClient.Get(ctx, key, before); err != nil {
		return err
	}
	if err := w.HubClient.Delete(ctx, before.DeepCopy()); err != nil {
		return err
	}
	return fleet.Wait(ctx, "add-on "+key.String()+" to be installed again", nil, func(ctx context.Context) error {
		var now addonv1alpha1.ManagedClusterAddOn
		if err := w.HubClient.Get(ctx, key, &now); err != nil {
			return err
		}
		if now.UID == before.UID {
			return fleet.NotYet("it is being deleted")
		}
		return nil
	})
}

// deselectOther takes the add-on from the cluster without an agent.
func (w *world) deselectOther(ctx context.Context) error {
	cluster := &clusterv1.ManagedCluster{ObjectMeta: in("", other)}
	if err := w.patch(ctx, cluster, `{"metadata":{"labels":{"environment":null}}}`); err != nil {
		return err
	}
	return w.goes(ctx, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in(other, addOn)})
}

// removeAddOns deletes the definition of the add-on and waits until it is gone from the cluster.
func (w *world) removeAddOns(ctx context.Context) error {
	cma := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: in("", addOn)}
	if err := w.HubClient.Delete(ctx, cma); err != nil {
		return err
	}
	return w.goes(ctx, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in(own, addOn)})
}

// removeCluster deletes the cluster without an agent.
func (w *world) removeCluster(ctx context.Context) error {
	cluster := &clusterv1.ManagedCluster{ObjectMeta: in("", other)}
	if err := w.HubClient.Delete(ctx, cluster); err != nil {
		return err
	}
	return w.goes(ctx, cluster)
}

// restartWithoutAdmission starts the hub manager as on a hub where another client checks what is written, and nobody
// gives it a certificate.
func (w *world) restartWithoutAdmission(ctx context.Context) error {
	manager := w.HubManager()
	manager.Stop(10 * time.Second)
	manager.Args = append(slices.DeleteFunc(slices.Clone(manager.Args), func(arg string) bool {
		return strings.HasPrefix(arg, "--webhook-cert-dir") || strings.HasPrefix(arg, "--webhook-ca-file")
	}), "--work-admission=false")
	manager.Env = []string{plainLists}
	if err := w.leaveBehind(ctx, manager); err != nil {
		return err
	}
	if err := w.onHub(ctx, names.NamespaceHub, names.SecretWebhook, &corev1.Secret{}); err != nil {
		return err
	}
	return w.withoutWebhooks(ctx, manager)
}

// leaveBehind starts the hub manager on a hub where a cluster went while it was away, and left something behind.
func (w *world) leaveBehind(ctx context.Context, manager *sandbox.Process) error {
	name := names.RolePrefixCluster + "left:work"
	left := &rbacv1.RoleBinding{ObjectMeta: in("left", name), RoleRef: rbacv1.RoleRef{
		APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: names.RolePrefixCluster + "work",
	}}
	left.Labels = map[string]string{names.LabelClusterName: "left"}
	namespace := &corev1.Namespace{ObjectMeta: in("", "left")}
	namespace.Labels = left.Labels
	for _, object := range []client.Object{namespace, left} {
		if err := w.HubClient.Create(ctx, object); err != nil {
			return err
		}
	}
	if err := manager.Start(); err != nil {
		return err
	}
	return w.goes(ctx, left)
}

// withoutWebhooks waits until no webhook is announced.
func (w *world) withoutWebhooks(ctx context.Context, manager *sandbox.Process) error {
	return fleet.Wait(ctx, "the webhook configurations to go", nil, func(ctx context.Context) error {
		if err := manager.Exited(); err != nil {
			return err
		}
		var mutating admissionregistrationv1.MutatingWebhookConfigurationList
		var validating admissionregistrationv1.ValidatingWebhookConfigurationList
		if err := w.HubClient.List(ctx, &mutating); err != nil {
			return err
		}
		if err := w.HubClient.List(ctx, &validating); err != nil {
			return err
		}
		if n := len(mutating.Items) + len(validating.Items); n > 0 {
			return fleet.NotYet("%d are left", n)
		}
		return nil
	})
}

// expireWork has a work on the cluster without an agent be complete, with no time to live.
func (w *world) expireWork(ctx context.Context) error {
	work := w.work(other, "expired", configMap("default", "expired"))
	work.Spec.DeleteOption = &workv1.DeleteOption{
		PropagationPolicy: workv1.DeletePropagationPolicyTypeForeground, TTLSecondsAfterFinished: new(int64),
	}
	if err := w.HubClient.Create(ctx, work); err != nil {
		return err
	}
	work.Status.Conditions = []metav1.Condition{{
		Type: workv1.WorkComplete, Status: metav1.ConditionTrue, Reason: "ConditionRulesAggregated",
		LastTransitionTime: metav1.Now(), ObservedGeneration: work.Generation,
	}}
	if err := w.HubClient.Status().Update(ctx, work); err != nil {
		return err
	}
	return w.goes(ctx, work)
}

// patch changes an object of the hub as an administrator.
func (w *world) patch(ctx context.Context, object client.Object, patch string) error {
	return w.HubClient.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// gone reports whether an object that was read is gone.
func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		return fleet.NotYet("it is still there")
	}
	return err
}
