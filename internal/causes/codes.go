package causes

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/token"
)

// Code is the stable code of a kind of trouble, such as SPK052.
type Code string

// The codes of the hub and of what a user may read.
const (
	HubUnreachable     Code = "SPK001"
	RightMissing       Code = "SPK002"
	ClusterUnreachable Code = "SPK003"
	ObjectMissing      Code = "SPK004"
	DefinitionMissing  Code = "SPK010"
	PoliciesMissing    Code = "SPK011"
	ConversionDown     Code = "SPK012"
	HubDown            Code = "SPK013"
)

// The codes of clusters.
const (
	ClusterNotAccepted Code = "SPK020"
	RequestPending     Code = "SPK021"
	ClusterDenied      Code = "SPK022"
	NamespaceOfOthers  Code = "SPK023"
	ClusterMissing     Code = "SPK024"
	AccessFailed       Code = "SPK025"
	RequestDenied      Code = "SPK026"
	RequestUnsigned    Code = "SPK027"
	ClusterNotJoined   Code = "SPK030"
	ClusterSilent      Code = "SPK031"
	ClusterUnavailable Code = "SPK032"
	ClocksDiffer       Code = "SPK033"
	CertificateLate    Code = "SPK034"
	ClusterDeletion    Code = "SPK035"
	AgentNoisy         Code = "SPK036"
	WorksMissing       Code = "SPK037"
	AgentDown          Code = "SPK038"
)

// The codes of add-ons.
const (
	AddOnMissing       Code = "SPK040"
	ConfigurationKept  Code = "SPK041"
	HostingInvalid     Code = "SPK042"
	RegistrationFailed Code = "SPK043"
	RequestRefused     Code = "SPK044"
	RequestNotSigned   Code = "SPK045"
	RequestWaits       Code = "SPK046"
	TokenFailed        Code = "SPK047"
	NotApplied         Code = "SPK048"
	NotRendered        Code = "SPK049"
	ManifestsAwaited   Code = "SPK050"
	WorkloadNotReady   Code = "SPK052"
	LeaseStopped       Code = "SPK053"
	LeaseMissing       Code = "SPK054"
	ProbeFailed        Code = "SPK055"
	HookFailed         Code = "SPK056"
	DeletionWaits      Code = "SPK057"
	AddOnUnmanaged     Code = "SPK058"
	HealthUnknown      Code = "SPK059"
)

// The codes of rollouts and placements.
const (
	PlacementMissing Code = "SPK060"
	PlacementEmpty   Code = "SPK061"
	RolloutStopped   Code = "SPK062"
	RolloutFailed    Code = "SPK063"
)

// The codes of works.
const (
	WorkNotApplied   Code = "SPK070"
	WorkNotAvailable Code = "SPK071"
	WorkDeletion     Code = "SPK072"
	WorkNotSeen      Code = "SPK073"
	Untraced         Code = "SPK074"
)

