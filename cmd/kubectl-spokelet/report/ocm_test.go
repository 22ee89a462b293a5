package report

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/names"
)

// condition is one that began an hour before noon: its type and status, its reason and its message.
func condition(kind string, status metav1.ConditionStatus, reason, text string) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: text, LastTransitionTime: metav1.NewTime(noon().Add(-time.Hour)),
	}
}

const (
	yes     = metav1.ConditionTrue
	no      = metav1.ConditionFalse
	unknown = metav1.ConditionUnknown
)

// shopOfOCM is a cluster with an add-on and a work, all well, as the hub and the agents of OCM 1.3 write them.
type shopOfOCM struct {
	cluster    *fleet.Cluster
	requests   []fleet.Request
	definition *fleet.Definition
	decisions  []fleet.Decision
	placements []fleet.Placement
	addOn      *fleet.AddOn
	work       *fleet.Work
}

func newShopOfOCM(t *testing.T) *shopOfOCM {
	t.Helper()
	s := &shopOfOCM{cluster: &fleet.Cluster{}, definition: &fleet.Definition{}, addOn: &fleet.AddOn{}}
	s.cluster.Metadata.Name, s.cluster.Spec.HubAcceptsClient = "store", true
	s.cluster.Status.Conditions = []metav1.Condition{
		condition("HubAcceptedManagedCluster", yes, "HubClusterAdminAccepted", "Accepted by hub cluster admin"),
		condition("ManagedClusterJoined", yes, "ManagedClusterJoined", "Managed cluster joined"),
		condition("ManagedClusterConditionAvailable", yes, "ManagedClusterAvailable", "Managed cluster is available"),
		condition("ManagedClusterConditionClockSynced", yes, "ManagedClusterClockSynced",
			"The clock of the managed cluster is synced with the hub."),
	}
	s.definition.Metadata.Name = "logs"
	s.definition.Spec.InstallStrategy.Type = "Placements"
	s.definition.Spec.InstallStrategy.Placements = []fleet.PlacementRef{{Namespace: "add-ons", Name: "stores"}}
	placement := fleet.Placement{}
	placement.Metadata.Namespace, placement.Metadata.Name = "add-ons", "stores"
	s.placements = []fleet.Placement{placement}
	decision := fleet.Decision{}
	decision.Metadata.Namespace, decision.Metadata.Name = "add-ons", "stores-decision-1"
	decision.Metadata.Labels = map[string]string{names.LabelPlacement: "stores"}
	decision.Status.Decisions = append(decision.Status.Decisions, struct {
		ClusterName string `json:"clusterName"`
	}{"store"})
	s.decisions = []fleet.Decision{decision}
	s.addOn.Metadata.Namespace, s.addOn.Metadata.Name = "store", "logs"
	s.addOn.Status.Conditions = []metav1.Condition{
		condition("Configured", yes, "ConfigurationsConfigured", "Configurations configured"),
		condition("RegistrationApplied", yes, "SetPermissionApplied", "Registration of the addon agent is configured"),
		condition("ClusterCertificateRotated", yes, "ClientCertificateUpdated",
			"client certificate rotated starting from 2026-11-28 12:00:00 +0000 UTC to 2027-11-28 12:00:00 +0000 UTC"),
		condition("ManifestApplied", yes, "AddonManifestApplied", "manifests of addon are applied successfully"),
		condition("Progressing", no, "Completed", "completed with no errors."),
		condition("Available", yes, "ManagedClusterAddOnLeaseUpdated", "logs add-on is available."),
	}
	s.work = decoded[fleet.Work](t, `{"metadata": {"namespace": "store", "name": "addon-logs-deploy-0", "generation": 2,
		"labels": {"`+names.LabelAddonName+`": "logs"}, "creationTimestamp": "2026-11-29T12:00:00Z"},
		"spec": {"workload": {"manifests": [{}, {}]}}, "status": {"conditions": [
		{"type": "Applied", "status": "True", "reason": "AppliedManifestWorkComplete", "observedGeneration": 2},
		{"type": "Available", "status": "True", "reason": "ResourcesAvailable", "observedGeneration": 2}]}}`)
	return s
}

