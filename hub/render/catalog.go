package render

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/objectwatch"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// catalog holds what the files have, in the versions in which the hub manager reads it.
type catalog struct {
	// hub has all objects that the reconcilers read, besides those in the maps, which are added when they are complete.
	hub *objects
	// where and files have the place of each configuration, with and without the line: a line changes with the text above
	// it.
	where, files map[string]string

	clusters  map[string]*clusterv1.ManagedCluster
	cmas      map[string]*addonv1beta1.ClusterManagementAddOn
	addOns    map[types.NamespacedName]*addonv1beta1.ManagedClusterAddOn
	templates []*unstructured.Unstructured
	decisions []*clusterv1beta1.PlacementDecision
	// others are the objects of other kinds, and read are the kinds of these that are read: those that the add-on in
	// question understands.
	others map[objectwatch.Ref]*unstructured.Unstructured
	read   []addonv1beta1.ConfigGroupResource
}

// newCatalog sorts the objects of files.
func newCatalog(all []found) (*catalog, error) {
	c := &catalog{
		hub: newObjects(), where: map[string]string{}, files: map[string]string{},
		clusters: map[string]*clusterv1.ManagedCluster{},
		cmas:     map[string]*addonv1beta1.ClusterManagementAddOn{},
		addOns:   map[types.NamespacedName]*addonv1beta1.ManagedClusterAddOn{},
		others:   map[objectwatch.Ref]*unstructured.Unstructured{},
	}
	plurals := resources(all)
	var problems []error
	for _, object := range all {
		forget(object.Unstructured)
		kind := object.GroupVersionKind()
		ref := objectwatch.Ref{
			Group: kind.Group, Resource: plurals[kind.GroupKind()], Namespace: object.GetNamespace(), Name: object.GetName(),
		}
		c.where[ref.String()], c.files[ref.String()] = object.where, object.file
		if err := c.add(object.Unstructured, ref); err != nil {
			problems = append(problems, fmt.Errorf("%s: %s: %w", object.where, describe(object.Unstructured), err))
		}
	}
	return c, errors.Join(problems...)
}

// forget removes what only the object of a hub has: its life there, and the configuration that it had.
func forget(u *unstructured.Unstructured) {
	for _, field := range []string{
		"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
		"managedFields", "selfLink", "finalizers",
	} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(u.Object, "status", "configReferences")
}

// add adds an object that was checked.
func (c *catalog) add(u *unstructured.Unstructured, ref objectwatch.Ref) error {
	switch u.GroupVersionKind().GroupKind().String() {
	case "ManagedCluster." + clusterv1.GroupName:
		cluster, err := typed(u, &clusterv1.ManagedCluster{})
		c.clusters[u.GetName()] = cluster
		return err
	case "Placement." + clusterv1.GroupName:
		placement, err := typed(u, &clusterv1beta1.Placement{})
		c.hub.put(placement)
		return err
	case "PlacementDecision." + clusterv1.GroupName:
		return c.addDecision(u)
	case "ClusterManagementAddOn." + addonv1beta1.GroupName:
		return c.addManagement(u)
	case "ManagedClusterAddOn." + addonv1beta1.GroupName:
		return c.addAddOn(u)
	case "AddOnTemplate." + addonv1beta1.GroupName, "AddOnDeploymentConfig." + addonv1beta1.GroupName:
		kind, _ := confighash.Kind(addonv1beta1.ConfigGroupResource{Group: ref.Group, Resource: ref.Resource})
		u.SetGroupVersionKind(kind) // The fields are the same in all versions.
		c.hub.put(u)
		if kind.Kind == "AddOnTemplate" {
			c.templates = append(c.templates, u)
		}
		return nil
	}
	c.others[ref] = u
	return nil
}

func (c *catalog) addDecision(u *unstructured.Unstructured) error {
	decision, err := typed(u, &clusterv1beta1.PlacementDecision{})
	if err != nil {
		return err
	}
	if decision.Labels[names.LabelPlacement] == "" {
		return fmt.Errorf("metadata.labels: it needs label %s with the name of its Placement", names.LabelPlacement)
	}
	c.decisions = append(c.decisions, decision)
	c.hub.put(decision)
	return nil
}

