package addon

import (
	"context"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
)

// Agent is an add-on as its author describes it.
type Agent interface {
	// About returns the properties that are the same for all clusters.
	About() About
	// Resolve returns the registrations, the permissions and the other properties of the agent on a cluster.
	Resolve(ctx context.Context, request Request) (Resolved, error)
	// Render returns the objects of the agent on a cluster. No objects mean that the agent is removed.
	Render(ctx context.Context, request Request) (Rendering, error)
	// SigningCA returns the certificate authority for a custom signer. False means that this add-on does not sign for it
	// on this cluster.
	SigningCA(ctx context.Context, request Request, signerName string) (SigningCA, bool, error)
	// SharedPermissions returns the roles that the agent may be bound to outside of the namespaces of clusters, on any
	// cluster, whether used or not. Other bindings are deleted, unless the call fails.
	SharedPermissions(ctx context.Context) ([]Permission, error)
}

// Approver is an Agent that restricts which certificate requests of its agents the hub approves.
type Approver interface {
	Agent
	// CheckRequest returns why the hub must not approve a certificate request of the agent; nil when it may. It is asked
	// only about a request that is exactly one of the registrations, from the agent of that cluster. The error is a
	// NotReadyError while that may change by itself, and an InvalidError when a person must act.
	CheckRequest(ctx context.Context, request Request, csr *certificatesv1.CertificateSigningRequest) error
}

// Request names one cluster and what the add-on runs with there. Its objects must not be changed.
type Request struct {
	// Cluster is the managed cluster.
	Cluster *clusterv1.ManagedCluster
	// Hosting is the cluster that hosts the agent; nil in default mode.
	Hosting *clusterv1.ManagedCluster
	// AddOn is the add-on on the cluster.
	AddOn *addonv1beta1.ManagedClusterAddOn
	// Choice is the configuration that the rollout chose.
	Choice Choice
}

// Resolved holds what the hub prepares for an agent on one cluster besides its objects.
type Resolved struct {
	// Registrations are the credentials that the hub allows the agent. Certificate requests of the agent are approved
	// only if they ask for exactly these. None means that the agent does not use the hub.
	Registrations []addonv1beta1.RegistrationConfig
	// Setup is the namespace, the permissions and the health probe of the agent.
	Setup Setup
	// Withheld is why the agent does not get all that its author asks of the hub, although it is deployed; nil when it
	// does. It gets what Registrations and Setup have, and the RoleBindings that it has stay. It is an InvalidError.
	Withheld error
	// NextHealth is the health probe that the author asks for and that does not count before the next rollout; empty when
	// the one in Setup is that.
	NextHealth HealthProbe
	// Remarks are sentences for the author of a configuration about what does not count, although it is not an error.
	Remarks []string
	// Key identifies all that Render uses of the request: requests with the same key have the same objects, as long as
	// Version is the same. Empty means that Render must be called.
	Key string
	// Version is the version of the code that renders. A program of another version renders once more, and writes only
	// what comes out differently. Empty means that the version of the program says it.
	Version string
}

// SigningCA is the certificate authority of a custom signer.
type SigningCA struct {
	// Secret is the Secret on the hub, of type kubernetes.io/tls.
	Secret types.NamespacedName
	// SharedWith lists other add-ons or signers that name the same Secret, for messages. If there are any, the Secret must
	// state whom it serves.
	SharedWith []string
	// Lifetime is the maximum lifetime of a certificate; zero means 24 hours.
	Lifetime time.Duration
}

// About are the properties of an add-on that are the same for all clusters.
type About struct {
	// Name is the name of the ClusterManagementAddOn and of its ManagedClusterAddOns.
	Name string
	// SupportedConfigs are the kinds of configuration that the add-on understands.
	SupportedConfigs []addonv1beta1.ConfigGroupResource
}

// Setup holds what the hub prepares for the agent of an add-on on one cluster, besides its objects.
type Setup struct {
	// Namespace is the namespace of the agent on the managed cluster, for its credentials and its lease. If it is empty,
	// that of the add-on object counts, and then the default.
	Namespace string
	// Permissions are the roles on the hub that the agent is bound to.
	Permissions []Permission
	// Health is the health probe of the agent.
	Health HealthProbe
	// WorkProbe has the details of HealthWork; nil means that the agent is healthy when its works are available.
	WorkProbe *WorkProbe
}

// Permission binds a role on the hub to the agent of an add-on.
type Permission struct {
	// Namespace is the namespace of the binding. Wherever it is, the binding is for the add-on on this cluster alone.
	Namespace string
	// AllNamespaces binds a ClusterRole in all namespaces, and then Namespace is empty. Only the hub manager does that,
	// for templates, and only with a consent of its own.
	AllNamespaces bool
	// RoleRef is the Role or ClusterRole; it must exist.
	RoleRef rbacv1.RoleRef
	// Subjects are the subjects of the binding. They are computed on the hub, and never read from a status that an agent
	// may write. In place of the group of the agents on all clusters, that on this cluster is bound.
	Subjects []rbacv1.Subject
}

// HealthProbe is how the hub determines the health of an agent.
type HealthProbe string

const (
	// HealthUnchanged leaves the mode in the add-on object; the API default is a lease.
	HealthUnchanged HealthProbe = ""
	// HealthLease means that the agent renews a lease (package lease).
	HealthLease HealthProbe = "Lease"
	// HealthWork means that the hub judges the works of the agent and what a WorkProbe asks for.
	HealthWork HealthProbe = "Work"
	// HealthDeployments means that the hub judges the Deployments among the objects of the agent.
	HealthDeployments HealthProbe = "DeploymentAvailability"
	// HealthWorkloads means that the hub judges the Deployments, DaemonSets and StatefulSets among the objects of the
	// agent.
	HealthWorkloads HealthProbe = "WorkloadAvailability"
	// HealthCustom means that the add-on sets its Available condition itself; OCM calls it None.
	HealthCustom HealthProbe = "Custom"
)

// Rendering is the result of rendering the agent of an add-on for one cluster.
type Rendering struct {
	// Objects are the objects on the managed cluster, each with apiVersion, kind and name, without duplicates, in the
	// order of the author.
	Objects []*unstructured.Unstructured
	// ManifestConfigs are the feedback rules and update strategies of objects, as in a ManifestWork.
	ManifestConfigs []workv1.ManifestConfigOption
	// Configs are the configurations that were used.
	Configs []ChosenConfig
}

// Lookup finds the Agent of an add-on.
type Lookup interface {
	// Agent returns the agent of the add-on with this name; false when the add-on is managed by others.
	Agent(ctx context.Context, name string) (Agent, bool, error)
}
