package hub

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/manifests"
)

const (
	// fieldManager owns what the hub manager applies.
	fieldManager = "spokelet-hub"
	// crdPoll is how often a new definition is looked at until it is served, and crdTimeout how long.
	crdPoll    = 50 * time.Millisecond
	crdTimeout = time.Minute
)

// InstallCRDs applies the CustomResourceDefinitions of the hub and returns when all are served. With conv, add-ons are
// converted by the webhook at that address; without, a conversion that a definition has already stays. A definition
// that somebody else keeps in another shape is left as it is, which is logged.
func InstallCRDs(ctx context.Context, cfg *rest.Config, conv *apiextensionsv1.WebhookClientConfig) error {
	docs := manifests.CRDs()
	if conv != nil {
		var err error
		if docs, err = manifests.CRDsWithConversion(*conv); err != nil {
			return fmt.Errorf("preparing the definitions: %w", err)
		}
	}
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return fmt.Errorf("building the scheme: %w", err)
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("building the client for definitions: %w", err)
	}
	var failed []error
	for _, doc := range docs {
		failed = append(failed, applyCRD(ctx, c, doc))
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	return waitServed(ctx, cfg, c, docs)
}

// applyCRD applies one definition.
func applyCRD(ctx context.Context, c client.Client, doc []byte) error {
	u, err := decodeCRD(doc)
	if err != nil {
		return err
	}
	var have apiextensionsv1.CustomResourceDefinition
	err = c.Get(ctx, client.ObjectKey{Name: u.GetName()}, &have)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("reading definition %s: %w", u.GetName(), err)
	default:
		if err := keepConversion(u, have.Spec.Conversion); err != nil {
			return err
		}
	}
	err = c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(fieldManager))
	if apierrors.IsConflict(err) {
		ctrl.LoggerFrom(ctx).Info("somebody else keeps this definition, so it is left as it is",
			"definition", u.GetName(), "difference", err.Error())
		return nil
	}
	if err != nil {
		return fmt.Errorf("applying definition %s: %w", u.GetName(), err)
	}
	return nil
}

// keepConversion puts the webhook that a definition has into one that would have none: a hub manager that starts
// without its certificate must not make the API server convert by renaming, which loses fields.
func keepConversion(u *unstructured.Unstructured, have *apiextensionsv1.CustomResourceConversion) error {
	_, wanted, err := unstructured.NestedMap(u.Object, "spec", "conversion")
	if err != nil || wanted || have == nil || have.Strategy != apiextensionsv1.WebhookConverter {
		return err
	}
	conversion, err := runtime.DefaultUnstructuredConverter.ToUnstructured(have)
	if err != nil {
		return fmt.Errorf("encoding the conversion of %s: %w", u.GetName(), err)
	}
	return unstructured.SetNestedMap(u.Object, conversion, "spec", "conversion")
}

func decodeCRD(doc []byte) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(doc, &u.Object); err != nil {
		return nil, fmt.Errorf("decoding a definition: %w", err)
	}
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	return u, nil
}

// waitServed returns when the API server serves all versions of all definitions.
func waitServed(ctx context.Context, cfg *rest.Config, c client.Client, docs [][]byte) error {
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return fmt.Errorf("building the client for discovery: %w", err)
	}
	for _, doc := range docs {
		u, err := decodeCRD(doc)
		if err != nil {
			return err
		}
		var last error
		err = wait.PollUntilContextTimeout(ctx, crdPoll, crdTimeout, true, func(ctx context.Context) (bool, error) {
			last = served(ctx, d, c, u.GetName())
			return last == nil, nil
		})
		if err != nil {
			return fmt.Errorf("waiting for definition %s: %w", u.GetName(), errors.Join(last, err))
		}
	}
	return nil
}

// served says why a definition is not served yet; nil when it is.
func served(ctx context.Context, d discovery.ServerResourcesInterface, c client.Client, name string) error {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := c.Get(ctx, client.ObjectKey{Name: name}, &crd); err != nil {
		return err
	}
	established := false
	for _, condition := range crd.Status.Conditions {
		established = established || (condition.Type == apiextensionsv1.Established &&
			condition.Status == apiextensionsv1.ConditionTrue)
	}
	if !established {
		return errors.New("it is not established")
	}
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		group := crd.Spec.Group + "/" + version.Name
		resources, err := d.ServerResourcesForGroupVersion(group)
		if err != nil {
			return fmt.Errorf("asking what %s serves: %w", group, err)
		}
		found := false
		for i := range resources.APIResources {
			found = found || resources.APIResources[i].Name == crd.Spec.Names.Plural
		}
		if !found {
			return fmt.Errorf("%s does not serve %s", group, crd.Spec.Names.Plural)
		}
	}
	return nil
}
