package addonapi

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Wire is the API version of add-ons in requests.
type Wire string

const (
	// WireAlpha is the stored version of OCM.
	WireAlpha Wire = "v1alpha1"
	// WireBeta is for hubs that no longer serve v1alpha1.
	WireBeta Wire = "v1beta1"
)

// Detect returns the API version to use: v1alpha1 where it is served, otherwise v1beta1.
func Detect(mapper meta.RESTMapper) (Wire, error) {
	kind := schema.GroupKind{Group: addonv1alpha1.GroupName, Kind: "ManagedClusterAddOn"}
	for _, wire := range []Wire{WireAlpha, WireBeta} {
		_, err := mapper.RESTMapping(kind, string(wire))
		switch {
		case err == nil:
			return wire, nil
		case !meta.IsNoMatchError(err):
			return "", fmt.Errorf("asking the hub which version of %s it serves: %w", kind, err)
		}
	}
	return "", fmt.Errorf("the hub serves %s neither in %s nor in %s: are its CRDs installed?", kind, WireAlpha, WireBeta)
}

// DetectOwners returns the version in which owner references name add-ons: v1beta1 where it is served, because v1alpha1
// may go, otherwise v1alpha1. Kubernetes collects nothing whose owner is in a version that is not served.
func DetectOwners(mapper meta.RESTMapper) (Wire, error) {
	kind := schema.GroupKind{Group: addonv1beta1.GroupName, Kind: "ManagedClusterAddOn"}
	_, err := mapper.RESTMapping(kind, string(WireBeta))
	switch {
	case err == nil:
		return WireBeta, nil
	case meta.IsNoMatchError(err):
		return WireAlpha, nil
	}
	return "", fmt.Errorf("asking the hub whether it serves %s in %s: %w", kind, WireBeta, err)
}

// Owner returns a reference to a ManagedClusterAddOn or ClusterManagementAddOn as an owner, which is neither the
// controller nor blocks the deletion; version is that of Client.Owners.
func Owner(version Wire, kind string, owner metav1.Object) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: OwnerVersion(version), Kind: kind, Name: owner.GetName(), UID: owner.GetUID(),
	}
}

// OwnerVersion returns the apiVersion of owner references to add-ons in a version, which is empty for WireBeta.
func OwnerVersion(version Wire) string {
	return schema.GroupVersion{Group: addonv1beta1.GroupName, Version: string(cmp.Or(version, WireBeta))}.String()
}

// NewClient returns a Client in the versions that the hub of a mapper serves.
func NewClient(of client.Client, mapper meta.RESTMapper, wire Wire) (Client, error) {
	configs, err := DetectConfigs(mapper)
	if err != nil {
		return Client{}, err
	}
	owners, err := DetectOwners(mapper)
	return Client{Client: of, Wire: wire, Owners: owners, Configs: configs}, err
}

// DetectConfigs returns the API versions of the configurations of add-ons. Of a kind that is not served, the usual
// version is assumed.
func DetectConfigs(mapper meta.RESTMapper) (confighash.Versions, error) {
	var versions confighash.Versions
	var err error
	if versions.Template, err = detectConfig(mapper, confighash.Template()); err != nil {
		return versions, err
	}
	versions.DeploymentConfig, err = detectConfig(mapper, confighash.DeploymentConfig())
	return versions, err
}

// detectConfig returns the version of one kind of configurations: the usual one if it is served.
func detectConfig(mapper meta.RESTMapper, resource addonv1beta1.ConfigGroupResource) (string, error) {
	usual, _ := confighash.Kind(resource)
	for _, version := range []string{usual.Version, string(WireAlpha), string(WireBeta)} {
		_, err := mapper.RESTMapping(usual.GroupKind(), version)
		switch {
		case err == nil:
			return version, nil
		case !meta.IsNoMatchError(err):
			return "", fmt.Errorf("asking the hub which version of %s it serves: %w", usual.GroupKind(), err)
		}
	}
	return "", nil
}

