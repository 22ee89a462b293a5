package template

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/names"
)

// agent is the agent of an add-on that is made of templates, which may differ between clusters.
type agent struct {
	registry *Registry
	name     string
}

// About implements addon.Agent.
func (a *agent) About() addon.About {
	return addon.About{
		Name:             a.name,
		SupportedConfigs: []addonv1beta1.ConfigGroupResource{confighash.DeploymentConfig(), confighash.Template()},
	}
}

// Resolve implements addon.Agent.
func (a *agent) Resolve(ctx context.Context, request addon.Request) (addon.Resolved, error) {
	_, in, err := a.input(request)
	if err != nil {
		return addon.Resolved{}, err
	}
	cluster := request.Cluster.Name
	resolved := addon.Resolved{
		Key: keyOf(request), Remarks: append(unused(request.Choice), Remarks(in)...), Withheld: Withheld(in.Template, a.name),
	}
	trusted := in.Template.trusted(a.name)
	if resolved.Registrations, err = Registrations(trusted, cluster, a.name); err != nil {
		return addon.Resolved{}, err
	}
	if resolved.Setup.Namespace, err = Namespace(in); err != nil {
		return addon.Resolved{}, err
	}
	if resolved.Setup.Permissions, err = Permissions(trusted, cluster, a.name); err != nil {
		return addon.Resolved{}, err
	}
	// An unknown probe leaves the health check unchanged; Render reports it.
	resolved.Setup.Health, _ = in.Template.health()
	resolved.NextHealth, err = a.nextHealth(ctx, request.Choice.Counting(confighash.Template()))
	return resolved, err
}

// nextHealth returns the health probe that the present template asks for, when only its annotation was edited since the
// content that a cluster has was stored; empty otherwise. The annotation is not part of the hash, so it does not count
// before there is another content.
func (a *agent) nextHealth(ctx context.Context, has *addon.ChosenConfig) (addon.HealthProbe, error) {
	present, _ := a.registry.AddOns.Configs.New(confighash.Template())
	err := a.registry.Configs.Get(ctx, client.ObjectKey{Name: has.Name}, present, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("reading AddOnTemplate %s: %w", has.Name, err)
	}
	probe := present.GetAnnotations()[names.AnnotationHealthProbe]
	if probe == has.Object.GetAnnotations()[names.AnnotationHealthProbe] {
		return "", nil
	}
	if !hasHash(present, has.SpecHash) {
		return "", nil
	}
	next, _ := (&Template{Name: has.Name, probe: probe}).health() // The rollout that brings it reports an unknown value.
	return next, nil
}

// hasHash reports whether a configuration has a content of that hash. What cannot be hashed is not rolled out, and
// Configured says so.
func hasHash(u *unstructured.Unstructured, hash string) bool {
	found, err := confighash.SpecHash(u)
	return err == nil && found == hash
}

// keyOf identifies all that a rendering depends on: the contents of the configurations, by their hashes, which of them
// counts, and the name and the image mirrors of the cluster.
func keyOf(request addon.Request) string {
	sum := sha256.New()
	for _, config := range request.Choice.Configs {
		fmt.Fprintf(sum, "%s@%s\n", confighash.Key(config.ConfigGroupResource, config.ConfigReferent), config.SpecHash)
	}
	for _, resource := range []addonv1beta1.ConfigGroupResource{confighash.DeploymentConfig(), confighash.Template()} {
		if counts := request.Choice.Counting(resource); counts != request.Choice.First(resource) {
			fmt.Fprintf(sum, "counts %s\n", confighash.Key(resource, counts.ConfigReferent))
		}
	}
	fmt.Fprintf(sum, "%s\n%s\n%s\n", request.Cluster.Name, request.AddOn.Name,
		request.Cluster.Annotations[names.AnnotationImageRegistries])
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// Render implements addon.Agent. It renders the content that the rollout chose.
func (a *agent) Render(_ context.Context, request addon.Request) (addon.Rendering, error) {
	rendering, err := a.render(request)
	a.registry.Renders.count(err)
	return rendering, err
}

func (a *agent) render(request addon.Request) (addon.Rendering, error) {
	c, in, err := a.input(request)
	if err != nil {
		return addon.Rendering{}, err
	}
	rendering, err := c.Render(in)
	rendering.Configs = slices.Clone(request.Choice.Configs)
	return rendering, err
}

// SigningCA implements addon.Agent.
func (a *agent) SigningCA(
	ctx context.Context, request addon.Request, signerName string,
) (addon.SigningCA, bool, error) {
	c, err := a.template(request)
	if err != nil {
		return addon.SigningCA{}, false, err
	}
	t := c.Template().trusted(a.name)
	secret, found := SigningSecret(t, signerName, a.registry.home())
	if !found {
		return addon.SigningCA{}, false, nil
	}
	all, err := a.templates(ctx)
	if err != nil {
		return addon.SigningCA{}, false, err
	}
	return addon.SigningCA{Secret: secret, SharedWith: a.sharedWith(all, secret, signerName)}, true, nil
}

// SharedPermissions implements addon.Agent. It fails if a template does not exist or is invalid, because its
// permissions are then unknown.
func (a *agent) SharedPermissions(ctx context.Context) ([]addon.Permission, error) {
	named, err := a.registry.Configurer.Named(ctx, a.name, confighash.Template())
	if err != nil {
		return nil, err
	}
	var all []addon.Permission
	for _, config := range named {
		c, err := a.registry.read(config)
		if err != nil {
			return nil, err
		}
		t := c.Template()
		if err := Withheld(t, a.name); err != nil {
			return nil, err
		}
		if err := CheckTrust(t, "", a.name, a.registry.home()); err != nil {
			return nil, err
		}
		permissions, err := Permissions(t, "", a.name)
		if err != nil {
			return nil, err
		}
		all = append(all, permissions...)
	}
	return slices.DeleteFunc(all, func(p addon.Permission) bool { return p.Namespace == "" }), nil
}

// templates reads all templates of the hub, of which only the custom signers are known. An invalid one is left out: it
// signs nothing.
func (a *agent) templates(ctx context.Context) ([]*Template, error) {
	kind, _ := a.registry.AddOns.Configs.Kind(confighash.Template())
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := a.registry.Configs.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing AddOnTemplates: %w", err)
	}
	all := make([]*Template, 0, len(list.Items))
	for i := range list.Items {
		if t := a.registry.signers(&list.Items[i]); t != nil {
			all = append(all, t)
		}
	}
	return all, nil
}

// sharedWith lists the other uses of a Secret in templates: as the CA of another signer, or of another add-on. Several
// templates of one add-on do not count.
func (a *agent) sharedWith(all []*Template, secret types.NamespacedName, signerName string) []string {
	var sharedWith []string
	for _, t := range all {
		for _, registration := range t.Registration {
			custom := registration.CustomSigner
			if registration.Type != addonv1alpha1.RegistrationTypeCustomSigner || custom == nil {
				continue
			}
			named := types.NamespacedName{
				Namespace: cmp.Or(custom.SigningCA.Namespace, a.registry.home()), Name: custom.SigningCA.Name,
			}
			if named == secret && (t.AddOn != a.name || custom.SignerName != signerName) {
				sharedWith = append(sharedWith, fmt.Sprintf("AddOnTemplate %s (signer %s)", t.Name, custom.SignerName))
			}
		}
	}
	slices.Sort(sharedWith)
	return sharedWith
}