// onCluster replaces a condition of the cluster, and onAddOn one of the add-on.
func (s *shopOfOCM) onCluster(kind string, status metav1.ConditionStatus, reason, text string) {
	replaced(&s.cluster.Status.Conditions, condition(kind, status, reason, text))
}

func (s *shopOfOCM) onAddOn(kind string, status metav1.ConditionStatus, reason, text string) {
	replaced(&s.addOn.Status.Conditions, condition(kind, status, reason, text))
}

// onWork replaces a condition of the work, and says the same of its first manifest.
func (s *shopOfOCM) onWork(kind, reason, text string, ofManifest string) {
	c := condition(kind, no, reason, text)
	c.ObservedGeneration = 2
	replaced(&s.work.Status.Conditions, c)
	m := fleet.ManifestState{Conditions: []metav1.Condition{condition(kind, no, "", ofManifest)}}
	m.Resource.Kind, m.Resource.Namespace, m.Resource.Name = "Deployment", "logs", "agent"
	s.work.Status.Resources.Manifests = []fleet.ManifestState{m}
}

// without takes conditions away.
func without(conditions *[]metav1.Condition, kinds ...string) {
	*conditions = slices.DeleteFunc(*conditions, func(c metav1.Condition) bool { return slices.Contains(kinds, c.Type) })
}

func replaced(conditions *[]metav1.Condition, c metav1.Condition) {
	without(conditions, c.Type)
	*conditions = append(*conditions, c)
}

// ofAddOn, ofCluster and ofWork are what why answers.
func (s *shopOfOCM) ofAddOn() Chain {
	f := AddOnFacts{
		Now: noon(), AddOn: s.addOn, Definition: s.definition, Cluster: s.cluster, Decisions: s.decisions,
		Placements: s.placements,
	}
	if s.work != nil {
		f.Works = []fleet.Work{*s.work}
	}
	return AddOnChain("store", "logs", f)
}

func (s *shopOfOCM) ofCluster() Chain {
	return ClusterChain("store", ClusterFacts{Now: noon(), Cluster: s.cluster, Requests: s.requests})
}

func (s *shopOfOCM) ofWork() Chain { return WorkChain("store", "addon-logs-deploy-0", s.work) }

// request is a certificate request of the agent.
func (s *shopOfOCM) request(conditions ...fleet.RequestCondition) fleet.Request {
	r := fleet.Request{}
	r.Metadata.Name, r.Metadata.CreationTimestamp = "store-x", metav1.NewTime(noon().Add(-time.Hour))
	r.Metadata.Labels = map[string]string{names.LabelClusterName: "store"}
	r.Status.Conditions = conditions
	return r
}

// ocmFault is something that goes wrong in a fleet of OCM.
type ocmFault struct {
	hurt func(s *shopOfOCM)
	ask  func(s *shopOfOCM) Chain
	code causes.Code
	// says is a part of the message of the first cause.
	says string
}

