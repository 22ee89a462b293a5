package addon

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

// author is the Agent that Options describe.
type author struct {
	Options

	scheme *runtime.Scheme
}

var _ Approver = &author{}

// About implements Agent.
func (a *author) About() About {
	about := About{Name: a.Name}
	for _, resource := range a.ConfigGVRs {
		about.SupportedConfigs = append(about.SupportedConfigs, addonv1beta1.ConfigGroupResource{
			Group: resource.Group, Resource: resource.Resource,
		})
	}
	return about
}

// Resolve implements Agent.
func (a *author) Resolve(ctx context.Context, request Request) (Resolved, error) {
	return attempt(ctx, a, request, func(ctx context.Context) (Resolved, error) { return a.resolve(ctx, request) })
}

func (a *author) resolve(ctx context.Context, request Request) (Resolved, error) {
	if err := a.checkMode(request); err != nil {
		return Resolved{}, err
	}
	namespace, err := a.namespace(ctx, request)
	if err != nil {
		return Resolved{}, err
	}
	registrations, permissions, err := a.registrations(request)
	if err != nil {
		return Resolved{}, err
	}
	key, err := a.key(request, namespace)
	if err != nil {
		return Resolved{}, err
	}
	return Resolved{
		Registrations: registrations,
		Setup: Setup{
			Namespace: namespace, Permissions: permissions, Health: a.HealthProber.Type, WorkProbe: a.HealthProber.Work,
		},
		Key: key, Version: a.Version,
	}, nil
}

// checkMode refuses a hosting cluster for an agent that cannot be hosted: its Lease and its credentials would be looked
// for there.
func (a *author) checkMode(request Request) error {
	host := request.AddOn.Annotations[names.AnnotationHostingCluster]
	if host == "" || a.HostedMode {
		return nil
	}
	return &InvalidError{Message: fmt.Sprintf("the add-on does not support hosted mode: remove annotation %s (%q) from "+
		"its ManagedClusterAddOn", names.AnnotationHostingCluster, host)}
}

// namespace returns the namespace of the agent by the function of the author; empty for none.
func (a *author) namespace(ctx context.Context, request Request) (string, error) {
	if a.InstallNamespace == nil {
		return "", nil
	}
	namespace, err := a.InstallNamespace(ctx, request)
	if err != nil {
		return "", fmt.Errorf("computing the install namespace: %w", err)
	}
	if invalid := validation.IsDNS1123Label(namespace); namespace != "" && len(invalid) > 0 {
		return "", &InvalidError{Message: fmt.Sprintf("the install namespace %q is not valid: %s", namespace, invalid[0])}
	}
	return namespace, nil
}

// Render implements Agent.
func (a *author) Render(ctx context.Context, request Request) (Rendering, error) {
	return attempt(ctx, a, request, func(ctx context.Context) (Rendering, error) { return a.render(ctx, request) })
}

func (a *author) render(ctx context.Context, request Request) (Rendering, error) {
	if err := a.checkMode(request); err != nil {
		return Rendering{}, err
	}
	namespace, err := a.namespace(ctx, request)
	if err != nil {
		return Rendering{}, err
	}
	in := Input{
		Request: request, Registers: a.KubeClient != nil || len(a.CustomSigners) > 0,
		Namespace: cmp.Or(namespace, request.AddOn.Annotations[names.AnnotationInstallNamespace],
			names.NamespaceAgentAddon),
	}
	if in.Values, err = a.values(ctx, request); err != nil {
		return Rendering{}, err
	}
	made, err := a.Manifests.Build(ctx, in)
	if err != nil {
		return Rendering{}, err
	}
	objects, err := a.finish(made, in.InstallMode() == InstallModeHosted)
	if err != nil {
		return Rendering{}, err
	}
	rendering := Rendering{Objects: objects, Configs: slices.Clone(request.Choice.Configs)}
	for i := range a.ManifestConfigs {
		rendering.ManifestConfigs = append(rendering.ManifestConfigs, *a.ManifestConfigs[i].DeepCopy())
	}
	return rendering, nil
}

// values merges the values of all functions.
func (a *author) values(ctx context.Context, request Request) (Values, error) {
	merged := Values{}
	for i, function := range a.Values {
		values, err := function(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("computing Values[%d]: %w", i, err)
		}
		merged = MergeValues(merged, values)
	}
	return merged, nil
}

// CheckRequest implements Approver.
func (a *author) CheckRequest(
	ctx context.Context, request Request, csr *certificatesv1.CertificateSigningRequest,
) error {
	if a.CSRApproveCheck == nil {
		return nil
	}
	_, err := attempt(ctx, a, request, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, a.CSRApproveCheck(ctx, request, csr)
	})
	return err
}

// SigningCA implements Agent.
func (a *author) SigningCA(_ context.Context, _ Request, signerName string) (SigningCA, bool, error) {
	ca, found := a.signingCA(signerName)
	return ca, found, nil
}

// SharedPermissions implements Agent.
func (a *author) SharedPermissions(context.Context) ([]Permission, error) {
	return a.sharedPermissions(), nil
}
