package addon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/internal/names"
)

// Options describe an add-on by values and functions. Only Name and Manifests are required. The functions must be pure:
// the same request gives the same result, and they must not change the request.
type Options struct {
	// Name is the name of the ClusterManagementAddOn and of its ManagedClusterAddOns.
	Name string
	// Manifests makes the objects of the agent: files (package raw), a Helm chart (package helm), or a ManifestsFunc.
	Manifests Builder
	// Values are merged in order and handed to Manifests; a later value overrides an earlier one.
	Values []ValuesFunc
	// KubeClient gives the agent access to the API server of the hub; nil gives it none.
	KubeClient *KubeClient
	// CustomSigners give the agent certificates of other signers.
	CustomSigners []CustomSigner
	// CSRApproveCheck returns why the hub must not approve a certificate request of an agent, in addition to its own
	// rules; nil means that these are enough. See Approver for the errors. It may read more than the request.
	CSRApproveCheck func(
		ctx context.Context, request Request, csr *certificatesv1.CertificateSigningRequest,
	) error
	// InstallNamespace returns the namespace of the agent on the managed cluster. If it is nil or returns an empty name,
	// that of the add-on object counts, and then open-cluster-management-agent-addon.
	InstallNamespace func(ctx context.Context, request Request) (string, error)
	// HealthProber is how the hub determines the health of the agent. The zero value leaves the mode in the add-on object,
	// whose default is a Lease.
	HealthProber HealthProber
	// HostedMode allows the agent to run on a hosting cluster, which the add-on object names by an annotation. Without it,
	// an add-on with that annotation is an error.
	HostedMode bool
	// ManifestConfigs are feedback rules and update strategies of objects, as in a ManifestWork.
	ManifestConfigs []workv1.ManifestConfigOption
	// ConfigGVRs are the kinds of configuration that the add-on understands, such as AddOnDeploymentConfigGVR().
	ConfigGVRs []schema.GroupVersionResource
	// TrimCRDDescription removes the descriptions from CustomResourceDefinitions, which are most of their size.
	TrimCRDDescription bool
	// Scheme has the Go types that a ManifestsFunc returns; nil means those of Kubernetes and CustomResourceDefinition.
	// Objects that state their apiVersion and kind, and unstructured ones, need none.
	Scheme *runtime.Scheme
	// Timeout is how long the functions may take for one cluster in one pass; zero means 10 seconds. Then their context
	// ends, and they must return.
	Timeout time.Duration
	// Version identifies the functions and files of the add-on, for example the commit that the program was built from.
	// With it, objects are rendered again only when the version, a configuration, the add-on object or a fact of the
	// cluster (ClusterFacts) changes; so the functions must use nothing else. A program of another version renders them
	// once, and writes only what comes out differently. Without it, they are rendered in each pass, which costs processor
	// time and nothing more.
	Version string
	// ClusterFacts are the facts of a cluster that the functions use, besides its name, Kubernetes version and image
	// registries. Nil means its labels, annotations and claims. It counts only with a Version.
	ClusterFacts []ClusterFact
}

// New returns the Agent that the options describe. The error lists all that is wrong with them.
//
// An error of the Agent names the add-on, the cluster and the cause. A panic in a function of the author becomes an
// InvalidError that names the line.
func New(options Options) (Agent, error) {
	if problems := options.problems(); len(problems) > 0 {
		return nil, fmt.Errorf("add-on %q cannot be built: %s", options.Name, strings.Join(problems, "; "))
	}
	scheme, err := schemeOf(options.Scheme)
	if err != nil {
		return nil, fmt.Errorf("add-on %q cannot be built: %w", options.Name, err)
	}
	options.HealthProber = guarded(options.Name, options.HealthProber)
	return &author{Options: options, scheme: scheme}, nil
}

// problems returns what is wrong with the options.
func (o *Options) problems() []string {
	var all []string
	add := func(err error) {
		if err != nil {
			all = append(all, err.Error())
		}
	}
	if invalid := validation.IsDNS1123Subdomain(o.Name); len(invalid) > 0 {
		all = append(all, "Name: "+strings.Join(invalid, ", "))
	}
	if o.Manifests == nil {
		all = append(all, "Manifests: it is required")
	}
	for i, values := range o.Values {
		if values == nil {
			all = append(all, fmt.Sprintf("Values[%d]: it is nil", i))
		}
	}
	for i, resource := range o.ConfigGVRs {
		add(checkConfigKind(i, resource, o.ConfigGVRs[:i]))
	}
	if o.KubeClient != nil {
		for i, role := range o.KubeClient.Roles {
			if err := role.check(); err != nil {
				add(fmt.Errorf("KubeClient.Roles[%d]: %w", i, err))
			}
		}
	}
	for i, signer := range o.CustomSigners {
		if err := signer.check(o.CustomSigners[:i]); err != nil {
			add(fmt.Errorf("CustomSigners[%d]: %w", i, err))
		}
	}
	add(o.HealthProber.check())
	if o.Timeout < 0 {
		all = append(all, "Timeout: it must not be negative")
	}
	return all
}

func checkConfigKind(index int, resource schema.GroupVersionResource, earlier []schema.GroupVersionResource) error {
	switch {
	case resource.Version == "" || resource.Resource == "":
		return fmt.Errorf("ConfigGVRs[%d]: version and resource are required", index)
	case slices.ContainsFunc(earlier, func(other schema.GroupVersionResource) bool {
		return other.GroupResource() == resource.GroupResource()
	}):
		return fmt.Errorf("ConfigGVRs[%d]: %s stands there twice", index, resource.GroupResource())
	}
	return nil
}

// check returns what is wrong with a role.
func (r HubRole) check() error {
	switch {
	case r.Name == "":
		return errors.New("its Name is required")
	case r.Kind != "" && r.Kind != KindClusterRole && r.Kind != KindRole:
		return fmt.Errorf("kind %q is unknown: it must be %s or %s", r.Kind, KindClusterRole, KindRole)
	case r.ToUser && r.Namespace != "":
		return errors.New("ToUser is possible only in the namespaces of clusters: in another namespace, one binding serves " +
			"the agents of all clusters")
	}
	return names.CheckPermission(r.Namespace, r.Name, names.NamespaceHub)
}

// check returns what is wrong with a signer.
func (s CustomSigner) check(earlier []CustomSigner) error {
	if slices.ContainsFunc(earlier, func(other CustomSigner) bool { return other.SignerName == s.SignerName }) {
		return fmt.Errorf("signer %s stands there twice; one agent gets one certificate of a signer", s.SignerName)
	}
	if s.Lifetime < 0 {
		return errors.New("the Lifetime must not be negative")
	}
	return approve.CheckCustomSigner(s.SignerName)
}
