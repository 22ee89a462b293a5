package names

// Labels and annotations of the Open Cluster Management APIs.
const (
	// LabelClusterName marks CSRs, leases, RBAC objects and the namespace of one managed cluster.
	LabelClusterName = "open-cluster-management.io/cluster-name"
	// LabelAddonName marks CSRs, RBAC objects and ManifestWorks of one add-on.
	LabelAddonName = "open-cluster-management.io/addon-name"
	// LabelAddonNamespace marks ManifestWorks that are in another namespace than their add-on (hosted mode).
	LabelAddonNamespace = "open-cluster-management.io/addon-namespace"
	// LabelAddonTemplate marks hub RoleBindings that come from an AddOnTemplate; its value is empty.
	LabelAddonTemplate = "open-cluster-management.io/addon-template-name"
	// LabelPlacement names the Placement that a PlacementDecision belongs to.
	LabelPlacement = "cluster.open-cluster-management.io/placement"
	// LabelDecisionGroupIndex numbers the decision group of a PlacementDecision, from 0 without gaps.
	LabelDecisionGroupIndex = "cluster.open-cluster-management.io/decision-group-index"
	// LabelDecisionGroupName names the decision group of a PlacementDecision; it may be empty.
	LabelDecisionGroupName = "cluster.open-cluster-management.io/decision-group-name"

	// AnnotationConfigSpecHash carries the JSON map of config identity to spec hash on a ManifestWork of an add-on.
	AnnotationConfigSpecHash = "open-cluster-management.io/config-spec-hash"
	// AnnotationConfigOrder on a ManifestWork of an add-on has, as JSON, a hash of the order of its configurations of each
	// kind of which there are several: AnnotationConfigSpecHash does not have it. It counts only with
	// AnnotationRenderedFrom, see works.OrderOf. It is Spokelet's own addition.
	AnnotationConfigOrder = "addon.spokelet.io/config-order"
	// AnnotationLifecycle on a ClusterManagementAddOn says who manages the add-on's life cycle.
	AnnotationLifecycle = "addon.open-cluster-management.io/lifecycle"
	// AnnotationHostingCluster on a ManagedClusterAddOn names the cluster that hosts the add-on agent.
	AnnotationHostingCluster = "addon.open-cluster-management.io/hosting-cluster-name"
	// AnnotationInstallMode on a ManagedClusterAddOn says Hosted where the hub is to find the hosting cluster.
	AnnotationInstallMode = "addon.open-cluster-management.io/install-mode"
	// AnnotationHostManagedBy on a ManagedClusterAddOn says auto-discovery where the hub found the hosting cluster.
	AnnotationHostManagedBy = "addon.open-cluster-management.io/hosting-cluster-name-managed-by"
	// AnnotationAutoDiscovery on a ClusterManagementAddOn says Enable where the hub may find hosting clusters. It counts
	// where the field spec.hostedModeAutoDiscovery is not set: older definitions lack it.
	AnnotationAutoDiscovery = "addon.open-cluster-management.io/hosted-mode-auto-discovery"
	// ClaimHostingCluster is the reserved ClusterClaim with the cluster on which the agent of a cluster runs.
	ClaimHostingCluster = "hosting-cluster.open-cluster-management.io"
	// ClaimAgentVersion is the claim by which an agent reports its version, as the program prints it. It is Spokelet's own
	// addition; the cluster itself has no ClusterClaim of this name.
	ClaimAgentVersion = "agent-version.spokelet.io"
	// PrefixFeature begins the labels by which the hub says of a cluster how its add-ons are; they change often.
	PrefixFeature = "feature.open-cluster-management.io/"
	// LabelVersion on the Lease of a hub manager is the version of the replica that leads
	// (version.Label); it is one of the recommended labels of Kubernetes.
	LabelVersion = "app.kubernetes.io/version"
	// AnnotationInstallNamespace carries the v1alpha1 field spec.installNamespace in v1beta1.
	AnnotationInstallNamespace = "addon.open-cluster-management.io/v1alpha1-install-namespace"
	// AnnotationAddOnConfiguration carries the deprecated v1alpha1 field spec.addOnConfiguration of a
	// ClusterManagementAddOn in v1beta1, as JSON; it is never stored. It is Spokelet's own addition.
	AnnotationAddOnConfiguration = "addon.spokelet.io/v1alpha1-addon-configuration"
	// AnnotationCarried carries fields that the conversion does not know through the other version, as JSON.
	// It is Spokelet's own addition.
	AnnotationCarried = "addon.spokelet.io/carried-fields"
	// AnnotationDeletionOrphan on a manifest of an add-on keeps the object when the add-on goes.
	AnnotationDeletionOrphan = "addon.open-cluster-management.io/deletion-orphan"
	// AnnotationPreDelete on a Job or Pod of an add-on makes it a hook that runs before the add-on goes.
	AnnotationPreDelete = "addon.open-cluster-management.io/addon-pre-delete"
	// LabelPreDeleteOld is the former spelling of AnnotationPreDelete.
	LabelPreDeleteOld = "open-cluster-management.io/addon-pre-delete"
	// AnnotationHostedLocation on a manifest of an add-on names the cluster that it is for in hosted mode: managed,
	// hosting or none.
	AnnotationHostedLocation = "addon.open-cluster-management.io/hosted-manifest-location"
	// AnnotationHookDeadline on a pre-delete hook, or on a ManagedClusterAddOn, which counts more, is how long hooks may
	// take from the deletion of the add-on: a duration such as 30m, or none. It is Spokelet's own addition.
	AnnotationHookDeadline = "addon.spokelet.io/pre-delete-deadline"
	// AnnotationHookAfterDeadline on a pre-delete hook, or on a ManagedClusterAddOn, which counts more, is what happens
	// when hooks are not complete at their deadline: Wait for a person, or Skip them. It is Spokelet's own addition.
	AnnotationHookAfterDeadline = "addon.spokelet.io/pre-delete-after-deadline"
	// AnnotationHookAttempts on a ManagedClusterAddOn records failed attempts of its pre-delete hooks, as JSON, and that
	// they are done. Who removes it starts the attempts again. It is Spokelet's own addition.
	AnnotationHookAttempts = "addon.spokelet.io/pre-delete-attempts"
	// AnnotationRenderedFrom on a ManifestWork of an add-on records hashes of what it was rendered from and of what was
	// written, and the version of the program that rendered it first, as JSON. It is Spokelet's own addition.
	AnnotationRenderedFrom = "addon.spokelet.io/rendered-from"
	// AnnotationValues on a ManagedClusterAddOn carries values for the add-on as JSON.
	AnnotationValues = "addon.open-cluster-management.io/values"
	// AnnotationImageRegistries on a ManagedCluster carries image mirrors as JSON.
	AnnotationImageRegistries = "open-cluster-management.io/image-registries"
	// AnnotationAddonPrefix starts the annotations of a ManagedCluster that are about its add-ons.
	AnnotationAddonPrefix = "addon.open-cluster-management.io/"
	// AnnotationHosts on a ManagedCluster lists the clusters whose add-ons it hosts, separated by commas, or is "*". It is
	// Spokelet's own addition.
	AnnotationHosts = "addon.spokelet.io/hosts"
	// AnnotationHostedOn on a ManagedClusterAddOn records the hosting clusters on which works of it may be, separated by
	// commas. It is written before the first work there. It is Spokelet's own addition.
	AnnotationHostedOn = "addon.spokelet.io/hosted-on"
	// AnnotationAddonUID on a ManifestWork for a hosting cluster is the UID of its add-on, which cannot own it there. It
	// is Spokelet's own addition.
	AnnotationAddonUID = "addon.spokelet.io/addon-uid"

	// LabelInstalledBy on a ManagedClusterAddOn says who created it: InstalledByPlacement or InstalledByDependency for
	// the install reconciler, which deletes no other. It is Spokelet's own addition.
	LabelInstalledBy = "addon.spokelet.io/installed-by"
	// InstalledByPlacement is the value of LabelInstalledBy for add-ons that an install strategy of type Placements made.
	InstalledByPlacement = "placement"
	// InstalledByDependency is its value for add-ons that the policy of another add-on brought along.
	InstalledByDependency = "dependency"
	// AnnotationPlacementGave on a ManagedClusterAddOn that its placements dropped and another add-on brings along says
	// which contents a placement gave it, as addonconfig.Contents. It is Spokelet's own addition.
	AnnotationPlacementGave = "addon.spokelet.io/placement-gave"
	// AnnotationCopied on a ManagedClusterAddOn lists the annotations that the install reconciler copied from the
	// ManagedCluster, without AnnotationAddonPrefix and separated by commas. It keeps these in step, and no others. It is
	// Spokelet's own addition.
	AnnotationCopied = "addon.spokelet.io/copied-annotations"
	// AnnotationRemovalHeld on a ClusterManagementAddOn explains why the add-on is not removed from clusters that no
	// placement selects, and how to confirm the removal. It is Spokelet's own addition.
	AnnotationRemovalHeld = "addon.spokelet.io/removal-held"
	// AnnotationConfirmRemoval on a ClusterManagementAddOn is how a person confirms the removal in AnnotationRemovalHeld,
	// with the value that it names. It is Spokelet's own addition.
	AnnotationConfirmRemoval = "addon.spokelet.io/confirm-removal"
	// AnnotationRemovalState on a ClusterManagementAddOn is what the install reconciler must know after a restart about
	// removals, as JSON. It is Spokelet's own addition.
	AnnotationRemovalState = "addon.spokelet.io/removal-state"
	// AnnotationConfirmEviction on a ManagedCluster is how a person confirms that the objects of works go which the hub
	// does not have any more, with the value that ConditionWorksPresent names. It is Spokelet's own addition.
	AnnotationConfirmEviction = "work.spokelet.io/confirm-eviction"
	// AnnotationStickyPages with value "true" on a PlacementDecision says that its writer never moves a cluster from one
	// page to another, so that pages that are read one by one can be trusted. It is Spokelet's own addition.
	AnnotationStickyPages = "placement.spokelet.io/sticky-pages"
	// AnnotationDecisionGroup on a PlacementDecision identifies the decision group that it belongs to as long as that
	// exists: the name of the group in the Placement, a slash, and the number of the part of that group. Unlike the index
	// of the group it does not change when an earlier group grows. It is Spokelet's own addition.
	AnnotationDecisionGroup = "placement.spokelet.io/decision-group"
	// AnnotationDecisionGroupSize on a PlacementDecision is the clustersPerDecisionGroup that it was made for, so that
	// groups are merged when a person changes it and at no other time. It is Spokelet's own addition.
	AnnotationDecisionGroupSize = "placement.spokelet.io/clusters-per-decision-group"
	// AnnotationSetBindings with value SetBindingsHonoured on a PlacementDecision says that its clusters were selected
	// from the ManagedClusterSets that are bound to the namespace; on a Placement, a person says by it that only those
	// count. It is Spokelet's own addition, see docs/adr/0018-placement.md.
	AnnotationSetBindings = "placement.spokelet.io/set-bindings"
	// SetBindingsHonoured is the value of AnnotationSetBindings.
	SetBindingsHonoured = "honoured"

	// AnnotationAcceptedOn on a ManagedCluster says since when the hub knows that the cluster was accepted, RFC 3339. It
	// is never taken off, so that the hub remembers, after a person denied the cluster, that it is not a new one. Only who
	// may accept the cluster may change it (manifests/hub/policies/clusters.yaml). It is Spokelet's own addition.
	AnnotationAcceptedOn = "cluster.spokelet.io/accepted-on"
	// AnnotationAutoAcceptedOn on a ManagedCluster says when the hub accepted it without a person, RFC 3339. It is never
	// taken off, and guarded like AnnotationAcceptedOn once the cluster exists. A cluster that has it is never accepted
	// without a person again.
	AnnotationAutoAcceptedOn = "open-cluster-management.io/automatically-accepted-on"
	// AnnotationKeepUnaccepted on a ManagedCluster that was never accepted keeps the hub from removing it. The hub writes
	// it when a certificate request of the cluster is approved; administrators may. It is guarded like
	// AnnotationAcceptedOn.
	AnnotationKeepUnaccepted = "cluster.spokelet.io/keep-unaccepted"

	// AnnotationDeniedOn on the namespace of a cluster says since when the hub knows that the cluster is denied, RFC 3339,
	// so that a ManagedCluster that is deleted and created again is not new. It is taken off when the cluster is accepted.
	// Agents cannot write the namespace. It is Spokelet's own addition, see docs/adr/0015-tenants-and-hosting.md.
	AnnotationDeniedOn = "cluster.spokelet.io/denied-on"

	// AnnotationHealthProbe on an AddOnTemplate chooses how the health of its add-on is decided: "Lease" means that the
	// add-on agent renews a Lease; absent means that its Deployments and DaemonSets are looked at. It is Spokelet's
	// own addition, see docs/adr/0021-works-of-an-add-on.md.
	AnnotationHealthProbe = "addon.spokelet.io/health-probe"
	// AnnotationDecorate on a workload in an AddOnTemplate chooses whether its pods get the variables, credentials and
	// settings of the add-on: "true" or "false". Absent means the rule of the kind. It is Spokelet's own addition, see
	// docs/adr/0022-templates.md.
	AnnotationDecorate = "addon.spokelet.io/decorate"
)