// Titles returns what each code means, in a few words: the heading of the code in docs/operations/messages.md.
func Titles() map[Code]string {
	return map[Code]string{
		HubUnreachable:     "the hub does not answer",
		RightMissing:       "a right is missing to look",
		ClusterUnreachable: "a managed cluster does not answer",
		ObjectMissing:      "an object does not exist",
		DefinitionMissing:  "a definition is not installed",
		PoliciesMissing:    "an admission policy is not in force",
		ConversionDown:     "the conversion of add-ons does not work",
		HubDown:            "the hub manager does not run",
		ClusterNotAccepted: "a cluster waits to be accepted",
		RequestPending:     "a certificate request of a cluster waits for a person",
		ClusterDenied:      "the hub denied a cluster",
		NamespaceOfOthers:  "the namespace of a cluster belongs to others",
		ClusterMissing:     "a cluster does not exist",
		AccessFailed:       "the access of a cluster cannot be set up",
		RequestDenied:      "a certificate request of a cluster was denied",
		RequestUnsigned:    "a certificate request of a cluster is not signed",
		ClusterNotJoined:   "the agent of a cluster never joined",
		ClusterSilent:      "the heartbeat of a cluster stopped",
		ClusterUnavailable: "the API server of a cluster does not answer its agent",
		ClocksDiffer:       "the clocks of a cluster and the hub differ",
		CertificateLate:    "the certificate of an agent cannot be renewed",
		ClusterDeletion:    "the deletion of a cluster waits",
		AgentNoisy:         "the agent of a cluster writes too often",
		WorksMissing:       "the hub lost works that a cluster applied",
		AgentDown:          "the agent of a cluster does not run",
		AddOnMissing:       "an add-on is not installed on a cluster",
		ConfigurationKept:  "an add-on keeps its configuration",
		HostingInvalid:     "a hosting cluster cannot host an add-on",
		RegistrationFailed: "the permissions of an add-on cannot be set up",
		RequestRefused:     "a certificate request of an add-on is refused",
		RequestNotSigned:   "a certificate request of an add-on is not signed",
		RequestWaits:       "a certificate request of an add-on waits for a person",
		TokenFailed:        "an add-on gets no token",
		NotApplied:         "a cluster did not apply an add-on",
		NotRendered:        "an add-on cannot be rendered",
		ManifestsAwaited:   "the manifests of an add-on are awaited",
		WorkloadNotReady:   "a workload is not ready",
		LeaseStopped:       "the lease of an add-on stopped",
		LeaseMissing:       "an add-on never renewed its lease",
		ProbeFailed:        "the health check of an add-on fails",
		HookFailed:         "the hook of a deletion failed",
		DeletionWaits:      "a deletion waits",
		AddOnUnmanaged:     "no hub manager looks after an add-on",
		HealthUnknown:      "the health of an add-on is not known",
		PlacementMissing:   "a placement does not exist",
		PlacementEmpty:     "a placement selects no cluster",
		RolloutStopped:     "a rollout stopped",
		RolloutFailed:      "a rollout counts a cluster as failed",
		WorkNotApplied:     "a work is not applied",
		WorkNotAvailable:   "objects of a work do not exist",
		WorkDeletion:       "the deletion of a work waits",
		WorkNotSeen:        "the agent has not seen a work",
		Untraced:           "no work applied an object",
	}
}

// ofCondition returns the code of a condition of an add-on that explains why it does not work.
func ofCondition(c *metav1.Condition) Code {
	switch c.Type {
	case addonv1beta1.ManagedClusterAddOnConditionConfigured:
		return ConfigurationKept
	case addonv1beta1.ManagedClusterAddOnHostingClusterValidity:
		return HostingInvalid
	case addonv1beta1.ManagedClusterAddOnRegistrationApplied:
		return RegistrationFailed
	case names.ConditionCertificateRotated:
		return ofRotation(c.Reason)
	case token.ConditionInfrastructure, token.ConditionRefreshed:
		return TokenFailed
	case addonv1beta1.ManagedClusterAddOnManifestApplied, addonv1beta1.ManagedClusterAddOnHostingManifestApplied:
		if c.Reason == addonv1beta1.AddonManifestAppliedReasonManifestsApplyFailed {
			return NotApplied
		}
		return NotRendered
	case names.ConditionWorkloadsReady:
		return WorkloadNotReady
	}
	return ofHealth(c.Reason)
}

// ofRotation returns the code of a reason of ClusterCertificateRotated.
func ofRotation(reason string) Code {
	switch reason {
	case "CertificateRequestPending":
		return RequestWaits
	case "CertificateRequestNotSigned":
		return RequestNotSigned
	}
	return RequestRefused
}

// ofHealth returns the code of a reason of Available.
func ofHealth(reason string) Code {
	switch reason {
	case "ManagedClusterAddOnLeaseUpdateStopped":
		return LeaseStopped
	case "ManagedClusterAddOnLeaseNotFound":
		return LeaseMissing
	case ReasonClusterSilent:
		return ClusterSilent
	case "WorkNotApplied", "WorkNotFound":
		return NotApplied
	case "ProbeUnavailable":
		return ProbeFailed
	}
	return HealthUnknown
}
