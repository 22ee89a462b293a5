package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
)

// Resource names a resource of the API.
type Resource struct {
	Group, Version, Plural string
	// Namespaced reports whether its objects are in namespaces.
	Namespaced bool
}

// String names the resource as a rule of RBAC does, for messages.
func (r Resource) String() string {
	if r.Group == "" {
		return r.Plural
	}
	return r.Plural + "." + r.Group
}

// resource returns the resource of a kind of object. The version of the add-on API is chosen by the source, which knows
// what the hub serves.
func resource[T object]() Resource {
	var zero T
	switch any(zero).(type) {
	case Cluster:
		return Resource{Group: clusterv1.GroupName, Version: "v1", Plural: "managedclusters"}
	case AddOn:
		return Resource{Group: addonv1beta1.GroupName, Plural: "managedclusteraddons", Namespaced: true}
	case Definition:
		return Resource{Group: addonv1beta1.GroupName, Plural: "clustermanagementaddons"}
	case Decision:
		return Resource{Group: clusterv1.GroupName, Version: "v1beta1", Plural: "placementdecisions", Namespaced: true}
	case Work:
		return Resource{Group: workv1.GroupName, Version: "v1", Plural: "manifestworks", Namespaced: true}
	case Request:
		return Resource{Group: "certificates.k8s.io", Version: "v1", Plural: "certificatesigningrequests"}
	}
	return Resource{Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Namespaced: true}
}

// Query says which objects of a resource are wanted; an empty field means any.
type Query struct {
	Resource  Resource
	Namespace string
	Name      string
	Labels    map[string]string
}

// Source gives the objects of a fleet as pages of JSON lists.
type Source interface {
	// Pages returns the pages of a list. It ends with the first error, which is an APIStatus where the API server
	// answered one.
	Pages(ctx context.Context, q Query) iter.Seq2[[]byte, error]
	// Version returns the version of Kubernetes of the hub.
	Version(ctx context.Context) (string, error)
	// Name is the address of the hub, or the name of the bundle.
	Name() string
}

// Gap names a part that an answer lacks, because the user may not read it or the hub does not have it.
type Gap struct {
	// What is the resource, with its namespace where only that was asked.
	What string `json:"what"`
	// Missing reports that the hub does not serve the resource.
	Missing bool `json:"missing,omitempty"`
	// Rule is the rule of RBAC that is lacking; empty where that is not the reason.
	Rule string `json:"rule,omitempty"`
	// Why is the answer of the API server.
	Why string `json:"why"`
}

// Reader reads objects and collects what it may not read.
type Reader struct {
	Source Source
	Gaps   []Gap
}

// ErrUnreachable is in errors of a Reader whose source does not answer.
var ErrUnreachable = errors.New("the hub does not answer")

// List reads the objects of a query. What may not be read, or is not served, is a gap; the error is that of a source
// that does not answer.
func List[T object](ctx context.Context, r *Reader, q Query) ([]T, error) {
	q.Resource = resource[T]()
	var all []T
	for page, err := range r.Source.Pages(ctx, q) {
		if err != nil {
			return all, r.fail(q, err)
		}
		var decoded list[T]
		if err := json.Unmarshal(page, &decoded); err != nil {
			return all, fmt.Errorf("decoding %s: %w", q.Resource, err)
		}
		all = append(all, decoded.Items...)
	}
	return all, nil
}

// Get reads one object; nil where it does not exist or may not be read.
func Get[T object](ctx context.Context, r *Reader, namespace, name string) (*T, error) {
	found, err := List[T](ctx, r, Query{Namespace: namespace, Name: name})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// fail notes a gap, or returns the error where nothing can be read.
func (r *Reader) fail(q Query, err error) error {
	where := q.Resource.String()
	if q.Namespace != "" {
		where += " in namespace " + q.Namespace
	}
	switch {
	case apierrors.IsForbidden(err):
		r.Gaps = append(r.Gaps, Gap{What: where, Why: err.Error(), Rule: fmt.Sprintf(
			`{apiGroups: [%q], resources: [%s], verbs: [get, list]}`, q.Resource.Group, q.Resource.Plural)})
		return nil
	case apierrors.IsNotFound(err):
		r.Gaps = append(r.Gaps, Gap{What: where, Missing: true, Why: "the hub does not serve it"})
		return nil
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("reading %s: %w", where, err)
	}
	return fmt.Errorf("reading %s: %w: %w", where, ErrUnreachable, err)
}

// Lacks reports whether a resource could not be read.
func (r *Reader) Lacks(plural string) bool {
	for _, gap := range r.Gaps {
		if strings.HasPrefix(gap.What, plural) {
			return true
		}
	}
	return false
}