// Consent of an administrator of the hub to what the author of an add-on asks for (docs/adr/0013-trust-on-the-hub.md).
// They are Spokelet's own addition.
const (
	// LabelConfigRevision with value "true" marks a ControllerRevision that keeps the content of a configuration of an
	// add-on. It is Spokelet's own addition.
	LabelConfigRevision = "addon.spokelet.io/config-revision"
	// AnnotationConfigKey on such a ControllerRevision is the configuration and the hash of its content.
	AnnotationConfigKey = "addon.spokelet.io/config"
	// LabelHubPermission with value "true" on a ClusterRole says that it may be bound for the agents of add-ons: its rules
	// are aggregated to ServiceAccountAddons.
	LabelHubPermission = "addon.spokelet.io/hub-permission"
	// AnnotationSigners on the Secret of a CA lists the custom signers that it serves, separated by commas.
	AnnotationSigners = "addon.spokelet.io/signers"
	// AnnotationSignerAddons on the Secret of a CA lists the add-ons that it serves, separated by commas; without it, it
	// serves every add-on that names one of its signers.
	AnnotationSignerAddons = "addon.spokelet.io/signer-addons"
)

// Labels of Spokelet's own; no peer reads them.
const (
	// LabelCredential marks the Secrets in which the agent keeps credentials, so that it finds them again after a
	// restart; its value is CredentialAddon or CredentialPending. LabelClusterName and LabelAddonName say whose they are.
	LabelCredential = "spokelet.io/credential"
	// CredentialAddon marks the Secret that an add-on agent reads.
	CredentialAddon = "addon"
	// CredentialPending marks a private key that waits for its certificate.
	CredentialPending = "pending"
	// AnnotationHub on the Secret of an add-on says from which hub the credential is, in one short string.
	AnnotationHub = "spokelet.io/hub"
	// AnnotationAgent on the Secret of an add-on or of a pending key names the agent that made it: its namespace and the
	// Secret of its own credential there, as "namespace/secret", behind "hosted:" where it runs on another cluster.
	AnnotationAgent = "spokelet.io/agent"
	// AnnotationIssuedAt on a credential Secret says when the agent got the certificate in it, by the clock of the hub
	// as far as the agent knew it, or the token, by its own clock; RFC 3339.
	AnnotationIssuedAt = "spokelet.io/issued-at"
)

