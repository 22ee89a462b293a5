package fleet

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
)

// Meta is the part of the metadata of an object that the commands use.
type Meta struct {
	Name              string            `json:"name"`
	Namespace         string            `json:"namespace,omitempty"`
	UID               string            `json:"uid,omitempty"`
	Generation        int64             `json:"generation,omitempty"`
	CreationTimestamp metav1.Time       `json:"creationTimestamp,omitzero"`
	DeletionTimestamp *metav1.Time      `json:"deletionTimestamp,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	Annotations       map[string]string `json:"annotations,omitempty"`
	Finalizers        []string          `json:"finalizers,omitempty"`
}

// Deleting reports whether the object is being deleted.
func (m Meta) Deleting() bool { return m.DeletionTimestamp != nil }

// matches reports whether an object is in a namespace, has a name and the labels of a query; empty means any.
func (m Meta) matches(q Query) bool {
	return (q.Namespace == "" || m.Namespace == q.Namespace) && (q.Name == "" || m.Name == q.Name) &&
		labels.SelectorFromSet(q.Labels).Matches(labels.Set(m.Labels))
}

// Cluster is a ManagedCluster.
type Cluster struct {
	Metadata Meta `json:"metadata"`
	Spec     struct {
		HubAcceptsClient     bool  `json:"hubAcceptsClient"`
		LeaseDurationSeconds int32 `json:"leaseDurationSeconds,omitempty"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions,omitempty"`
		Version    struct {
			Kubernetes string `json:"kubernetes,omitempty"`
		} `json:"version,omitzero"`
		Claims []struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		} `json:"clusterClaims,omitempty"`
	} `json:"status,omitzero"`
}

// AddOn is a ManagedClusterAddOn, in either version of its API.
type AddOn struct {
	Metadata Meta `json:"metadata"`
	Status   struct {
		Conditions       []metav1.Condition `json:"conditions,omitempty"`
		Namespace        string             `json:"namespace,omitempty"`
		ConfigReferences []Config           `json:"configReferences,omitempty"`
		Registrations    []Registration     `json:"registrations,omitempty"`
	} `json:"status,omitzero"`
}

// Registration is what an add-on is registered with, in either version of its API.
type Registration struct {
	Type string `json:"type,omitempty"`
	// SignerName is that of v1alpha1.
	SignerName   string `json:"signerName,omitempty"`
	CustomSigner struct {
		SignerName string `json:"signerName,omitempty"`
	} `json:"customSigner,omitzero"`
}

// Config is a configuration of an add-on: what it should have, and what is in force.
type Config struct {
	Resource string    `json:"resource"`
	Group    string    `json:"group,omitempty"`
	Desired  *SpecHash `json:"desiredConfig,omitempty"`
	Applied  *SpecHash `json:"lastAppliedConfig,omitempty"`
}

// SpecHash is a configuration with the hash of its content.
type SpecHash struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	SpecHash  string `json:"specHash,omitempty"`
}

// Definition is a ClusterManagementAddOn, in either version of its API.
type Definition struct {
	Metadata Meta `json:"metadata"`
	Spec     struct {
		InstallStrategy struct {
			Type       string         `json:"type,omitempty"`
			Placements []PlacementRef `json:"placements,omitempty"`
		} `json:"installStrategy,omitzero"`
	} `json:"spec,omitzero"`
	Status struct {
		InstallProgressions []Progression `json:"installProgressions,omitempty"`
	} `json:"status,omitzero"`
}

// PlacementRef names a Placement, in a spec with how a change moves over its clusters.
type PlacementRef struct {
	Name      string                          `json:"name"`
	Namespace string                          `json:"namespace"`
	Strategy  clusterv1alpha1.RolloutStrategy `json:"rolloutStrategy,omitzero"`
}

// Progression is how far an add-on is on the clusters of a Placement.
type Progression struct {
	PlacementRef `json:",inline"`

	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Placement is a Placement.
type Placement struct {
	Metadata Meta `json:"metadata"`
	Status   struct {
		Conditions []metav1.Condition `json:"conditions,omitempty"`
	} `json:"status,omitzero"`
}

// Decision is a PlacementDecision.
type Decision struct {
	Metadata Meta `json:"metadata"`
	Status   struct {
		Decisions []struct {
			ClusterName string `json:"clusterName"`
		} `json:"decisions,omitempty"`
	} `json:"status,omitzero"`
}

// Work is a ManifestWork.
type Work struct {
	Metadata Meta `json:"metadata"`
	Spec     struct {
		Workload struct {
			Manifests []opaque `json:"manifests,omitempty"`
		} `json:"workload,omitzero"`
	} `json:"spec,omitzero"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions,omitempty"`
		Resources  struct {
			Manifests []ManifestState `json:"manifests,omitempty"`
		} `json:"resourceStatus,omitzero"`
	} `json:"status,omitzero"`
}

// opaque is a value that is counted and not kept.
type opaque struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (opaque) UnmarshalJSON([]byte) error { return nil }

// ManifestState is the status of one manifest of a work, as the agent writes it.
type ManifestState struct {
	Resource struct {
		Group     string `json:"group,omitempty"`
		Kind      string `json:"kind,omitempty"`
		Name      string `json:"name,omitempty"`
		Namespace string `json:"namespace,omitempty"`
		Ordinal   int32  `json:"ordinal"`
	} `json:"resourceMeta"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Request is a CertificateSigningRequest.
type Request struct {
	Metadata Meta `json:"metadata"`
	Spec     struct {
		SignerName string `json:"signerName"`
		Username   string `json:"username,omitempty"`
	} `json:"spec"`
	Status struct {
		Certificate []byte             `json:"certificate,omitempty"`
		Conditions  []RequestCondition `json:"conditions,omitempty"`
	} `json:"status,omitzero"`
}

// RequestCondition is a condition of a CertificateSigningRequest.
type RequestCondition struct {
	Type           string      `json:"type"`
	Status         string      `json:"status"`
	Reason         string      `json:"reason,omitempty"`
	Message        string      `json:"message,omitempty"`
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitzero"`
}

// Lease is a Lease.
type Lease struct {
	Metadata Meta `json:"metadata"`
	Spec     struct {
		HolderIdentity  string            `json:"holderIdentity,omitempty"`
		DurationSeconds int32             `json:"leaseDurationSeconds,omitempty"`
		RenewTime       *metav1.MicroTime `json:"renewTime,omitempty"`
	} `json:"spec,omitzero"`
}

// object is any of these kinds.
type object interface {
	Cluster | AddOn | Definition | Placement | Decision | Work | Request | Lease | Policy | Window
}

// metaOf reads the metadata of an object without its type.
func metaOf(raw json.RawMessage) (Meta, error) {
	var o struct {
		Metadata Meta `json:"metadata"`
	}
	err := json.Unmarshal(raw, &o)
	return o.Metadata, err
}
