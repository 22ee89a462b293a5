package report

import (
	"github.com/spokelet/spokelet/internal/causes"
)

// remedies are what mends each kind of trouble: a command where there is one. None takes the decision of a person back.
// {cluster} and {name} stand for the cluster and the name of the object. docs/operations/messages.md says more under
// the heading of the code.
func remedies() map[causes.Code]string {
	const (
		accept = "kubectl spokelet approve cluster {cluster}"
		denied = "find out who denied the cluster: kubectl get managedcluster {cluster} -o yaml"
		logs   = "kubectl spokelet logs agent --errors --spoke-context CONTEXT, with a context of cluster {cluster}"
		into   = "kubectl spokelet why addon {name} -n {cluster} --spoke-context CONTEXT (of cluster {cluster})"
		lease  = "on cluster {cluster}: kubectl get leases -A; the agent of the add-on renews the one of its name"
	)
	return map[causes.Code]string{
		causes.ClusterNotAccepted: accept,
		causes.ClusterDenied:      denied,
		causes.RequestPending:     "kubectl get csr -l open-cluster-management.io/cluster-name={cluster}",
		causes.NamespaceOfOthers:  "kubectl get namespace {cluster} -o yaml",
		causes.ClusterMissing:     "kubectl spokelet get clusters",
		causes.AccessFailed:       "kubectl spokelet events cluster {cluster}",
		causes.RequestDenied:      "kubectl get csr -l open-cluster-management.io/cluster-name={cluster}",
		causes.RequestUnsigned:    "kubectl get csr -l open-cluster-management.io/cluster-name={cluster}",
		causes.PlacementMissing:   "kubectl get clustermanagementaddon {name} -o yaml",
		causes.PlacementEmpty:     "kubectl get clustermanagementaddon {name} -o yaml",
		causes.ClusterNotJoined:   logs,
		causes.ClusterSilent:      logs,
		causes.ClusterUnavailable: "on cluster {cluster}: kubectl get --raw /readyz?verbose",
		causes.ClocksDiffer:       "set the clock of the nodes of cluster {cluster}, or that of the hub",
		causes.CertificateLate:    "kubectl get csr -l open-cluster-management.io/cluster-name={cluster}",
		causes.ClusterDeletion:    "kubectl get managedclusteraddons,manifestworks -n {cluster}",
		causes.AgentNoisy:         logs,
		causes.AgentDown: "kubectl describe pods -n open-cluster-management-agent --context CONTEXT, with a context of " +
			"cluster {cluster}",
		causes.WorksMissing:       "restore the works on the hub, or confirm the eviction as the message says",
		causes.AddOnMissing:       "kubectl get clustermanagementaddon {name} -o yaml",
		causes.ConfigurationKept:  "kubectl spokelet tree addon {name}",
		causes.HostingInvalid:     "kubectl get managedclusteraddon {name} -n {cluster} -o yaml",
		causes.RegistrationFailed: "grant what the message names",
		causes.RequestRefused:     "kubectl get csr -l open-cluster-management.io/cluster-name={cluster}",
		causes.RequestWaits:       "kubectl get csr -l open-cluster-management.io/cluster-name={cluster}",
		causes.RequestNotSigned:   "kubectl get csr -l open-cluster-management.io/cluster-name={cluster}",
		causes.TokenFailed:        "kubectl get serviceaccounts -n {cluster}",
		causes.NotApplied:         "kubectl spokelet get works -n {cluster} --not-ready",
		causes.NotRendered:        "correct the template or the configuration that the message names",
		causes.ManifestsAwaited:   "kubectl get managedclusteraddon {name} -n {cluster} -o yaml",
		causes.WorkloadNotReady:   into,
		causes.LeaseStopped:       lease,
		causes.LeaseMissing:       lease,
		causes.ProbeFailed:        "kubectl spokelet get works -n {cluster}",
		causes.HookFailed:         "kubectl get managedclusteraddon {name} -n {cluster} -o yaml",
		causes.DeletionWaits:      "kubectl get managedclusteraddon {name} -n {cluster} -o yaml",
		causes.AddOnUnmanaged:     "kubectl get pods -n open-cluster-management-hub",
		causes.HealthUnknown:      "kubectl get managedclusteraddon {name} -n {cluster} -o yaml",
		causes.RolloutStopped:     "kubectl spokelet tree addon {name}",
		causes.RolloutFailed:      "kubectl spokelet tree addon {name}",
		causes.WorkNotApplied:     "kubectl get manifestwork {name} -n {cluster} -o yaml",
		causes.WorkNotAvailable:   "kubectl get manifestwork {name} -n {cluster} -o yaml",
		causes.WorkDeletion:       "kubectl get manifestwork {name} -n {cluster} -o yaml",
		causes.WorkNotSeen:        "kubectl spokelet why cluster {cluster}",
	}
}

// remedy returns what mends a problem at the end of a chain; what the problem says where nothing else is known.
func remedy(p *Problem) string {
	text, known := remedies()[p.Code]
	switch {
	case p.Code == causes.ClusterSilent && p.cause != nil && p.cause.Condition == nil:
		return "kubectl spokelet logs hub --errors"
	case !known:
		return p.Next
	}
	cluster := p.Namespace
	if p.Kind == KindCluster {
		cluster = p.Name
	}
	return Command(p.Kind, text, "{cluster}", cluster, "{name}", p.Name)
}