// Finalizers of the Open Cluster Management APIs.
const (
	// FinalizerCluster keeps a ManagedCluster until the hub has removed what it made for it.
	FinalizerCluster = "cluster.open-cluster-management.io/api-resource-cleanup"
	// FinalizerDependents keeps a ManagedClusterAddOn while add-ons are on its cluster that depend on it by their policy.
	// It is Spokelet's own addition.
	FinalizerDependents = "addon.spokelet.io/dependents"
	// FinalizerManifestWork keeps a ManifestWork (and the work RoleBinding) until the spoke is clean.
	FinalizerManifestWork = "cluster.open-cluster-management.io/manifest-work-cleanup"
	// FinalizerAppliedManifestWork keeps an AppliedManifestWork until its objects are gone.
	FinalizerAppliedManifestWork = "cluster.open-cluster-management.io/applied-manifest-work-cleanup"
)

// Well-known namespaces and objects.
const (
	// NamespaceHub is where the hub manager runs.
	NamespaceHub = "open-cluster-management-hub"
	// ServiceAccountManager is the identity of the hub manager in NamespaceHub. It holds what the hub manager needs for
	// its own work. It is Spokelet's own addition.
	ServiceAccountManager = "spokelet-hub"
	// SecretWebhook is the Secret in NamespaceHub with the certificate of the webhook that the hub manager makes itself,
	// where administrators give it none. It is Spokelet's own addition.
	SecretWebhook = "spokelet-hub-webhook-self-signed"
	// ServiceAccountAddons is the identity in NamespaceHub in whose name the hub manager binds the roles of add-ons and
	// reads the Secrets of their CAs: the one that OCM's developer guide tells users to grant further rights to. It holds
	// nothing but those grants, so what it may not bind, nobody consented to (docs/adr/0013-trust-on-the-hub.md).
	ServiceAccountAddons = "addon-manager-controller-sa"
	// NamespaceBootstrap is where the bootstrap service account lives on the hub.
	NamespaceBootstrap = "open-cluster-management"
	// ServiceAccountBootstrap is the identity in NamespaceBootstrap with which clusters join.
	ServiceAccountBootstrap = "agent-registration-bootstrap"
	// NamespaceAgent is the default namespace of the agent.
	NamespaceAgent = "open-cluster-management-agent"
	// ServiceAccountAgent is the identity of the agent in NamespaceAgent on its own cluster.
	ServiceAccountAgent = "klusterlet-work-sa"
	// NamespaceAgentAddon is the default namespace of add-on agents.
	NamespaceAgentAddon = "open-cluster-management-agent-addon"
	// SecretBootstrap holds the bootstrap kubeconfig in the agent's namespace.
	SecretBootstrap = "bootstrap-hub-kubeconfig"
	// SecretHub holds the agent's own hub credential in the agent's namespace.
	SecretHub = "hub-kubeconfig-secret"
	// SecretWorkCache holds the key of the copies of works that the agent keeps on disk, in the agent's namespace. It is
	// Spokelet's own addition.
	SecretWorkCache = "spokelet-work-cache"
	// LeaseCluster is the heartbeat of a cluster in its hub namespace.
	LeaseCluster = "managed-cluster-lease"
	// FieldManagerWork is the field manager and user agent of writes to the spoke.
	FieldManagerWork = "work-agent"
)