// clusterFaultsOfOCM are faults of clusters, with the reasons and messages that OCM 1.3 writes.
func clusterFaultsOfOCM() map[string]ocmFault {
	ask := (*shopOfOCM).ofCluster
	notJoined := func(s *shopOfOCM) {
		without(&s.cluster.Status.Conditions, "ManagedClusterJoined", "ManagedClusterConditionAvailable",
			"ManagedClusterConditionClockSynced")
	}
	approved := fleet.RequestCondition{Type: "Approved", Reason: "AutoApprovedByHubCSRApprovingController"}
	return map[string]ocmFault{
		"nobody has accepted it": {func(s *shopOfOCM) {
			s.cluster.Spec.HubAcceptsClient, s.cluster.Status.Conditions = false, nil
		}, ask, causes.ClusterNotAccepted, "hubAcceptsClient is false"},
		"a person denied it later": {func(s *shopOfOCM) {
			s.cluster.Spec.HubAcceptsClient = false
			s.onCluster("HubAcceptedManagedCluster", no, "HubClusterAdminDenied", "Denied by hub cluster admin")
		}, ask, causes.ClusterDenied, "Denied by hub cluster admin"},
		"the hub cannot give it its rights": {func(s *shopOfOCM) {
			s.onCluster("HubAcceptedManagedCluster", no, "Error", "clusterroles is forbidden")
		}, ask, causes.AccessFailed, "clusterroles is forbidden"},
		"it never joined": {notJoined, ask, causes.ClusterNotJoined, ""},
		"its request waits for a person": {func(s *shopOfOCM) {
			notJoined(s)
			s.requests = []fleet.Request{s.request()}
		}, ask, causes.RequestPending, "neither approved nor denied"},
		"its request was denied": {func(s *shopOfOCM) {
			notJoined(s)
			s.requests = []fleet.Request{s.request(fleet.RequestCondition{Type: "Denied", Message: "unknown"})}
		}, ask, causes.RequestDenied, "unknown"},
		"its request is not signed": {func(s *shopOfOCM) {
			notJoined(s)
			s.requests = []fleet.Request{s.request(approved)}
		}, ask, causes.RequestUnsigned, ""},
		"its heartbeat stopped": {func(s *shopOfOCM) {
			s.onCluster("ManagedClusterConditionAvailable", unknown, "ManagedClusterLeaseUpdateStopped",
				"Registration agent stopped updating its lease.")
		}, ask, causes.ClusterSilent, "stopped updating its lease"},
		"its API server fails": {func(s *shopOfOCM) {
			s.onCluster("ManagedClusterConditionAvailable", no, "ManagedClusterKubeAPIServerUnavailable",
				"The kube-apiserver is not ok, status code: 500, etcd failed")
		}, ask, causes.ClusterUnavailable, "etcd failed"},
		"its clock is wrong": {func(s *shopOfOCM) {
			s.onCluster("ManagedClusterConditionClockSynced", no, "ManagedClusterClockOutOfSync", "The clock of hub and agent is "+
				"out of sync. This may cause the Unknown status and affect agent functionalities.")
		}, ask, causes.ClocksDiffer, "out of sync"},
		"its certificate cannot be renewed": {func(s *shopOfOCM) {
			s.onCluster("ClusterCertificateRotated", no, "ClientCertificateUpdateFailed",
				"Stop creating csr since there are too many csr created already on hub")
		}, ask, causes.CertificateLate, "too many csr"},
		"works keep it from being deleted": {func(s *shopOfOCM) {
			at := metav1.NewTime(noon().Add(-time.Hour))
			s.cluster.Metadata.DeletionTimestamp = &at
			s.onCluster("Deleting", no, "ResourceRemaining", "The resource manifestworks is remaning, the remaining count is 1")
		}, ask, causes.ClusterDeletion, "remaining count is 1"},
		"it does not exist": {func(s *shopOfOCM) { s.cluster = nil }, ask, causes.ClusterMissing, ""},
	}
}

