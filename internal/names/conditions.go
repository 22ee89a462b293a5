package names

// ConditionOwner says which reconciler writes a condition type on a kind. One writer per condition type and kind and
// side; a test compares this register with the code.
type ConditionOwner struct {
	// Kind is the API kind that carries the condition.
	Kind string
	// Type is the condition type.
	Type string
	// Writer is the name of the one reconciler that sets it, its import path below the module root with dots.
	Writer string
}

// ConditionWorkloadsReady is the condition with which an agent says on a ManagedClusterAddOn why workloads are not
// ready whose health the hub decides: the hub sees how many pods are ready, and only the agent sees why not. It is
// there only while there is something to say. It is Spokelet's own addition.
const ConditionWorkloadsReady = "addon.spokelet.io/WorkloadsReady"

// ConditionSoaked is the condition that says of a ManagedClusterAddOn whether its configuration had soaked when it was
// not complete any more, with False since when it was complete at first. Its message ends with a digest of what the
// rollout gave the add-on, and it says nothing about another content. It is there once a configuration was complete and
// did not stay so; until then it is there with Unknown while the add-on names configurations itself. It is Spokelet's
// own addition.
const ConditionSoaked = "addon.spokelet.io/Soaked"

// ConditionRolloutFailed is the condition that says of a ManagedClusterAddOn with True that the rollout counts its
// cluster as failed or timed out, and with False that its own spec.configs held it, so that its deadline began again or
// does not count. Its message ends with a digest of what the rollout gave, as that of ConditionSoaked. It is there only
// while that is so. It is Spokelet's own addition.
const ConditionRolloutFailed = "addon.spokelet.io/RolloutFailed"

// ConditionCertificateRotated is the condition of a ManagedCluster or ManagedClusterAddOn about its certificate.
const ConditionCertificateRotated = "ClusterCertificateRotated"

// ConditionAddOnDeleting is the condition that says of a ManagedClusterAddOn what its deletion waits for. It is
// Spokelet's own addition.
const ConditionAddOnDeleting = "addon.spokelet.io/Deleting"

// ConditionNamespaceReady is the condition that says of a ManagedCluster that a namespace with its name belongs to
// others, so that the cluster has no namespace. It is there only once there was something to say. It is Spokelet's own
// addition.
const ConditionNamespaceReady = "cluster.spokelet.io/NamespaceReady"

// ConditionAgentQuiet is the condition that says of a ManagedCluster what its agent does so often that it costs the
// hub. It is there only once there was something to say. It is Spokelet's own addition.
const ConditionAgentQuiet = "cluster.spokelet.io/AgentQuiet"

// ConditionWorksPresent is the condition with which an agent says on its ManagedCluster that the hub does not have
// works that the agent applied, or has them in an older content. It is there only once there was something to say. It
// is Spokelet's own addition.
const ConditionWorksPresent = "work.spokelet.io/WorksPresent"

// ConditionDecided is the condition with which the built-in placement says of a Placement that all of its
// PlacementDecisions are written, and what they say (package hub/fleet). It is Spokelet's own addition.
const ConditionDecided = "placement.spokelet.io/Decided"

// ConditionOwners returns the register of conditions, ordered by kind and type. Where the hub and the agent share a
// condition by OCM (a cluster or add-on whose agent fell silent becomes Unknown by the hub), both stand here.
func ConditionOwners() []ConditionOwner {
	return []ConditionOwner{
		{"AppliedManifestWork", "", "agent.work"},
		{"CertificateSigningRequest", "registration.spokelet.io/ApprovedByHub", "hub.approval"},
		{"CertificateSigningRequest", "registration.spokelet.io/IdentityOwn", "hub.approval"},
		{"CertificateSigningRequest", "registration.spokelet.io/SignedByHub", "hub.approval"},
		{"ClusterManagementAddOn", "Progressing", "hub.rollout"},
		{"ManagedCluster", ConditionCertificateRotated, "agent.join"},
		{"ManagedCluster", "Deleting", "hub.cluster"},
		{"ManagedCluster", conditionHubAccepted, "hub.cluster"},
		{"ManagedCluster", "ManagedClusterConditionAvailable", "agent.cluster"},
		{"ManagedCluster", "ManagedClusterConditionAvailable", "hub.cluster"},
		{"ManagedCluster", "ManagedClusterConditionClockSynced", "hub.cluster"},
		{"ManagedCluster", "ManagedClusterJoined", "agent.cluster"},
		{"ManagedCluster", "NamespaceAvailable", "agent.cluster"},
		{"ManagedCluster", ConditionAgentQuiet, "hub.cluster"},
		{"ManagedCluster", ConditionNamespaceReady, "hub.cluster"},
		{"ManagedCluster", ConditionWorksPresent, "agent.work"},
		{"ManagedClusterAddOn", "Available", "agent.addon"},
		{"ManagedClusterAddOn", "Available", "hub.cluster"},
		{"ManagedClusterAddOn", "Available", "hub.deploy"},
		{"ManagedClusterAddOn", ConditionCertificateRotated, "agent.addon"},
		{"ManagedClusterAddOn", "Configured", "hub.configure"},
		{"ManagedClusterAddOn", "Degraded", "hub.configure"},
		{"ManagedClusterAddOn", "HookManifestCompleted", "hub.deploy"},
		{"ManagedClusterAddOn", "HostingClusterValidity", "hub.deploy"},
		{"ManagedClusterAddOn", "HostingManifestApplied", "hub.deploy"},
		{"ManagedClusterAddOn", "ManifestApplied", "hub.deploy"},
		{"ManagedClusterAddOn", "Progressing", "hub.configure"},
		{"ManagedClusterAddOn", "RegistrationApplied", "hub.deploy"},
		{"ManagedClusterAddOn", "TokenInfrastructureReady", "hub.token"},
		{"ManagedClusterAddOn", "TokenRefreshed", "agent.addon"},
		{"ManagedClusterAddOn", ConditionAddOnDeleting, "hub.deploy"},
		{"ManagedClusterAddOn", ConditionRolloutFailed, "hub.configure"},
		{"ManagedClusterAddOn", ConditionSoaked, "hub.configure"},
		{"ManagedClusterAddOn", ConditionWorkloadsReady, "agent.addon"},
		{"ManagedClusterSet", "ClusterSetEmpty", "hub.clusterset"},
		{"ManagedClusterSetBinding", "Bound", "hub.setbinding"},
		{"ManifestWork", "Applied", "agent.work"},
		{"ManifestWork", "Available", "agent.work"},
		{"ManifestWork", "Deleting", "agent.work"},
		{"ManifestWork", "StatusFeedbackSynced", "agent.work"},
		{"ManifestWork", "work.spokelet.io/ConditionRulesValid", "agent.work"},
		{"Placement", "PlacementMisconfigured", "hub.placement"},
		{"Placement", "PlacementSatisfied", "hub.placement"},
		{"Placement", ConditionDecided, "hub.placement"},
	}
}
