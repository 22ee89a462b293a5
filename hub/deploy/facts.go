package deploy

import (
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/deploy/hosting"
	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
)

// facts are the inputs of a pass. The objects belong to the cache and must not be changed.
type facts struct {
	now time.Time
	// account is the ServiceAccount as which bindings are written, see Reconciler.
	account string
	// owners is the version in which owner references name add-ons.
	owners addonapi.Wire
	// relevant is false when there is nothing to deploy. Then only deleting may be set, or configuration, addOn and works.
	relevant bool
	// byOthers reports that another program makes the add-on.
	byOthers bool
	// deleting is the add-on when it is being deleted.
	deleting *addonv1beta1.ManagedClusterAddOn

	addOn *addonv1beta1.ManagedClusterAddOn
	// clusterKnown reports whether cluster is what there is; nil means then that there is none.
	clusterKnown bool
	cluster      *clusterv1.ManagedCluster
	// live are the clusters by name that were read from the API server because those in the cache differ; nil for none.
	live  map[string]*clusterv1.ManagedCluster
	about addon.About
	// foreign is why the namespace of the cluster is not its own; nil when it is. Nothing is written there then.
	foreign error
	// host is the cluster that the add-on names as its hosting cluster; nil when it does not exist.
	host *clusterv1.ManagedCluster
	// foundHost is the hosting cluster that was found for an add-on that asks for one, and pendingHost why there is none;
	// both are empty for one that does not ask.
	foundHost, pendingHost string
	// rules are how much a hosting cluster has to say.
	rules hosting.Rules

	// configuration is the decision about the configuration of the add-on.
	configuration addon.Configuration
	answers

	// needed is set for an add-on that is being deleted while others are on its cluster that depend on it.
	needed bool
	// ended are the RoleBindings of the add-on on this cluster when its agent may have no roles any more.
	ended []*rbacv1.RoleBinding
	// former are the RoleBindings of the add-on for all clusters, which earlier versions and OCM make. They go when the
	// agents of all clusters have their own.
	former []*rbacv1.RoleBinding
	// works are the ManifestWorks with the labels of the add-on, of any owner: in the namespace of its cluster, and of
	// hosted mode in those others where they count.
	works []*workv1.ManifestWork
	// verified identifies the records of works of another version that a former pass rendered the same; zero for none.
	verified works.Sum
	bindingFacts
}

// answers are the answers of the agent; each is unknown while its error is set.
type answers struct {
	registrations    []addonv1beta1.RegistrationConfig
	registrationsErr error
	setup            addon.Setup
	setupErr         error
	// withheld is why the agent gets less than it asks for, so that its RoleBindings stay as they are; nil for all.
	withheld error
	// pendingHealth is the probe that the template asks for and that the next rollout brings; setup has the probe in use
	// until then.
	pendingHealth addon.HealthProbe
	rendering     addon.Rendering
	renderErr     error
	// remarks are sentences for the author of the configuration.
	remarks []string
	// key identifies what the objects are rendered from; empty when they must be rendered.
	key string
	// by is the version of the code that renders; empty when key is.
	by string
	// current is the plan that changes no work; nil when the objects were rendered.
	current *worksPlan
}

// notAcceptedError says that the hub does not accept the cluster of an add-on.
type notAcceptedError struct{ cluster string }

// Error implements error.
func (e *notAcceptedError) Error() string {
	return fmt.Sprintf("the hub does not accept cluster %s: nothing is written for the add-on, and its works stay as "+
		"they are; set spec.hubAcceptsClient of the ManagedCluster to true", e.cluster)
}

// accepted returns why nothing is granted to the add-on and deployed for it; nil when the hub accepts its cluster.
func (f facts) accepted() error {
	if f.cluster == nil || f.cluster.Spec.HubAcceptsClient {
		return nil
	}
	return &notAcceptedError{f.cluster.Name}
}

// bindingFacts are the facts about the roles of an add-on on one cluster. Reading them costs what belongs to the add-on
// on that cluster, however many other add-ons and clusters there are.
type bindingFacts struct {
	// bindings are the RoleBindings of the add-on on this cluster.
	bindings []*rbacv1.RoleBinding
	// obsolete are the RoleBindings for all clusters that no spec of the add-on asks for any more, or that are in the
	// namespace of a cluster.
	obsolete []*rbacv1.RoleBinding
	// refused is why the permissions cannot be set; nil when they can.
	refused error
	// accountOurs reports whether the ServiceAccount of the add-on is the one that hub/token keeps, read only with the
	// driver token. It takes the right to request its tokens as proof, which is granted only then.
	accountOurs bool
}

// isAgents reports whether a RoleBinding is one of the agents of an add-on.
func isAgents(binding *rbacv1.RoleBinding) bool {
	_, template := binding.Labels[names.LabelAddonTemplate]
	return template
}

// deletionFacts are the inputs of the decision about an add-on with finalizers that is being deleted. The objects
// belong to the cache and must not be changed.
type deletionFacts struct {
	// facts are those of an add-on that lives. cluster is nil when there is none.
	facts
	// ours reports whether this hub manager manages the add-on. Then it does the work that the finalizers guard. Every
	// other add-on has a manager of its author.
	ours bool
	// managed is false without a ClusterManagementAddOn; then nothing can be rendered.
	managed bool
	// namespaceDeleting reports that nothing can be created in the namespace of the cluster any more.
	namespaceDeleting bool
	// dependents are what depends on the add-on; of one without the finalizer for them, nothing.
	dependents dependentFacts
	// hosts are the clusters that exist, by name, of the namespaces in which works of hooks are on hosting clusters.
	hosts map[string]*clusterv1.ManagedCluster
}

// dependentFacts are the facts about what depends on an add-on.
type dependentFacts struct {
	// knows reports whether this process knows the policies that order add-ons.
	knows bool
	// any reports whether there is an add-on that depends on it, on whatever cluster.
	any bool
	// there are those of its cluster that it must wait for, as people read them, and addOns reports whether one of them is
	// more than works that are left.
	there  []string
	addOns bool
	// unknown is why that is not known; empty where it is.
	unknown string
}

// hookFacts are the facts about the pre-delete hooks of one side.
type hookFacts struct {
	side works.Side
	// cluster is the cluster on which they run; nil when it does not exist or, as a hosting cluster, is being deleted.
	cluster *clusterv1.ManagedCluster
	// name is the name of that cluster.
	name string
	// none reports that nothing has to run on this side.
	none bool
	// noNamespace reports that nothing can be created in the namespace of the cluster any more.
	noNamespace bool
	// work is the work of the hooks; nil when there is none.
	work *workv1.ManifestWork
	// earlier is the work of the hooks of an earlier add-on of the name on a hosting cluster; nil when there is none.
	earlier *workv1.ManifestWork
	// hooks are the hooks that the rendering has.
	hooks []works.Manifest
	// unknown is why the hooks are unknown; empty when they are known.
	unknown string
}

// isAccepted reports whether a cluster exists and the hub accepts it.
func isAccepted(cluster *clusterv1.ManagedCluster) bool {
	return cluster != nil && cluster.Spec.HubAcceptsClient
}