// Client reads and writes add-ons as v1beta1 objects, through a client that uses Wire.
type Client struct {
	// Client reads, usually from a cache, and writes objects of the wire version.
	Client client.Client
	// Wire is the version on the wire; empty means WireAlpha.
	Wire Wire
	// Owners is the version in which owner references name add-ons; empty means WireBeta.
	Owners Wire
	// Configs are the served versions of the configurations of add-ons.
	Configs confighash.Versions
}

// WatchedAddOn returns an empty ManagedClusterAddOn of the wire version, for watches.
func (c Client) WatchedAddOn() client.Object {
	if c.Wire == WireBeta {
		return &addonv1beta1.ManagedClusterAddOn{}
	}
	return &addonv1alpha1.ManagedClusterAddOn{}
}

// WatchedClusterManagementAddOn returns an empty ClusterManagementAddOn of the wire version, for watches.
func (c Client) WatchedClusterManagementAddOn() client.Object {
	if c.Wire == WireBeta {
		return &addonv1beta1.ClusterManagementAddOn{}
	}
	return &addonv1alpha1.ClusterManagementAddOn{}
}

// MetadataOfClusterManagementAddOn returns an empty ClusterManagementAddOn of which only the metadata is read.
func (c Client) MetadataOfClusterManagementAddOn() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{
		APIVersion: schema.GroupVersion{
			Group: addonv1beta1.GroupName, Version: string(cmp.Or(c.Wire, WireAlpha)),
		}.String(),
		Kind: "ClusterManagementAddOn",
	}}
}

// AddOnListKind is the kind of a list of ManagedClusterAddOns of which only the metadata is read.
func (c Client) AddOnListKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{
		Group: addonv1beta1.GroupName, Version: string(cmp.Or(c.Wire, WireAlpha)), Kind: "ManagedClusterAddOnList",
	}
}

// GetAddOn reads one ManagedClusterAddOn; apierrors.IsNotFound works on its error.
func (c Client) GetAddOn(ctx context.Context, key types.NamespacedName) (*addonv1beta1.ManagedClusterAddOn, error) {
	return c.GetAddOnFrom(ctx, c.Client, key)
}

// GetAddOnFrom is GetAddOn with another reader, such as one without a cache.
func (c Client) GetAddOnFrom(
	ctx context.Context, reader client.Reader, key types.NamespacedName,
) (*addonv1beta1.ManagedClusterAddOn, error) {
	wire := c.WatchedAddOn()
	if err := reader.Get(ctx, key, wire); err != nil {
		return nil, fmt.Errorf("reading add-on %s: %w", key, err)
	}
	return AddOn(wire)
}

// SameAddOn reads an add-on again, with a reader without a cache; nil when it is gone, whether or not another one has
// its name.
func (c Client) SameAddOn(
	ctx context.Context, reader client.Reader, addOn *addonv1beta1.ManagedClusterAddOn,
) (*addonv1beta1.ManagedClusterAddOn, error) {
	live, err := c.GetAddOnFrom(ctx, reader, client.ObjectKeyFromObject(addOn))
	if reconcile.ObjectGone(err) || (err == nil && live.UID != addOn.UID) {
		return nil, nil // absent is an answer
	}
	return live, err
}

// ListAddOns lists ManagedClusterAddOns.
func (c Client) ListAddOns(
	ctx context.Context, opts ...client.ListOption,
) ([]*addonv1beta1.ManagedClusterAddOn, error) {
	if c.Wire == WireBeta {
		var list addonv1beta1.ManagedClusterAddOnList
		if err := c.Client.List(ctx, &list, opts...); err != nil {
			return nil, fmt.Errorf("listing add-ons: %w", err)
		}
		return reconcile.Pointers(list.Items), nil
	}
	var list addonv1alpha1.ManagedClusterAddOnList
	if err := c.Client.List(ctx, &list, uncopied(opts)...); err != nil {
		return nil, fmt.Errorf("listing add-ons: %w", err)
	}
	addons := make([]*addonv1beta1.ManagedClusterAddOn, 0, len(list.Items))
	for i := range list.Items {
		addons = append(addons, AddOnToBeta(&list.Items[i]))
	}
	return addons, nil
}

