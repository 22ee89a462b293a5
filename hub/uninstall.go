package hub

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/hub/webhook"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
)

const (
	// shippedWebhookService is the Service of the webhook in manifests/hub/deployment.yaml.
	shippedWebhookService = "spokelet-hub-webhook"
	// uninstallManager is the temporary field manager of the uninstaller.
	uninstallManager = "spokelet-hub-uninstall"
	// ownRoles is the prefix of the roles that only our hub manager uses.
	ownRoles = "open-cluster-management:spokelet-hub"
	// endPoll and endTimeout are the interval and the limit of waiting for a deletion.
	endPoll, endTimeout = 200 * time.Millisecond, 2 * time.Minute
)

// uninstaller deletes everything that only our hub manager needs, or that would hinder another one. Clusters, add-ons,
// works and their access stay.
type uninstaller struct {
	config Config
	client client.Client
	out    io.Writer
}

// uninstall runs the uninstaller with the rights of the caller. It can be repeated.
func uninstall(ctx context.Context, c Config, cfg *rest.Config, out io.Writer) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(admissionregistrationv1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("building the scheme: %w", err)
	}
	hub, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("building the client: %w", err)
	}
	u := &uninstaller{config: c, client: hub, out: out}
	shipped, err := shippedObjects(c.Namespace)
	if err != nil {
		return err
	}
	// The hub manager goes first, so that it restores nothing.
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return u.removeAll(ctx, ofKind(shipped, "Deployment")) },
		u.removeWebhooks,
		func(ctx context.Context) error {
			return u.removeAll(ctx, ofKind(shipped, "ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"))
		},
		u.stopConversion,
		u.releaseAddOns,
		u.releaseDecisions,
		func(ctx context.Context) error {
			return u.removeAll(ctx, ofKind(shipped, "Service", "NetworkPolicy", "ClusterRoleBinding", "ClusterRole",
				"RoleBinding", "Role", "ServiceAccount"))
		},
		u.removeCertificate,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// shippedObjects returns the shipped objects that nobody else uses, for a hub manager in this namespace. Namespaces,
// the bootstrap identity and the account of add-ons have the same names as in OCM and may be in use.
func shippedObjects(namespace string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, file := range slices.Concat(manifests.HubDeployment(), manifests.WorksWithoutExecutor(), manifests.Hub()) {
		documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(file)))
		for {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("splitting the manifests: %w", err)
			}
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(document, &u.Object); err != nil {
				return nil, fmt.Errorf("decoding a manifest: %w", err)
			}
			if len(u.Object) == 0 || !onlyOurs(u) {
				continue
			}
			if u.GetNamespace() != "" {
				u.SetNamespace(namespace)
			}
			all = append(all, u)
		}
	}
	return all, nil
}

// roleViewer is the name of the roles of those who look at a fleet with kubectl spokelet.
const roleViewer = "spokelet-view"

// onlyOurs reports whether an object of manifests/hub is used by our hub manager alone.
func onlyOurs(u *unstructured.Unstructured) bool {
	switch u.GetKind() {
	case "Deployment", "Service", "NetworkPolicy", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
		return true
	case "ClusterRole", "ClusterRoleBinding":
		return strings.HasPrefix(u.GetName(), ownRoles) || u.GetName() == roleViewer
	case "ServiceAccount", "Role", "RoleBinding":
		return strings.HasPrefix(u.GetName(), names.ServiceAccountManager) || u.GetName() == roleViewer
	}
	return false
}

// ofKind returns the objects of the given kinds, in the order of the kinds.
func ofKind(all []*unstructured.Unstructured, kinds ...string) []*unstructured.Unstructured {
	var some []*unstructured.Unstructured
	for _, kind := range kinds {
		for _, u := range all {
			if u.GetKind() == kind {
				some = append(some, u)
			}
		}
	}
	return some
}

// removeAll deletes objects and waits until they and their dependents are gone.
func (u *uninstaller) removeAll(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if err := u.remove(ctx, object, object.GetKind()); err != nil {
			return err
		}
	}
	return nil
}

func (u *uninstaller) remove(ctx context.Context, object client.Object, kind string) error {
	err := u.client.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationForeground))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("deleting %s %s: %w", kind, object.GetName(), err)
	}
	key := client.ObjectKeyFromObject(object)
	err = wait.PollUntilContextTimeout(ctx, endPoll, endTimeout, true, func(ctx context.Context) (bool, error) {
		err := u.client.Get(ctx, key, object)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("waiting until %s %s is gone: %w", kind, object.GetName(), err)
	}
	return u.say("deleted %s %s", kind, object.GetName())
}

// removeWebhooks deletes the webhook configurations of this and earlier versions.
func (u *uninstaller) removeWebhooks(ctx context.Context) error {
	for _, configuration := range webhook.Configurations() {
		kind := strings.TrimPrefix(fmt.Sprintf("%T", configuration), "*v1.")
		if err := u.remove(ctx, configuration, kind); err != nil {
			return err
		}
	}
	return nil
}

// removeCertificate deletes the Secret with the certificate that the hub manager created for its webhook, if it did.
func (u *uninstaller) removeCertificate(ctx context.Context) error {
	if u.config.WebhookSecret == "" {
		return nil
	}
	secret := &unstructured.Unstructured{}
	secret.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
	secret.SetNamespace(u.config.Namespace)
	secret.SetName(u.config.WebhookSecret)
	return u.remove(ctx, secret, "Secret")
}