// addOnFaultsOfOCM are faults of add-ons.
func addOnFaultsOfOCM() map[string]ocmFault {
	ask := (*shopOfOCM).ofAddOn
	deleting := func(s *shopOfOCM, finalizers ...string) {
		at := metav1.NewTime(noon().Add(-time.Hour))
		s.addOn.Metadata.DeletionTimestamp, s.addOn.Metadata.Finalizers = &at, finalizers
	}
	return map[string]ocmFault{
		"nobody defines it": {func(s *shopOfOCM) { s.addOn, s.definition = nil, nil }, ask, causes.AddOnMissing, ""},
		"its placement does not exist": {func(s *shopOfOCM) {
			s.addOn, s.placements, s.decisions = nil, nil, nil
		}, ask, causes.PlacementMissing, "add-ons/stores"},
		"its placement selects nothing": {func(s *shopOfOCM) {
			s.addOn, s.decisions[0].Status.Decisions = nil, nil
			s.placements[0].Status.Conditions = []metav1.Condition{condition("PlacementSatisfied", no, "NoManagedClusterMatched",
				"No ManagedCluster matches any of the cluster predicate")}
		}, ask, causes.PlacementEmpty, "No ManagedCluster matches"},
		"its placement has no set": {func(s *shopOfOCM) {
			s.addOn, s.decisions = nil, nil
			s.placements[0].Status.Conditions = []metav1.Condition{condition("PlacementSatisfied", no, "NoManagedClusterSetBindings",
				"No valid ManagedClusterSetBindings found in placement namespace")}
		}, ask, causes.PlacementEmpty, "No valid ManagedClusterSetBindings"},
		"its cluster is silent": {func(s *shopOfOCM) {
			const reason, text = "ManagedClusterLeaseUpdateStopped", "Registration agent stopped updating its lease."
			s.onCluster("ManagedClusterConditionAvailable", unknown, reason, text)
			s.onAddOn("Available", unknown, reason, text)
		}, ask, causes.ClusterSilent, "stopped updating its lease"},
		"its configuration waits": {func(s *shopOfOCM) {
			s.onAddOn("Configured", no, "ConfigurationsNotConfigured", "Configurations updated and not configured yet")
			without(&s.addOn.Status.Conditions, "ManifestApplied", "Progressing", "Available")
			s.work = nil
		}, ask, causes.ConfigurationKept, "not configured yet"},
		"its configuration is of a kind that it does not know": {func(s *shopOfOCM) {
			s.onAddOn("Progressing", no, "ConfigurationUnsupported", "the config resource example.com/things is unsupported")
		}, ask, causes.ConfigurationKept, "example.com/things"},
		"its rights cannot be set up": {func(s *shopOfOCM) {
			s.onAddOn("RegistrationApplied", no, "SetPermissionFailed", "Failed to set permission for hub agent: forbidden")
		}, ask, causes.RegistrationFailed, "forbidden"},
		"its rights wait for the subject": {func(s *shopOfOCM) {
			s.onAddOn("RegistrationApplied", no, "PermissionConfigPending", "Permission configuration pending")
		}, ask, causes.RegistrationFailed, "pending"},
		"its certificate is not issued": {func(s *shopOfOCM) {
			s.onAddOn("ClusterCertificateRotated", no, "ClientCertificateUpdateFailed", "Failed to create CSR forbidden")
		}, ask, causes.RequestRefused, "Failed to create CSR"},
		"its token has no account": {func(s *shopOfOCM) {
			without(&s.addOn.Status.Conditions, "ClusterCertificateRotated")
			s.onAddOn("TokenInfrastructureReady", no, "TokenInfrastructureNotReady", "Failed to apply ServiceAccount")
		}, ask, causes.TokenFailed, "ServiceAccount"},
		"its token is not given": {func(s *shopOfOCM) {
			without(&s.addOn.Status.Conditions, "ClusterCertificateRotated")
			s.onAddOn("TokenRefreshed", no, "TokenCreationFailed", "Failed to create token: forbidden")
		}, ask, causes.TokenFailed, "Failed to create token"},
		"it cannot be rendered": {func(s *shopOfOCM) {
			s.onAddOn("ManifestApplied", no, "ManifestWorkApplyFailed", "failed to get manifest from agent interface: no value")
		}, ask, causes.NotRendered, "no value"},
		"its work is not applied": {func(s *shopOfOCM) {
			s.onAddOn("ManifestApplied", no, "AddonManifestAppliedFailed", "failed to apply the manifests of addon")
			s.onWork("Applied", "AppliedManifestWorkFailed", "Failed to apply manifest work", "Failed to apply manifest: quota exceeded")
		}, ask, causes.NotApplied, "quota exceeded"},
		"its lease stopped": {func(s *shopOfOCM) {
			s.onAddOn("Available", no, "ManagedClusterAddOnLeaseUpdateStopped", "logs add-on is not available.")
		}, ask, causes.LeaseStopped, "not available"},
		"its lease never was": {func(s *shopOfOCM) {
			s.onAddOn("Available", unknown, "ManagedClusterAddOnLeaseNotFound", "The status of logs add-on is unknown.")
		}, ask, causes.LeaseMissing, "is unknown"},
		"its probe fails": {func(s *shopOfOCM) {
			s.onAddOn("Available", no, "ProbeUnavailable", "Probe addon unavailable with err desiredNumberScheduled is 1 but 0")
		}, ask, causes.ProbeFailed, "but 0"},
		"its probe has no result": {func(s *shopOfOCM) {
			s.onAddOn("Available", unknown, "NoProbeResult", "No probe results are returned")
		}, ask, causes.HealthUnknown, "No probe results"},
		"its hosting cluster does not exist": {func(s *shopOfOCM) {
			s.addOn.Metadata.Annotations = map[string]string{names.AnnotationHostingCluster: "nowhere"}
			s.onAddOn("HostingClusterValidity", no, "HostingClusterInvalid", "hosting cluster nowhere is not a managed cluster of the hub")
		}, ask, causes.HostingInvalid, "nowhere"},
		"its hook does not end": {func(s *shopOfOCM) {
			deleting(s, "addon.open-cluster-management.io/addon-pre-delete")
			s.onAddOn("HookManifestCompleted", no, "HookManifestIsNotCompleted", "hook manifest is not completed")
		}, ask, causes.DeletionWaits, "hook manifest is not completed"},
		"another program keeps it": {func(s *shopOfOCM) { deleting(s, "example.com/backup") }, ask, causes.DeletionWaits, "example.com/backup"},
		"no hub manager runs":      {func(s *shopOfOCM) { s.addOn.Status.Conditions = nil }, ask, causes.AddOnUnmanaged, ""},
		"its manifests are awaited": {func(s *shopOfOCM) {
			without(&s.addOn.Status.Conditions, "ManifestApplied", "Available")
			s.onAddOn("Progressing", no, "WaitingForManifestApplied", "")
		}, ask, causes.ManifestsAwaited, ""},
	}
}

