package addon

import (
	"context"

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
	// Registrations returns the credentials that the hub allows the agent on a cluster. Certificate requests of the agent
	// are approved only if they ask for exactly these. None means that the agent does not use the hub.
	Registrations(
		ctx context.Context, cluster *clusterv1.ManagedCluster, addOn *addonv1beta1.ManagedClusterAddOn,
	) ([]addonv1beta1.RegistrationConfig, error)
	// SigningCA returns the certificate authority for a custom signer. False means that this add-on does not sign for it
	// on this cluster.
	SigningCA(
		ctx context.Context, cluster *clusterv1.ManagedCluster, addOn *addonv1beta1.ManagedClusterAddOn, signerName string,
	) (SigningCA, bool, error)
	// SharedPermissions returns the roles that the agent may be bound to outside of the namespaces of clusters, on any
	// cluster, whether used or not. Other bindings are deleted, unless the call fails.
	SharedPermissions(ctx context.Context) ([]Permission, error)
	// Setup returns the namespace, the permissions and the health probe of the agent on a cluster.
	Setup(
		ctx context.Context, cluster *clusterv1.ManagedCluster, addOn *addonv1beta1.ManagedClusterAddOn,
	) (Setup, error)
	// Render returns the objects of the agent on a cluster. No objects mean that the agent is removed.
	Render(
		ctx context.Context, cluster *clusterv1.ManagedCluster, addOn *addonv1beta1.ManagedClusterAddOn,
	) (Rendering, error)
}

// SigningCA is the certificate authority of a custom signer.
type SigningCA struct {
	// Secret is the Secret on the hub, of type kubernetes.io/tls.
	Secret types.NamespacedName
	// SharedWith lists other add-ons or signers that name the same Secret, for messages. If there are any, the Secret must
	// state whom it serves.
	SharedWith []string
}

// Choice is the configuration that the hub chose for an add-on on a cluster, from specs and from its own records, never
// from a status that the agent may write.
type Choice struct {
	// Configs are the configurations, ordered by group and resource, and within a resource in the order of the spec.
	Configs []ChosenConfig
	// Blocked is why no new content may be rendered; empty when it may. Configs then still lists the configurations of the
	// specs, including missing ones.
	Blocked string
}

// ChosenConfig is one configuration with the content that was chosen, identified by its hash.
type ChosenConfig struct {
	addonv1beta1.ConfigGroupResource
	addonv1beta1.ConfigSpecHash
}

// Chooser chooses the configurations of add-ons.
type Chooser interface {
	// Choose returns the configurations of an add-on. The error is a NotReadyError when nothing can be chosen yet.
	Choose(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn) (Choice, error)
	// Named returns all configurations that any spec names for the add-on with this name, on any cluster.
	Named(ctx context.Context, addOn string) ([]addonv1beta1.AddOnConfig, error)
}

// About are the properties of an add-on that are the same for all clusters.
type About struct {
	// Name is the name of the ClusterManagementAddOn and of its ManagedClusterAddOns.
	Name string
	// SupportedConfigs are the kinds of configuration that the add-on understands.
	SupportedConfigs []addonv1beta1.ConfigGroupResource
}

// Setup is what the hub prepares for the agent of an add-on on one cluster, besides its objects.
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
	// Namespace is the namespace of the binding. In the namespace of the cluster, the binding belongs to the add-on on
	// this cluster; in any other namespace, one binding serves the add-on on all clusters.
	Namespace string
	// RoleRef is the Role or ClusterRole; it must exist.
	RoleRef rbacv1.RoleRef
	// Subjects are the subjects of the binding. They are computed on the hub, and never read from a status that an agent
	// may write. Outside the namespace of the cluster, they must be the same for all clusters.
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