// ListWatched lists ManagedClusterAddOns as they are watched, without converting them. They belong to the cache and
// must not be changed; AddOn converts one.
func (c Client) ListWatched(ctx context.Context, opts ...client.ListOption) ([]client.Object, error) {
	var objects []client.Object
	if c.Wire == WireBeta {
		var list addonv1beta1.ManagedClusterAddOnList
		if err := c.Client.List(ctx, &list, uncopied(opts)...); err != nil {
			return nil, fmt.Errorf("listing add-ons: %w", err)
		}
		for i := range list.Items {
			objects = append(objects, &list.Items[i])
		}
		return objects, nil
	}
	var list addonv1alpha1.ManagedClusterAddOnList
	if err := c.Client.List(ctx, &list, uncopied(opts)...); err != nil {
		return nil, fmt.Errorf("listing add-ons: %w", err)
	}
	for i := range list.Items {
		objects = append(objects, &list.Items[i])
	}
	return objects, nil
}

// GetClusterManagementAddOn reads one ClusterManagementAddOn; apierrors.IsNotFound works on its error.
func (c Client) GetClusterManagementAddOn(
	ctx context.Context, name string,
) (*addonv1beta1.ClusterManagementAddOn, error) {
	wire := c.WatchedClusterManagementAddOn()
	if err := c.Client.Get(ctx, types.NamespacedName{Name: name}, wire); err != nil {
		return nil, fmt.Errorf("reading ClusterManagementAddOn %s: %w", name, err)
	}
	return ClusterManagementAddOn(wire)
}

// ListClusterManagementAddOns lists ClusterManagementAddOns.
func (c Client) ListClusterManagementAddOns(
	ctx context.Context, opts ...client.ListOption,
) ([]*addonv1beta1.ClusterManagementAddOn, error) {
	if c.Wire == WireBeta {
		var list addonv1beta1.ClusterManagementAddOnList
		if err := c.Client.List(ctx, &list, opts...); err != nil {
			return nil, fmt.Errorf("listing ClusterManagementAddOns: %w", err)
		}
		return reconcile.Pointers(list.Items), nil
	}
	var list addonv1alpha1.ClusterManagementAddOnList
	if err := c.Client.List(ctx, &list, uncopied(opts)...); err != nil {
		return nil, fmt.Errorf("listing ClusterManagementAddOns: %w", err)
	}
	all := make([]*addonv1beta1.ClusterManagementAddOn, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, ClusterManagementAddOnToBeta(&list.Items[i]))
	}
	return all, nil
}

// CreateAddOn creates a ManagedClusterAddOn.
func (c Client) CreateAddOn(ctx context.Context, addon *addonv1beta1.ManagedClusterAddOn) error {
	if err := c.Client.Create(ctx, c.wireAddOn(addon)); err != nil {
		return fmt.Errorf("creating add-on %s/%s: %w", addon.Namespace, addon.Name, err)
	}
	return nil
}

// DeleteAddOn deletes a ManagedClusterAddOn, of which nothing but the metadata is needed, guarded by its UID if it has
// one.
func (c Client) DeleteAddOn(ctx context.Context, addon client.Object) error {
	return c.DeleteAddOnVersion(ctx, addon, "")
}

