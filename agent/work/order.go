package work

const (
	// rankOther is the rank of every kind that the table does not know, all custom resources among them.
	rankOther = 1000
	// rankBroken is the rank of a manifest whose kind cannot be told.
	rankBroken = 1001
)

// rank returns the place of a kind in the order of applying, by its name only (work contract, section 2.5): what others
// build on comes first.
func rank(kind string) int {
	switch kind {
	case "":
		return rankBroken
	case "PriorityClass", "Namespace", "CustomResourceDefinition", "StorageClass", "PersistentVolume",
		"PodSecurityPolicy":
		return 0
	case "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding":
		return 1
	case "NetworkPolicy", "ResourceQuota", "LimitRange", "PodDisruptionBudget", "ServiceAccount":
		return 2
	case "Secret", "ConfigMap", "PersistentVolumeClaim":
		return 3
	case "Service":
		return 4
	case "DaemonSet", "Pod", "ReplicationController", "ReplicaSet", "Deployment", "HorizontalPodAutoscaler",
		"StatefulSet", "Job", "CronJob":
		return 5
	case "APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
		return 6
	}
	return rankOther
}
