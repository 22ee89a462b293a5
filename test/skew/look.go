package skew

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// secretAddOn is the Secret with the credential of the add-on.
const secretAddOn = addOnName + "-hub-kubeconfig"

// Cluster holds what a look at a managed cluster and its part of the hub shows.
type Cluster struct {
	// Available reports whether the hub says that the cluster is available. Agent is the identity with which it joined.
	Available bool
	Agent     string
	// AddOn is the add-on, Works are its works by name, and Objects those of the add-on on the cluster.
	AddOn   *AddOn
	Works   map[string]Work
	Objects map[string]Object
	// Certificates are those of the agent and of the add-on.
	Certificates map[string]string
}

// AddOn is a ManagedClusterAddOn.
type AddOn struct {
	UID types.UID
	// Available and Completed report that its conditions say so, and Configured that it has what it should have.
	Available, Completed, Configured bool
	// Says are its conditions in words.
	Says string
}

// Work is a ManifestWork.
type Work struct {
	// Applied and Available report that its conditions say so of the present generation.
	Applied, Available bool
	// Spec is its spec as JSON.
	Spec string
}

// Object is an object on a managed cluster.
type Object struct {
	UID types.UID
	// Version is the version of the add-on that it is of.
	Version string
}

// look reads all clusters.
func (w *world) look(ctx context.Context) (map[string]Cluster, error) {
	seen := map[string]Cluster{}
	for _, cluster := range w.fleet.Clusters() {
		c, err := w.lookAt(ctx, cluster)
		if err != nil {
			return nil, fmt.Errorf("looking at %s: %w", cluster.Name, err)
		}
		seen[cluster.Name] = c
	}
	return seen, nil
}

func (w *world) lookAt(ctx context.Context, cluster *fleet.Cluster) (Cluster, error) {
	c := Cluster{Works: map[string]Work{}, Objects: map[string]Object{}, Certificates: map[string]string{}}
	var managed clusterv1.ManagedCluster
	if err := w.fleet.HubClient.Get(ctx, client.ObjectKey{Name: cluster.Name}, &managed); err != nil {
		return Cluster{}, fmt.Errorf("reading the ManagedCluster: %w", err)
	}
	c.Available = meta.IsStatusConditionTrue(managed.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	hub := addonapi.Client{Client: w.fleet.HubClient}
	addOn, err := hub.GetAddOn(ctx, types.NamespacedName{Namespace: cluster.Name, Name: addOnName})
	if client.IgnoreNotFound(err) != nil {
		return Cluster{}, fmt.Errorf("reading the add-on: %w", err)
	}
	if err == nil {
		c.AddOn = addOnOf(addOn)
	}
	var works workv1.ManifestWorkList
	own := client.MatchingLabels{names.LabelAddonName: addOnName}
	if err := w.fleet.HubClient.List(ctx, &works, client.InNamespace(cluster.Name), own); err != nil {
		return Cluster{}, fmt.Errorf("reading the works: %w", err)
	}
	for i := range works.Items {
		if c.Works[works.Items[i].Name], err = workOf(&works.Items[i]); err != nil {
			return Cluster{}, err
		}
	}
	return c, errors.Join(lookAtObjects(ctx, cluster, c.Objects), lookAtCredentials(ctx, cluster, &c))
}

// addOnOf says how an add-on is.
func addOnOf(addOn *addonv1beta1.ManagedClusterAddOn) *AddOn {
	conditions := addOn.Status.Conditions
	progressing := meta.FindStatusCondition(conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing)
	a := &AddOn{
		UID: addOn.UID, Configured: len(addOn.Status.ConfigReferences) > 0,
		Available: meta.IsStatusConditionTrue(conditions, addonv1beta1.ManagedClusterAddOnConditionAvailable),
		Completed: progressing != nil && progressing.Reason == addonv1beta1.ProgressingReasonCompleted,
	}
	for _, reference := range addOn.Status.ConfigReferences {
		if reference.DesiredConfig == nil || !reflect.DeepEqual(reference.DesiredConfig, reference.LastAppliedConfig) {
			a.Configured = false
		}
	}
	for _, condition := range conditions {
		a.Says += fmt.Sprintf("; %s=%s (%s): %s", condition.Type, condition.Status, condition.Reason, condition.Message)
	}
	return a
}

func workOf(work *workv1.ManifestWork) (Work, error) {
	spec, err := json.Marshal(work.Spec)
	if err != nil {
		return Work{}, fmt.Errorf("reading work %s: %w", work.Name, err)
	}
	says := func(kind string) bool {
		c := meta.FindStatusCondition(work.Status.Conditions, kind)
		return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == work.Generation
	}
	return Work{Applied: says(workv1.WorkApplied), Available: says(workv1.WorkAvailable), Spec: string(spec)}, nil
}

// lookAtObjects reads the objects of the add-on on a cluster.
func lookAtObjects(ctx context.Context, cluster *fleet.Cluster, seen map[string]Object) error {
	key := client.ObjectKey{Namespace: names.NamespaceAgentAddon, Name: addOnName}
	var config corev1.ConfigMap
	var deployment appsv1.Deployment
	for kind, object := range map[string]client.Object{"ConfigMap": &config, "Deployment": &deployment} {
		err := cluster.Client.Get(ctx, key, object)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading the %s: %w", kind, err)
		}
		version := config.Data["version"]
		if kind == "Deployment" {
			version = versionOf(deployment.Spec.Template.Spec)
		}
		seen[kind] = Object{UID: object.GetUID(), Version: version}
	}
	return nil
}

// lookAtCredentials reads the credentials of agent and add-on; each may be missing.
func lookAtCredentials(ctx context.Context, cluster *fleet.Cluster, c *Cluster) error {
	for whose, key := range map[string]client.ObjectKey{
		ofAgent: {Namespace: names.NamespaceAgent, Name: names.SecretHub},
		ofAddOn: {Namespace: names.NamespaceAgentAddon, Name: secretAddOn},
	} {
		var secret corev1.Secret
		err := cluster.Client.Get(ctx, key, &secret)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading the credential of %s: %w", whose, err)
		}
		c.Certificates[whose] = string(secret.Data[csr.KeyCertificate])
		if whose == ofAgent {
			c.Agent = string(secret.Data[csr.KeyAgentName])
		}
	}
	return nil
}