// DeleteAddOnVersion is DeleteAddOn for one version of the add-on, and empty for any: a person may have taken it over.
func (c Client) DeleteAddOnVersion(ctx context.Context, addon client.Object, version string) error {
	var only client.Preconditions
	if uid := addon.GetUID(); uid != "" {
		only.UID = &uid
	}
	if version != "" {
		only.ResourceVersion = &version
	}
	target := c.WatchedAddOn()
	target.SetNamespace(addon.GetNamespace())
	target.SetName(addon.GetName())
	if err := c.Client.Delete(ctx, target, only); err != nil {
		return fmt.Errorf("deleting add-on %s: %w", client.ObjectKeyFromObject(addon), err)
	}
	return nil
}

// PatchAddOn writes the difference between two copies except the status, like reconcile.PatchMetadata, or like
// reconcile.PatchMain where the spec differs. after gets the new resourceVersion, generation and status, so that its
// status can be written next.
func (c Client) PatchAddOn(ctx context.Context, before, after *addonv1beta1.ManagedClusterAddOn) (bool, error) {
	write := reconcile.PatchMetadata
	switch {
	case !reflect.DeepEqual(before.Spec, after.Spec):
		write = reconcile.PatchMain
	case reflect.DeepEqual(before.ObjectMeta, after.ObjectMeta):
		return false, nil
	}
	wire := c.wireAddOn(after)
	changed, err := write(ctx, c.Client, c.wireAddOn(before), wire)
	if !changed || err != nil {
		return changed, err
	}
	answer, err := AddOn(wire)
	if err != nil {
		return changed, err
	}
	after.ResourceVersion, after.Generation, after.Status = answer.ResourceVersion, answer.Generation, answer.Status
	return changed, nil
}

// PatchAddOnStatus writes the difference between the statuses of two copies, like reconcile.PatchStatus. after gets the
// new resourceVersion, so that more of it can be written next.
func (c Client) PatchAddOnStatus(ctx context.Context, before, after *addonv1beta1.ManagedClusterAddOn) (bool, error) {
	if reflect.DeepEqual(before.Status, after.Status) {
		return false, nil // Most passes change nothing, and a conversion copies the whole object.
	}
	wire := c.wireAddOn(after)
	changed, err := reconcile.PatchStatus(ctx, c.Client, c.wireAddOn(before), wire)
	if changed {
		after.ResourceVersion = wire.GetResourceVersion()
	}
	return changed, err
}

// PatchClusterManagementAddOnStatus writes the difference between the statuses of two copies, like
// reconcile.PatchStatus.
func (c Client) PatchClusterManagementAddOnStatus(
	ctx context.Context, before, after *addonv1beta1.ClusterManagementAddOn,
) (bool, error) {
	if reflect.DeepEqual(before.Status, after.Status) {
		return false, nil
	}
	return reconcile.PatchStatus(ctx, c.Client, c.wireClusterManagementAddOn(before), c.wireClusterManagementAddOn(after))
}

// AddOn converts a watched object to v1beta1; the result shares no memory with it.
func AddOn(wire client.Object) (*addonv1beta1.ManagedClusterAddOn, error) {
	switch typed := wire.(type) {
	case *addonv1alpha1.ManagedClusterAddOn:
		return AddOnToBeta(typed), nil
	case *addonv1beta1.ManagedClusterAddOn:
		return typed.DeepCopy(), nil
	}
	return nil, fmt.Errorf("%T is no ManagedClusterAddOn", wire)
}

// Conditions returns the conditions of a watched ManagedClusterAddOn without a copy; nil for any other object.
func Conditions(wire client.Object) []metav1.Condition {
	switch typed := wire.(type) {
	case *addonv1alpha1.ManagedClusterAddOn:
		return typed.Status.Conditions
	case *addonv1beta1.ManagedClusterAddOn:
		return typed.Status.Conditions
	}
	return nil
}

