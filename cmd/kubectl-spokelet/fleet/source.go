package fleet

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/intern"
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

// ResourceOf returns the resource of a kind of object. The version of the add-on API is chosen by the source, which
// knows what the hub serves.
func ResourceOf[T object]() Resource {
	var zero T
	switch any(zero).(type) {
	case Cluster:
		return Resource{Group: clusterv1.GroupName, Version: "v1", Plural: "managedclusters"}
	case AddOn:
		return Resource{Group: addonv1beta1.GroupName, Plural: "managedclusteraddons", Namespaced: true}
	case Definition:
		return Resource{Group: addonv1beta1.GroupName, Plural: "clustermanagementaddons"}
	case Placement:
		return Resource{Group: clusterv1.GroupName, Version: "v1beta1", Plural: "placements", Namespaced: true}
	case Decision:
		return Resource{Group: clusterv1.GroupName, Version: "v1beta1", Plural: "placementdecisions", Namespaced: true}
	case Work:
		return Resource{Group: workv1.GroupName, Version: "v1", Plural: "manifestworks", Namespaced: true}
	case Policy:
		return policyResource("addonpolicies")
	case Window:
		return policyResource("maintenancewindows")
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
	// Selector is a selector of labels in words; empty means any.
	Selector string
	// Fields are fields by their path, as the API server selects by for this resource.
	Fields map[string]string
	// Partial asks for the metadata alone: nothing else of the objects leaves the API server.
	Partial bool
	// Whole asks for all objects in one page.
	Whole bool
}

// Source gives the objects of a fleet as pages of JSON lists.
type Source interface {
	// Pages returns the pages of a list. It ends with the first error, which is an APIStatus where the API server
	// answered one. That is "410 Expired" where a list took longer than an API server keeps its state: it has to begin
	// again.
	Pages(ctx context.Context, q Query) iter.Seq2[[]byte, error]
	// Version returns the version of Kubernetes of the hub.
	Version(ctx context.Context) (string, error)
	// Name is the address of the hub, or the name of the bundle.
	Name() string
}

// Reader reads objects and collects what it may not read.
type Reader struct {
	Source Source
	Gaps   []Gap
	// Cluster reports that the source is a managed cluster and not a hub.
	Cluster bool
	// Progress is called with how many objects a page had; nil for none.
	Progress func(resource string, objects int)
}

var (
	// ErrUnreachable is in errors of a Reader whose source does not answer.
	ErrUnreachable = errors.New("the hub does not answer")
	// ErrRefused is in errors of a Reader whose source does not accept the credential of the user.
	ErrRefused = errors.New("the hub does not accept your credential")
	// ErrClusterUnreachable is in errors of a Reader of a managed cluster that does not answer.
	ErrClusterUnreachable = errors.New("the managed cluster does not answer")
	// ErrClusterRefused is in errors of a Reader of a managed cluster that does not accept the credential of the user.
	ErrClusterRefused = errors.New("the managed cluster does not accept your credential")
)

// List reads the objects of a query. What may not be read, is not served, or cannot be decoded is a gap; the
// error is that of a source that does not answer.
func List[T object](ctx context.Context, r *Reader, q Query) ([]T, error) {
	q.Resource = ResourceOf[T]()
	return Read[T](ctx, r, q)
}

// Read is List for objects of any type and a resource that the query names.
func Read[T any](ctx context.Context, r *Reader, q Query) ([]T, error) {
	var all []T
	texts := &intern.Table{}
	_, err := r.each(ctx, q, func() { all = nil }, func(page []byte) error {
		decoded, err := decode[T](r, q, page)
		if err != nil {
			return err
		}
		for i := range decoded {
			if object, is := any(&decoded[i]).(shares); is {
				object.share(texts)
			}
		}
		all = append(all, decoded...)
		if r.Progress != nil {
			r.Progress(q.Resource.Plural, len(decoded))
		}
		return nil
	})
	return all, err
}

// each gives the pages of a query to a receiver, and reports whether it got all. begin is called before the first one,
// and once more where the list begins again. What cannot be read is a gap.
func (r *Reader) each(ctx context.Context, q Query, begin func(), receive func(page []byte) error) (bool, error) {
	begin()
	for page, err := range r.Source.Pages(ctx, q) {
		switch {
		case isExpired(err) && !q.Whole: // One page is of one instant, however long it takes.
			q.Whole = true
			return r.each(ctx, q, begin, receive)
		case err != nil:
			return false, r.fail(q, err)
		}
		if err := receive(page); err != nil {
			return false, err
		}
	}
	return true, nil
}

// isExpired reports whether the state has gone that a request is about.
func isExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

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
	gap := Gap{What: where, Why: err.Error(), Cluster: r.Cluster}
	switch {
	case apierrors.IsForbidden(err):
		gap.Rule = rule(q, "list")
	case apierrors.IsNotFound(err):
		gap.Missing, gap.Why = true, "the hub does not serve it"
		if r.Cluster {
			gap.Why = "the cluster does not serve it"
		}
	default:
		return fmt.Errorf("reading %s: %w: %w", where, unanswered(err, r.Cluster), err)
	}
	r.note(gap)
	return nil
}

// unanswered says of a request without an answer whose fault that is.
func unanswered(err error, cluster bool) error {
	switch refused := apierrors.IsUnauthorized(err); {
	case refused && cluster:
		return ErrClusterRefused
	case refused:
		return ErrRefused
	case cluster:
		return ErrClusterUnreachable
	}
	return ErrUnreachable
}

// note adds a gap that is not there yet.
func (r *Reader) note(gap Gap) {
	same := func(g Gap) bool { return g.What == gap.What && g.Rule == gap.Rule && len(g.Objects) == 0 }
	if !slices.ContainsFunc(r.Gaps, same) {
		r.Gaps = append(r.Gaps, gap)
	}
}

// rule is the rule of RBAC that lets a user read what a query asks for. The rule for a Secret names it.
func rule(q Query, verb string) string {
	named := ""
	if q.Resource == Secrets() && q.Name != "" {
		named = fmt.Sprintf(", resourceNames: [%s]", q.Name)
	}
	of := q.Resource
	return fmt.Sprintf(`{apiGroups: [%q], resources: [%s]%s, verbs: [%s]}`, of.Group, of.Plural, named, verb)
}