func (c *catalog) addManagement(u *unstructured.Unstructured) error {
	if u.GroupVersionKind().Version == addonv1alpha1.GroupVersion.Version {
		alpha, err := typed(u, &addonv1alpha1.ClusterManagementAddOn{})
		if err == nil {
			c.cmas[u.GetName()] = addonapi.ClusterManagementAddOnToBeta(alpha)
		}
		return err
	}
	c.hub.put(u) // A field of it is read without its type.
	beta, err := typed(u, &addonv1beta1.ClusterManagementAddOn{})
	c.cmas[u.GetName()] = beta
	return err
}

func (c *catalog) addAddOn(u *unstructured.Unstructured) error {
	key := client.ObjectKeyFromObject(u)
	if u.GroupVersionKind().Version == addonv1alpha1.GroupVersion.Version {
		alpha, err := typed(u, &addonv1alpha1.ManagedClusterAddOn{})
		if err == nil {
			c.addOns[key] = addonapi.AddOnToBeta(alpha)
		}
		return err
	}
	beta, err := typed(u, &addonv1beta1.ManagedClusterAddOn{})
	c.addOns[key] = beta
	return err
}

// typed decodes an object.
func typed[T client.Object](u *unstructured.Unstructured, into T) (T, error) {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
		return into, fmt.Errorf("it cannot be read: %w", err)
	}
	return into, nil
}

// putCluster adds a cluster to the hub, with its namespace.
func (c *catalog) putCluster(cluster *clusterv1.ManagedCluster) {
	c.hub.put(cluster)
	namespace := reconcile.Namespace()
	namespace.Name, namespace.Labels = cluster.Name, map[string]string{names.LabelClusterName: cluster.Name}
	c.hub.put(namespace)
}

var _ addonconfig.Objects = &catalog{}

// Want implements addonconfig.Objects; all objects are there already.
func (*catalog) Want(string, []objectwatch.Ref, ...objectwatch.Ref) {}

// Get implements addonconfig.Objects. A hub manager may read no object of a kind that the add-on does not understand,
// unless a user granted that.
func (c *catalog) Get(ref objectwatch.Ref) objectwatch.State {
	if !slices.Contains(c.read, addonv1beta1.ConfigGroupResource{Group: ref.Group, Resource: ref.Resource}) {
		return objectwatch.State{Cause: &objectwatch.Cause{
			Reason: objectwatch.Forbidden, Message: "the hub manager may not read " + ref.String(),
		}}
	}
	if object := c.others[ref]; object != nil {
		return objectwatch.State{Phase: objectwatch.Found, Object: object}
	}
	return objectwatch.State{Phase: objectwatch.Missing}
}

// putAddOn adds an add-on to the hub as it is read there: with the defaults of the version in which it is stored, which
// is v1alpha1 in every OCM.
func (c *catalog) putAddOn(addOn *addonv1beta1.ManagedClusterAddOn) error {
	known, err := shipped()
	if err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(addonapi.AddOnToAlpha(addOn))
	if err != nil {
		return fmt.Errorf("encoding add-on %s: %w", client.ObjectKeyFromObject(addOn), err)
	}
	if spec, isMap := content["spec"].(map[string]any); isMap {
		stored := known[schema.GroupVersionKind{
			Group: addonv1alpha1.GroupName, Version: addonv1alpha1.GroupVersion.Version, Kind: "ManagedClusterAddOn",
		}]
		of := stored.schema.Properties["spec"]
		defaults(spec, &of)
	}
	alpha, err := typed(&unstructured.Unstructured{Object: content}, &addonv1alpha1.ManagedClusterAddOn{})
	if err != nil {
		return err
	}
	c.hub.put(addonapi.AddOnToBeta(alpha))
	return nil
}