// Differs reports whether a configuration that an add-on of either version is to have is not in force. One whose
// content the hub does not know is not compared.
func Differs(wire client.Object) bool {
	differ := func(wanted, has string) bool { return wanted != "" && wanted != has }
	switch a := wire.(type) {
	case *addonv1alpha1.ManagedClusterAddOn:
		hash := func(h *addonv1alpha1.ConfigSpecHash) string {
			return ptr.Deref(h, addonv1alpha1.ConfigSpecHash{}).SpecHash
		}
		return slices.ContainsFunc(a.Status.ConfigReferences, func(c addonv1alpha1.ConfigReference) bool {
			return differ(hash(c.DesiredConfig), hash(c.LastAppliedConfig))
		})
	case *addonv1beta1.ManagedClusterAddOn:
		hash := func(h *addonv1beta1.ConfigSpecHash) string {
			return ptr.Deref(h, addonv1beta1.ConfigSpecHash{}).SpecHash
		}
		return slices.ContainsFunc(a.Status.ConfigReferences, func(c addonv1beta1.ConfigReference) bool {
			return differ(hash(c.DesiredConfig), hash(c.LastAppliedConfig))
		})
	}
	return false
}

// HasDriver reports whether the agent of a watched ManagedClusterAddOn chose a driver for a credential of the hub's API
// server.
func HasDriver(wire client.Object, driver string) bool {
	switch typed := wire.(type) {
	case *addonv1alpha1.ManagedClusterAddOn:
		return typed.Status.KubeClientDriver == driver && slices.ContainsFunc(typed.Status.Registrations,
			func(r addonv1alpha1.RegistrationConfig) bool {
				return r.SignerName == certificatesv1.KubeAPIServerClientSignerName
			})
	case *addonv1beta1.ManagedClusterAddOn:
		return slices.ContainsFunc(typed.Status.Registrations, func(r addonv1beta1.RegistrationConfig) bool {
			return r.Type == addonv1beta1.KubeClient && r.KubeClient != nil && r.KubeClient.Driver == driver
		})
	}
	return false
}

// ClusterManagementAddOn converts a watched object to v1beta1; the result shares no memory with it.
func ClusterManagementAddOn(wire client.Object) (*addonv1beta1.ClusterManagementAddOn, error) {
	switch typed := wire.(type) {
	case *addonv1alpha1.ClusterManagementAddOn:
		return ClusterManagementAddOnToBeta(typed), nil
	case *addonv1beta1.ClusterManagementAddOn:
		return typed.DeepCopy(), nil
	}
	return nil, fmt.Errorf("%T is no ClusterManagementAddOn", wire)
}

func (c Client) wireAddOn(addon *addonv1beta1.ManagedClusterAddOn) client.Object {
	if c.Wire == WireBeta {
		return addon.DeepCopy()
	}
	return AddOnToAlpha(addon)
}

func (c Client) wireClusterManagementAddOn(cma *addonv1beta1.ClusterManagementAddOn) client.Object {
	if c.Wire == WireBeta {
		return cma.DeepCopy()
	}
	return ClusterManagementAddOnToAlpha(cma)
}

// uncopied lets a cache return its own objects: the conversion copies each of them anyway.
func uncopied(opts []client.ListOption) []client.ListOption {
	return append(slices.Clone(opts), client.UnsafeDisableDeepCopy)
}

// HookRuns reports whether an add-on that is being deleted waits for what may need the hub: a pre-delete hook of OCM,
// or what a finalizer of the author of the add-on stands for. The finalizers of Kubernetes, and that of works on a
// hosting cluster, wait for nothing of the agent; nor do those that the caller looks at otherwise.
func HookRuns(addOn metav1.Object, except ...string) bool {
	return addOn.GetDeletionTimestamp() != nil && slices.ContainsFunc(addOn.GetFinalizers(), func(finalizer string) bool {
		switch finalizer {
		case metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents,
			addonv1beta1.AddonHostingManifestFinalizer, addonv1alpha1.AddonDeprecatedHostingManifestFinalizer:
			return false
		}
		return !slices.Contains(except, finalizer)
	})
}
