package addon

import (
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
)

// WorkProbe is the health probe of an author, used with HealthWork. Its works must be available in any case.
type WorkProbe struct {
	// Fields select objects, and the values that the cluster feeds back about them. Without fields, the agent is healthy
	// when its works are available.
	Fields []ProbeField
	// Check returns why the agent is not healthy; nil when it is. It gets one result for each object that a field selects
	// and about which the cluster fed back a value, and is called only if there is a result or there are no fields. It
	// must be a pure function of its request. A nil Check means that any result is enough.
	Check func(request ProbeRequest) error
}

// ProbeField selects objects of an agent, and the values that are fed back about each of them.
type ProbeField struct {
	// ResourceIdentifier selects objects. Namespace and name may contain "*", which stands for any text.
	workv1.ResourceIdentifier
	// FeedbackRules are added to those of the manifest configs of the works.
	FeedbackRules []workv1.FeedbackRule
}

// ProbeRequest holds what a check judges.
type ProbeRequest struct {
	// Cluster and AddOn are the managed cluster and the add-on on it; they must not be changed.
	Cluster *clusterv1.ManagedCluster
	AddOn   *addonv1beta1.ManagedClusterAddOn
	// Results are ordered by field, and within a field by work and manifest.
	Results []ProbeResult
}

// ProbeResult are the values that a cluster fed back about one object.
type ProbeResult struct {
	// ResourceIdentifier identifies the object.
	workv1.ResourceIdentifier
	// Values are the values; there is at least one.
	Values []workv1.FeedbackValue
}

// Integer returns a value that is an integer; false when there is none of this name.
func (r ProbeResult) Integer(name string) (int64, bool) {
	for _, value := range r.Values {
		if value.Name == name && value.Value.Type == workv1.Integer && value.Value.Integer != nil {
			return *value.Value.Integer, true
		}
	}
	return 0, false
}

// Text returns a value that is a string; false when there is none of this name.
func (r ProbeResult) Text(name string) (string, bool) {
	for _, value := range r.Values {
		if value.Name == name && value.Value.Type == workv1.String && value.Value.String != nil {
			return *value.Value.String, true
		}
	}
	return "", false
}
