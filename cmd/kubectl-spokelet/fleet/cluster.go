package fleet

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
)

// Events are Events of the core API, which has those of events.k8s.io, too.
func Events() Resource { return Resource{Version: "v1", Plural: "events", Namespaced: true} }

// Pods are pods.
func Pods() Resource { return Resource{Version: "v1", Plural: "pods", Namespaced: true} }

// Secrets are Secrets. The plugin asks for their metadata alone.
func Secrets() Resource { return Resource{Version: "v1", Plural: "secrets", Namespaced: true} }

// Namespaces are namespaces.
func Namespaces() Resource { return Resource{Version: "v1", Plural: "namespaces"} }

// Deployments are Deployments.
func Deployments() Resource {
	return Resource{Group: "apps", Version: "v1", Plural: "deployments", Namespaced: true}
}

// DaemonSets are DaemonSets.
func DaemonSets() Resource {
	return Resource{Group: "apps", Version: "v1", Plural: "daemonsets", Namespaced: true}
}

// Records are AppliedManifestWorks.
func Records() Resource {
	return Resource{Group: workv1.GroupName, Version: "v1", Plural: "appliedmanifestworks"}
}

// Record is an AppliedManifestWork: what the agent of a cluster keeps of a work.
type Record struct {
	Metadata Meta `json:"metadata"`
	Spec     struct {
		HubHash string `json:"hubHash"`
		AgentID string `json:"agentID"`
		Work    string `json:"manifestWorkName"`
	} `json:"spec"`
	Status struct {
		Applied  []Applied    `json:"appliedResources,omitempty"`
		Eviction *metav1.Time `json:"evictionStartTime,omitempty"`
	} `json:"status,omitzero"`
}

// Applied is an object in an AppliedManifestWork.
type Applied struct {
	Group     string `json:"group,omitempty"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// Traced is the metadata of any object, with who owns and who wrote it.
type Traced struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Meta `json:",inline"`

		Owners  []metav1.OwnerReference     `json:"ownerReferences,omitempty"`
		Writers []metav1.ManagedFieldsEntry `json:"managedFields,omitempty"`
	} `json:"metadata"`
}