// workFaultsOfOCM are faults of works.
func workFaultsOfOCM() map[string]ocmFault {
	ask := (*shopOfOCM).ofWork
	return map[string]ocmFault{
		"a manifest is refused": {func(s *shopOfOCM) {
			s.onWork("Applied", "AppliedManifestWorkFailed", "Failed to apply manifest work", "Failed to apply manifest: quota exceeded")
		}, ask, causes.WorkNotApplied, "Deployment logs/agent: Failed to apply manifest: quota exceeded"},
		"an object is gone": {func(s *shopOfOCM) {
			s.onWork("Available", "ResourcesNotAvailable", "1 of 2 resources are not available", "Resource is not available")
		}, ask, causes.WorkNotAvailable, "Deployment logs/agent: Resource is not available"},
		"it is not seen":         {func(s *shopOfOCM) { s.work.Status.Conditions = nil }, ask, causes.WorkNotSeen, "generation 2"},
		"its change is not seen": {func(s *shopOfOCM) { s.work.Metadata.Generation = 3 }, ask, causes.WorkNotSeen, "generation 3"},
		"it does not go": {func(s *shopOfOCM) {
			at := metav1.NewTime(noon().Add(-time.Hour))
			s.work.Metadata.DeletionTimestamp = &at
			replaced(&s.work.Status.Conditions, condition("Deleting", yes, "WorkDeleting", "ManifestWork is being deleted"))
		}, ask, causes.WorkDeletion, "is being deleted"},
		"it does not exist": {func(s *shopOfOCM) { s.work = nil }, ask, causes.ObjectMissing, ""},
	}
}

func TestWhyNamesTheCauseInAFleetOfOCM(t *testing.T) {
	faults := 0
	for kind, all := range map[string]map[string]ocmFault{
		"cluster": clusterFaultsOfOCM(), "add-on": addOnFaultsOfOCM(), "work": workFaultsOfOCM(),
	} {
		faults += len(all)
		for sentence, fault := range all {
			t.Run(kind+": "+sentence, func(t *testing.T) {
				s := newShopOfOCM(t)
				before := fault.ask(s)
				require.True(t, before.Healthy, "nothing is wrong before: %+v", before.Problem)
				fault.hurt(s)
				got := fault.ask(s)
				require.NotNil(t, got.Problem)
				assert.Equal(t, fault.code, got.Problem.Code, got.Problem.Message)
				assert.Contains(t, got.Problem.Message, fault.says)
				assert.NotEmpty(t, got.Problem.Next)
				assert.False(t, got.Healthy)
			})
		}
	}
	assert.GreaterOrEqual(t, faults, 30)
}