// stopConversion stops serving the API versions of add-ons that our webhook converted. Without the webhook, every
// request of these versions would fail, and with them garbage collection and the deletion of namespaces. Conversion by
// renaming would lose fields. OCM's operator applies its definitions, which serve these versions again.
func (u *uninstaller) stopConversion(ctx context.Context) error {
	var definitions apiextensionsv1.CustomResourceDefinitionList
	if err := u.client.List(ctx, &definitions); err != nil {
		return fmt.Errorf("listing the definitions: %w", err)
	}
	for i := range definitions.Items {
		definition := &definitions.Items[i]
		if definition.Spec.Group != addonv1beta1.GroupName || !u.converts(definition.Spec.Conversion) {
			continue
		}
		changed := false
		for j := range definition.Spec.Versions {
			version := &definition.Spec.Versions[j]
			if version.Served && !version.Storage {
				version.Served, changed = false, true
			}
		}
		if !changed {
			continue
		}
		if err := u.orphan(ctx, definition); err != nil {
			return fmt.Errorf("changing definition %s: %w", definition.Name, err)
		}
		if err := u.say("definition %s serves its stored version only, until another hub manager that converts it applies "+
			"its own", definition.Name); err != nil {
			return err
		}
	}
	return nil
}

// orphan writes a definition and then drops its own managed fields, so that the next writer meets no conflict.
func (u *uninstaller) orphan(ctx context.Context, definition *apiextensionsv1.CustomResourceDefinition) error {
	if err := u.client.Update(ctx, definition, client.FieldOwner(uninstallManager)); err != nil {
		return err
	}
	definition.ManagedFields = slices.DeleteFunc(definition.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == uninstallManager
	})
	return u.client.Update(ctx, definition, client.FieldOwner(uninstallManager))
}

// converts reports whether a conversion is by our webhook.
func (u *uninstaller) converts(conversion *apiextensionsv1.CustomResourceConversion) bool {
	if conversion == nil || conversion.Strategy != apiextensionsv1.WebhookConverter || conversion.Webhook == nil ||
		conversion.Webhook.ClientConfig == nil {
		return false
	}
	at := conversion.Webhook.ClientConfig
	if at.Service == nil {
		return at.URL != nil && u.config.WebhookURL != "" && *at.URL == u.config.WebhookURL
	}
	return at.Service.Name == shippedWebhookService ||
		at.Service.Namespace+"/"+at.Service.Name == u.config.WebhookService
}

// releaseAddOns removes from add-ons the finalizer for what depends on them: no other hub manager knows it, and they
// could not be deleted any more. They are read in their stored version, which is served also without our webhook.
func (u *uninstaller) releaseAddOns(ctx context.Context) error {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	definition.Name = "managedclusteraddons." + addonv1beta1.GroupName
	if err := u.client.Get(ctx, client.ObjectKeyFromObject(definition), definition); err != nil {
		return client.IgnoreNotFound(err)
	}
	list := &metav1.PartialObjectMetadataList{}
	for _, version := range definition.Spec.Versions {
		if version.Storage {
			list.SetGroupVersionKind(schema.GroupVersionKind{
				Group: addonv1beta1.GroupName, Version: version.Name, Kind: "ManagedClusterAddOnList",
			})
		}
	}
	if err := u.client.List(ctx, list); err != nil {
		return fmt.Errorf("listing ManagedClusterAddOns: %w", err)
	}
	for i := range list.Items {
		before := &list.Items[i]
		if !slices.Contains(before.Finalizers, names.FinalizerDependents) {
			continue
		}
		after := before.DeepCopy()
		after.Finalizers = slices.DeleteFunc(after.Finalizers, func(f string) bool { return f == names.FinalizerDependents })
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := u.client.Patch(ctx, after, patch); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("changing ManagedClusterAddOn %s/%s: %w", before.Namespace, before.Name, err)
		}
		if err := u.say("ManagedClusterAddOn %s/%s does not wait for what depends on it", before.Namespace,
			before.Name); err != nil {
			return err
		}
	}
	return nil
}

// releaseDecisions withdraws the promise of our writer that clusters never move between the decision slices of a
// Placement, which another writer may not keep. The annotation still shows that they were ours
// (docs/adr/0018-placement.md).
func (u *uninstaller) releaseDecisions(ctx context.Context) error {
	decisions := &metav1.PartialObjectMetadataList{}
	decisions.SetGroupVersionKind(schema.GroupVersionKind{
		Group: clusterv1beta1.GroupName, Version: clusterv1beta1.GroupVersion.Version, Kind: "PlacementDecisionList",
	})
	err := u.client.List(ctx, decisions)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing PlacementDecisions: %w", err)
	}
	for i := range decisions.Items {
		decision := &decisions.Items[i]
		if decision.Annotations[names.AnnotationStickyPages] != "true" {
			continue
		}
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"false"}}}`, names.AnnotationStickyPages)
		err := u.client.Patch(ctx, decision, client.RawPatch("application/merge-patch+json", patch))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("changing PlacementDecision %s/%s: %w", decision.Namespace, decision.Name, err)
		}
		if err := u.say("PlacementDecision %s/%s is left to another placement controller", decision.Namespace,
			decision.Name); err != nil {
			return err
		}
	}
	return nil
}

func (u *uninstaller) say(format string, args ...any) error {
	if _, err := fmt.Fprintf(u.out, format+"\n", args...); err != nil {
		return fmt.Errorf("printing what was done: %w", err)
	}
	return nil
}
