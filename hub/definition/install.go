package definition

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/internal/apierror"
	"github.com/spokelet/spokelet/internal/message"
)

const (
	// managerSchema is the field manager of the schema that we apply; managerConversion that of the conversion.
	managerSchema, managerConversion = "spokelet-hub", "spokelet-hub-conversion"
	// servedPoll is the poll interval until a new definition is served; servedTimeout is the limit.
	servedPoll, servedTimeout = 50 * time.Millisecond, time.Minute
	// shown is the number of differences that a message lists.
	shown = 5
)

// Finding is an Event about a definition.
type Finding struct {
	// Definition is the object that the Event is about.
	Definition *apiextensionsv1.CustomResourceDefinition
	// Type, Reason and Message are those of the Event.
	Type, Reason, Message string
}

// Installer applies definitions.
type Installer struct {
	// Client reads and writes definitions, without a cache.
	Client client.Client
	// Discovery lists the resources that the API server serves.
	Discovery discovery.ServerResourcesInterface
	// Kinds are the definitions with a conversion; Ours is the webhook that converts them, nil for none.
	Kinds []Kind
	Ours  *apiextensionsv1.WebhookClientConfig
}

// Install applies definitions, one YAML document each, and returns when all are served. It returns findings about
// definitions that it left unchanged.
func (i *Installer) Install(ctx context.Context, docs [][]byte) ([]Finding, error) {
	var found []Finding
	var failed []error
	names := make([]string, 0, len(docs))
	for _, doc := range docs {
		ours, err := decode(doc)
		if err != nil {
			return nil, err
		}
		names = append(names, ours.GetName())
		finding, err := i.install(ctx, ours)
		failed = append(failed, err)
		if finding != nil {
			found = append(found, *finding)
		}
	}
	if err := errors.Join(failed...); err != nil {
		return found, err
	}
	return found, i.waitServed(ctx, names)
}

// install applies one definition.
func (i *Installer) install(ctx context.Context, ours *unstructured.Unstructured) (*Finding, error) {
	name := ours.GetName()
	converted := i.converted(name)
	have, err := i.announced(ctx, name, converted)
	switch {
	case apierrors.IsNotFound(err):
		// A new definition is created with its conversion, so that it never exists without.
		if converted != nil {
			if err := setConversion(ours, converted); err != nil {
				return nil, err
			}
		}
		if err := i.apply(ctx, ours); err != nil || converted == nil {
			return nil, err
		}
		return nil, i.own(ctx, name, Conversion(*converted))
	case err != nil:
		return nil, err
	}
	// Applying a schema without a conversion removes a conversion that only managerSchema owns.
	if webhookOf(have.Spec.Conversion) != nil && owns(have.ManagedFields, managerSchema) {
		if err := i.own(ctx, name, have.Spec.Conversion); err != nil {
			return nil, err
		}
	}
	return i.applySchema(ctx, ours, have)
}

// announced returns a definition as it is, with our webhook where that may be set before it is served. The API server
// writes the status of definitions at any time, so a conflict only means that it is to be read again.
func (i *Installer) announced(ctx context.Context, name string, converted *apiextensionsv1.WebhookClientConfig,
) (*apiextensionsv1.CustomResourceDefinition, error) {
	var have apiextensionsv1.CustomResourceDefinition
	return &have, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		have = apiextensionsv1.CustomResourceDefinition{}
		if err := i.Client.Get(ctx, client.ObjectKey{Name: name}, &have); err != nil {
			return fmt.Errorf("reading definition %s: %w", name, err)
		}
		if converted == nil || !mayAnnounce(&have, converted) {
			return nil
		}
		return announce(ctx, i.Client, &have, converted)
	})
}

// converted returns the webhook that converts a definition; nil for none.
func (i *Installer) converted(name string) *apiextensionsv1.WebhookClientConfig {
	for _, kind := range i.Kinds {
		if kind.Name == name && !kind.SameFields {
			return i.Ours
		}
	}
	return nil
}

// sameFields reports whether all versions of a definition have the same fields.
func (i *Installer) sameFields(name string) bool {
	return slices.ContainsFunc(i.Kinds, func(kind Kind) bool { return kind.Name == name && kind.SameFields })
}

// mayAnnounce reports whether our webhook may be set in a definition before it is served: where the API server converts
// by renaming, which is worse than a failing request, or where our webhook is set already.
func mayAnnounce(
	have *apiextensionsv1.CustomResourceDefinition, ours *apiextensionsv1.WebhookClientConfig,
) bool {
	client := webhookOf(have.Spec.Conversion)
	return client == nil || address(client) == address(ours)
}

