package rights_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

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
	"github.com/spokelet/spokelet/test/sandbox/fleet"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

const addOn = "hello"

// plainLists has a program list as it does on API servers that do not stream lists, which are watches.
const plainLists = "KUBE_FEATURE_WatchListClient=false"

// createCA creates the CA of the custom signer.
func (w *world) createCA(ctx context.Context) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return fmt.Errorf("making a CA: %w", err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encoding a key: %w", err)
	}
	return w.HubClient.Create(ctx, &corev1.Secret{
		ObjectMeta: in("signing", "ca"), Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{
			corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
			corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}),
		},
	})
}

// createOther creates and accepts a cluster without an agent. Somebody made a ClusterRoleBinding of the name that its own
// will have, without our label, and a certificate request is there for it.
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

// installAddOns waits for the add-on that a placement selects the cluster for.
func (w *world) installAddOns(ctx context.Context) error {
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
	for _, change := range []func(context.Context) error{w.occupy, w.selectOther, w.drift, w.deselectOther} {
		if err := change(ctx); err != nil {
			return err
		}
	}
	return nil
}

// occupy has somebody take the names of what the add-on needs on the cluster without an agent.
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

// drift has somebody change objects of the hub manager, and waits until they are as they were.
func (w *world) drift(ctx context.Context) error {
	demo := in("add-ons", "demo-decision-1")
	more := &clusterv1beta1.PlacementDecision{ObjectMeta: in("add-ons", "demo-decision-2")}
	if err := w.HubClient.Get(ctx, client.ObjectKey{Namespace: demo.Namespace, Name: demo.Name}, &clusterv1beta1.PlacementDecision{}); err != nil {
		return err
	}
	more.Labels = map[string]string{clusterv1beta1.PlacementLabel: "demo"}
	if err := w.HubClient.Create(ctx, more); err != nil {
		return err
	}
	if err := fleet.Wait(ctx, "a page too many to go", nil, func(ctx context.Context) error {
		return gone(w.HubClient.Get(ctx, client.ObjectKeyFromObject(more), more))
	}); err != nil {
		return err
	}
	for _, object := range []client.Object{
		&clusterv1beta1.PlacementDecision{ObjectMeta: demo},
		&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in(other, addOn)},
		&coordinationv1.Lease{ObjectMeta: in(other, names.LeaseCluster)},
	} {
		if err := w.strip(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// strip takes labels and owners from an object, and waits until it has them again.
func (w *world) strip(ctx context.Context, object client.Object) error {
	key := client.ObjectKeyFromObject(object)
	if err := w.HubClient.Get(ctx, key, object); err != nil {
		return err
	}
	labels, owners := object.GetLabels(), object.GetOwnerReferences()
	what := "{"
	if len(owners) > 0 {
		what += `"ownerReferences":null,`
	}
	kept := map[string]any{}
	for label := range labels {
		if len(owners) == 0 || strings.HasSuffix(label, "/name") || strings.HasSuffix(label, "infrastructure") {
			kept[label] = nil
		}
	}
	if strings.HasSuffix(object.GetName(), "-agent") || strings.HasSuffix(object.GetName(), "-token-role") {
		what = "{"
	}
	encoded, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	if err := w.patch(ctx, object, `{"metadata":`+what+`"labels":`+string(encoded)+`}}`); err != nil {
		return err
	}
	return fleet.Wait(ctx, fmt.Sprintf("%T %s to be repaired", object, key), nil, func(ctx context.Context) error {
		if err := w.HubClient.Get(ctx, key, object); err != nil {
			return err
		}
		for label, value := range labels {
			if object.GetLabels()[label] != value {
				return fleet.NotYet("label %s is %q", label, object.GetLabels()[label])
			}
		}
		if len(object.GetOwnerReferences()) != len(owners) {
			return fleet.NotYet("its owners are %v", object.GetOwnerReferences())
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
	return fleet.Wait(ctx, "the add-on to go", nil, func(ctx context.Context) error {
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in(other, addOn)}
		return gone(w.HubClient.Get(ctx, client.ObjectKeyFromObject(addOn), addOn))
	})
}

// useTokens starts the agent with the driver token and then again without.
func (w *world) useTokens(ctx context.Context) error {
	certificates := slices.Clone(w.cluster.Agent.Args)
	w.cluster.Agent.Stop(10 * time.Second)
	w.cluster.Agent.Args = append(certificates, "--addon-kubeclient-registration-auth=token")
	w.cluster.Agent.Env = []string{plainLists}
	if err := w.cluster.Agent.Start(); err != nil {
		return err
	}
	if err := fleet.Wait(ctx, "a token for the add-on", nil, func(ctx context.Context) error {
		var secret corev1.Secret
		key := client.ObjectKey{Namespace: names.NamespaceAgentAddon, Name: addOn + "-hub-kubeconfig"}
		if err := w.cluster.Client.Get(ctx, key, &secret); err != nil {
			return err
		}
		if len(secret.Data["token"]) == 0 {
			return fleet.NotYet("the credential of the add-on has no token")
		}
		return nil
	}); err != nil {
		return err
	}
	if err := w.noteTokens(ctx); err != nil {
		return err
	}
	for _, object := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: in(own, addOn+"-agent")},
		&rbacv1.Role{ObjectMeta: in(own, addOn+"-token-role")},
		&rbacv1.RoleBinding{ObjectMeta: in(own, addOn+"-token-role")},
	} {
		if err := w.strip(ctx, object); err != nil {
			return err
		}
	}
	w.cluster.Agent.Stop(10 * time.Second)
	w.cluster.Agent.Args = certificates
	if err := w.cluster.Agent.Start(); err != nil {
		return err
	}
	return fleet.Wait(ctx, "the ServiceAccount of the add-on to go", nil, func(ctx context.Context) error {
		return gone(w.HubClient.Get(ctx, client.ObjectKey{Namespace: own, Name: addOn + "-agent"}, &corev1.ServiceAccount{}))
	})
}

// renew waits until the agent has another certificate than the first.
func (w *world) renew(ctx context.Context) error {
	var first *x509.Certificate
	return fleet.Wait(ctx, "the agent to renew its certificate", nil, func(ctx context.Context) error {
		var secret corev1.Secret
		key := client.ObjectKey{Namespace: names.NamespaceAgent, Name: "hub-kubeconfig-secret"}
		if err := w.cluster.Client.Get(ctx, key, &secret); err != nil {
			return err
		}
		block, _ := pem.Decode(secret.Data["tls.crt"])
		if block == nil {
			return fleet.NotYet("no certificate in %v", key)
		}
		now, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return err
		}
		if first == nil {
			first = now
		}
		if first.Equal(now) {
			return fleet.NotYet("the certificate is still that of %s", first.NotBefore)
		}
		return nil
	})
}

// deny denies the cluster while its agent runs, starts the agent anew, as a node that restarts would, and accepts the
// cluster again.
func (w *world) deny(ctx context.Context) error {
	cluster := &clusterv1.ManagedCluster{ObjectMeta: in("", own)}
	w.record.deniedFrom = time.Now()
	if err := w.patch(ctx, cluster, `{"spec":{"hubAcceptsClient":false}}`); err != nil {
		return err
	}
	if err := w.hasRules(ctx, func(n int) bool { return n == 1 }); err != nil {
		return err
	}
	from := time.Now()
	if err := w.breakWatches(ctx, from); err != nil {
		return err
	}
	w.cluster.Agent.Stop(10 * time.Second)
	started := len(w.cluster.Agent.Log())
	if err := w.cluster.Agent.Start(); err != nil {
		return err
	}
	if err := fleet.Wait(ctx, "the agent to see that it is denied", nil, func(context.Context) error {
		if log := w.cluster.Agent.Log()[started:]; !strings.Contains(log, "is not accepted") {
			return fleet.NotYet("%s", log)
		}
		return nil
	}); err != nil {
		return err
	}
	if err := w.noteDenied(ctx, from); err != nil {
		return err
	}
	if err := w.patch(ctx, cluster, `{"spec":{"hubAcceptsClient":true}}`); err != nil {
		return err
	}
	if err := w.hasRules(ctx, func(n int) bool { return n > 1 }); err != nil {
		return err
	}
	defer func() { w.record.deniedUntil = time.Now() }()
	return w.WaitAvailable(ctx, w.cluster, nil)
}

// hasRules waits until the number of the rules of the cluster's own role is right.
func (w *world) hasRules(ctx context.Context, right func(int) bool) error {
	return fleet.Wait(ctx, "the rights of the cluster", nil, func(ctx context.Context) error {
		role := &rbacv1.ClusterRole{}
		if err := w.HubClient.Get(ctx, client.ObjectKey{Name: names.RolePrefixCluster + own}, role); err != nil {
			return err
		}
		if !right(len(role.Rules)) {
			return fleet.NotYet("%d rules", len(role.Rules))
		}
		return nil
	})
}

// breakWatches breaks the connections of the agent until it has watched its ManagedCluster anew. An audit log tells of a
// watch when it ends, so they break at least twice.
func (w *world) breakWatches(ctx context.Context, since time.Time) error {
	var last time.Time
	return fleet.Wait(ctx, "the agent to watch its ManagedCluster", nil, func(context.Context) error {
		if time.Since(last) > time.Second {
			w.Link.Cut()
			w.Link.Mend()
			last = time.Now()
		}
		requests, err := readAudit(w.Hub)
		if err != nil {
			return err
		}
		for _, r := range requests {
			if r.verb == "watch" && r.resource == "managedclusters" && r.name == own && r.at.After(since) && !r.denied {
				return nil
			}
		}
		return fleet.NotYet("no watch of it has ended")
	})
}

// removeAddOns deletes the definition of the add-on and waits until it is gone from the cluster.
func (w *world) removeAddOns(ctx context.Context) error {
	cma := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: in("", addOn)}
	if err := w.HubClient.Delete(ctx, cma); err != nil {
		return err
	}
	return fleet.Wait(ctx, "the add-on to go", nil, func(ctx context.Context) error {
		return gone(w.HubClient.Get(ctx, client.ObjectKey{Namespace: own, Name: addOn}, &addonv1alpha1.ManagedClusterAddOn{}))
	})
}

