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
	// About returns what is the same for all clusters.
	About() About
	// Registrations returns the credentials that the agent on a cluster gets on the hub, as the hub wants them: the
	// certificate requests of the agent are approved only if they ask for exactly this. None means that the agent does
	// not talk to the hub.
	Registrations(
		ctx context.Context, cluster *clusterv1.ManagedCluster, addOn *addonv1beta1.ManagedClusterAddOn,
	) ([]addonv1beta1.RegistrationConfig, error)
	// SigningCA returns the certificate authority that signs for a custom signer. False means that this add-on does not
	// sign for it on this cluster.
	SigningCA(
		ctx context.Context, cluster *clusterv1.ManagedCluster, addOn *addonv1beta1.ManagedClusterAddOn, signerName string,
	) (SigningCA, bool, error)
	// SharedPermissions returns the roles that the agent is bound to outside of the namespaces of clusters, on any cluster
	// on which it may run: what the specs ask for, be it in use or not. A binding that is not among them is removed. On an
	// error nothing is.
	SharedPermissions(ctx context.Context) ([]Permission, error)
	// Setup returns what the hub prepares for the agent on a cluster besides its objects.
	Setup(
		ctx context.Context, cluster *clusterv1.ManagedCluster, addOn *addonv1beta1.ManagedClusterAddOn,
	) (Setup, error)
	// Render returns the objects that make up the agent on a cluster. No objects means that the agent is removed.
	Render(
		ctx context.Context, cluster *clusterv1.ManagedCluster, addOn *addonv1beta1.ManagedClusterAddOn,
	) (Rendering, error)
}

// SigningCA says where the certificate authority of a custom signer is.
type SigningCA struct {
	// Secret is the Secret on the hub that holds it, of type kubernetes.io/tls.
	Secret types.NamespacedName
	// SharedWith are the definitions of other add-ons, or of other signers, that name the same Secret, in words. While there
	// are any, the Secret must say whom it serves.
	SharedWith []string
}

// Choice is what the hub chose for an add-on on a cluster, from specs and from what the hub itself recorded, never from
// a status that the agent of the cluster may write.
type Choice struct {
	// Configs are the configurations, ordered by group and resource, and within a resource as they were asked for.
	Configs []ChosenConfig
	// Blocked says why nothing new is to be rendered; empty when it may be. Configs are what the specs name all the same,
	// also what does not exist.
	Blocked string
}

// ChosenConfig is one configuration with the content that was chosen.
type ChosenConfig struct {
	addonv1beta1.ConfigGroupResource
	addonv1beta1.ConfigSpecHash
}

// Chooser says which configurations add-ons have.
type Chooser interface {
	// Choose returns what the hub chose for an add-on. The error is a NotReadyError when nothing can be chosen.
	Choose(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn) (Choice, error)
	// Named returns all configurations that any spec names for the add-on with this name, on whatever cluster.
	Named(ctx context.Context, addOn string) ([]addonv1beta1.AddOnConfig, error)
}

// About is what is the same about an add-on for all clusters.
type About struct {
	// Name is the name of the ClusterManagementAddOn and of its ManagedClusterAddOns.
	Name string
	// SupportedConfigs are the kinds of configuration that the add-on understands.
	SupportedConfigs []addonv1beta1.ConfigGroupResource
}

// Setup is what the hub prepares for the agent of an add-on on one cluster.
type Setup struct {
	// Namespace is where the agent runs on the managed cluster, which is where its credentials go and where its lease
	// is looked for. Empty leaves it to the add-on object, and then to the default.
	Namespace string
	// Permissions are the roles on the hub that the agent is bound to.
	Permissions []Permission
	// Health says how the health of the agent is told.
	Health HealthProbe
}

// Permission binds a role on the hub for the agent of an add-on.
type Permission struct {
	// Namespace is where the role is bound. In the namespace of the cluster the binding belongs to the add-on on this
	// cluster; every other namespace has one binding for the add-on on all clusters.
	Namespace string
	// RoleRef is the Role or ClusterRole; it must exist.
	RoleRef rbacv1.RoleRef
	// Subjects are who gets the role. They are computed on the hub and never read from a status that an agent may
	// write. Outside the namespace of the cluster they must be the same for all clusters.
	Subjects []rbacv1.Subject
}

// HealthProbe is a way to tell the health of an agent.
type HealthProbe string

const (
	// HealthUnchanged leaves the add-on object as it is; the API default is a lease.
	HealthUnchanged HealthProbe = ""
	// HealthLease means that the agent renews a lease (package lease).
	HealthLease HealthProbe = "Lease"
	// HealthWorkloads means that the hub looks at the Deployments and DaemonSets among the objects of the agent.
	HealthWorkloads HealthProbe = "WorkloadAvailability"
	// HealthCustom means that the add-on sets its Available condition itself.
	HealthCustom HealthProbe = "Custom"
)

// Rendering is what makes up the agent of an add-on on one cluster.
type Rendering struct {
	// Objects are the objects on the managed cluster, each with apiVersion, kind and name, in the order in which a
	// person would read them. No two are the same object.
	Objects []*unstructured.Unstructured
	// ManifestConfigs are the feedback rules and update strategies of objects, as in a ManifestWork.
	ManifestConfigs []workv1.ManifestConfigOption
	// Configs are the configurations that it was made from.
	Configs []ChosenConfig
}

// Lookup finds the Agent of an add-on.
type Lookup interface {
	// Agent returns the agent of the add-on with this name; false when nobody here looks after that add-on.
	Agent(ctx context.Context, name string) (Agent, bool, error)
}