// applySchema applies an existing definition without its conversion.
func (i *Installer) applySchema(
	ctx context.Context, ours *unstructured.Unstructured, have *apiextensionsv1.CustomResourceDefinition,
) (*Finding, error) {
	var typed apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(ours.Object, &typed); err != nil {
		return nil, fmt.Errorf("decoding definition %s: %w", ours.GetName(), err)
	}
	logger := ctrl.LoggerFrom(ctx).WithName("hub.definition")
	if more := Beyond(have, &typed); len(more) > 0 {
		finding := &Finding{
			Definition: have, Type: corev1.EventTypeNormal, Reason: "DefinitionIsNewer",
			Message: "this definition has what the one of this hub manager lacks, and is kept as it is: " +
				message.List(more, shown, ", "),
		}
		logger.Info(finding.Message, "definition", have.Name)
		return finding, nil
	}
	err := i.apply(ctx, ours)
	if apierror.ByPolicy(err, "changes no schema of a definition") {
		logger.Error(err, "this definition differs from the one of this hub manager, which may not change it", "definition",
			have.Name)
		return &Finding{
			Definition: have, Type: corev1.EventTypeWarning, Reason: "DefinitionIsOlder",
			Message: "this definition differs from the one of this hub manager, which may not change definitions that exist: " +
				"apply those of this version, with spokelet-hub --print-crds | kubectl apply --server-side " +
				"--force-conflicts -f -",
		}, nil
	}
	if !apierrors.IsConflict(err) {
		return nil, err
	}
	if i.sameFields(ours.GetName()) && LacksVersionsOnly(have, &typed) {
		logger.Info("another client keeps this definition, whose only difference is that it serves fewer versions of the "+
			"same fields: it is left as it is", "definition", have.Name)
		return nil, nil
	}
	logger.Error(err, "this definition differs from the one of this hub manager, and another client keeps it: it is "+
		"left as it is", "definition", have.Name)
	return &Finding{
		Definition: have, Type: corev1.EventTypeWarning, Reason: "DefinitionKeptByOthers",
		Message: "this definition differs from the one of this hub manager, and is left as it is because another client " +
			"keeps it: " + conflicts(err) + "; apply the definitions of this version where yours come from",
	}, nil
}

func (i *Installer) apply(ctx context.Context, ours *unstructured.Unstructured) error {
	err := i.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(ours), client.FieldOwner(managerSchema))
	if err != nil {
		return fmt.Errorf("applying definition %s: %w", ours.GetName(), err)
	}
	return nil
}

// announce sets our webhook in a definition, if it is unchanged since it was read. All of spec.conversion becomes ours.
func announce(
	ctx context.Context, c client.Client, have *apiextensionsv1.CustomResourceDefinition,
	ours *apiextensionsv1.WebhookClientConfig,
) error {
	// The cached object may have been trimmed of its schema, so the patch is built from nothing but the conversion.
	before := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name: have.Name, ResourceVersion: have.ResourceVersion,
	}}
	before.Spec.Conversion = have.Spec.Conversion
	after := before.DeepCopy()
	after.Spec.Conversion = Conversion(*ours)
	if SameWebhook(have.Spec.Conversion, ours) {
		return nil
	}
	patch, err := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}).Data(after)
	if err != nil {
		return fmt.Errorf("comparing the conversion of %s: %w", have.Name, err)
	}
	err = c.Patch(ctx, after, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(managerConversion))
	if err != nil {
		return fmt.Errorf("putting our webhook into definition %s: %w", have.Name, err)
	}
	have.ResourceVersion, have.Spec.Conversion = after.ResourceVersion, after.Spec.Conversion
	return nil
}

// own makes us an additional owner of the existing conversion, so that it stays when other owners drop it.
func (i *Installer) own(
	ctx context.Context, name string, conversion *apiextensionsv1.CustomResourceConversion,
) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(conversion)
	if err != nil {
		return fmt.Errorf("encoding the conversion of %s: %w", name, err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"conversion": fields}}}
	u.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	u.SetName(name)
	err = i.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(managerConversion),
		client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("taking over the conversion of definition %s: %w", name, err)
	}
	return nil
}

func setConversion(u *unstructured.Unstructured, ours *apiextensionsv1.WebhookClientConfig) error {
	conversion, err := runtime.DefaultUnstructuredConverter.ToUnstructured(Conversion(*ours))
	if err != nil {
		return fmt.Errorf("encoding the conversion of %s: %w", u.GetName(), err)
	}
	return unstructured.SetNestedMap(u.Object, conversion, "spec", "conversion")
}

// decode decodes a definition for an apply: without status, without conversion, and without a field that only repeats a
// default and may conflict with other owners.
func decode(doc []byte) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(doc, &u.Object); err != nil {
		return nil, fmt.Errorf("decoding a definition: %w", err)
	}
	for _, field := range [][]string{
		{"status"}, {"metadata", "creationTimestamp"}, {"spec", "conversion"}, {"spec", "preserveUnknownFields"},
	} {
		unstructured.RemoveNestedField(u.Object, field...)
	}
	return u, nil
}

// conflicts lists the conflicts of an apply.
func conflicts(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return err.Error()
	}
	causes := status.Status().Details.Causes
	said := make([]string, 0, len(causes))
	for _, cause := range causes {
		said = append(said, cause.Message+" ("+cause.Field+")")
	}
	return message.List(said, shown, ", ")
}

// waitServed returns when the API server serves all versions of all definitions.
func (i *Installer) waitServed(ctx context.Context, names []string) error {
	for _, name := range names {
		var last error
		err := wait.PollUntilContextTimeout(ctx, servedPoll, servedTimeout, true, func(ctx context.Context) (bool, error) {
			last = i.served(ctx, name)
			return last == nil, nil
		})
		if err != nil {
			return fmt.Errorf("waiting for definition %s: %w", name, errors.Join(last, err))
		}
	}
	return nil
}

// served returns why a definition is not served yet; nil when it is.
func (i *Installer) served(ctx context.Context, name string) error {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := i.Client.Get(ctx, client.ObjectKey{Name: name}, &crd); err != nil {
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
		resources, err := i.Discovery.ServerResourcesForGroupVersion(group)
		if err != nil {
			return fmt.Errorf("asking what %s serves: %w", group, err)
		}
		found := false
		for j := range resources.APIResources {
			found = found || resources.APIResources[j].Name == crd.Spec.Names.Plural
		}
		if !found {
			return fmt.Errorf("%s does not serve %s", group, crd.Spec.Names.Plural)
		}
	}
	return nil
}