// removeCluster deletes the cluster without an agent.
func (w *world) removeCluster(ctx context.Context) error {
	cluster := &clusterv1.ManagedCluster{ObjectMeta: in("", other)}
	if err := w.HubClient.Delete(ctx, cluster); err != nil {
		return err
	}
	return fleet.Wait(ctx, "the cluster to go", nil, func(ctx context.Context) error {
		return gone(w.HubClient.Get(ctx, client.ObjectKeyFromObject(cluster), cluster))
	})
}

// restartWithoutAdmission starts the hub manager as on a hub where somebody else checks what is written.
func (w *world) restartWithoutAdmission(ctx context.Context) error {
	manager := w.HubManager()
	manager.Stop(10 * time.Second)
	manager.Args = append(manager.Args, "--cluster-admission=false", "--work-admission=false")
	manager.Env = []string{plainLists}
	// A cluster went while the hub manager was away, and left this behind.
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
	if err := fleet.Wait(ctx, "what is left of a cluster to go", nil, func(ctx context.Context) error {
		return gone(w.HubClient.Get(ctx, client.ObjectKeyFromObject(left), left))
	}); err != nil {
		return err
	}
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
	return fleet.Wait(ctx, "the work to go", nil, func(ctx context.Context) error {
		return gone(w.HubClient.Get(ctx, client.ObjectKeyFromObject(work), work))
	})
}

// patch changes an object of the hub as an administrator.
func (w *world) patch(ctx context.Context, object client.Object, patch string) error {
	return w.HubClient.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// gone says whether an object that was read is gone.
func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		return fleet.NotYet("it is still there")
	}
	return err
}
