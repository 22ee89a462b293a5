// Package badagent has the ways in which the agent of one cluster can misbehave with the rights that it has. The suite
// onebadcluster counts what they cost the other clusters, and the benchmark badcluster measures it.
package badagent

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/lease"
)

// AddOn is the add-on that all clusters have, and Work the ManifestWork of it.
const (
	AddOn = "hello"
	Work  = "addon-" + AddOn + "-deploy-0"
)

//go:embed addon.yaml
var addOn []byte

// Manifests returns the objects of the add-on.
func Manifests() []byte { return addOn }

// Agent is the agent of a cluster.
type Agent struct {
	// Client has the rights of the agent.
	client.Client
	// Reader reads what the agent knows without asking.
	Reader client.Reader
	// Cluster is the name of its cluster.
	Cluster string
}

// Ready returns an error as long as the agent does not have its rights.
func (a Agent) Ready(ctx context.Context) error {
	theLease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: a.Cluster, Name: lease.ClusterLease}}
	for _, o := range []client.Object{a.ManagedCluster(), theLease, a.work()} {
		if err := a.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return fmt.Errorf("reading as the agent: %w", err)
		}
	}
	return nil
}

// Misdeed is one way to misbehave.
type Misdeed struct {
	// Name says what the agent does.
	Name string
	// Does is done again and again, with the number of the attempt.
	Does func(ctx context.Context, a Agent, n int) error
	// Refused reports whether the API server refuses it. What it does not refuse, the hub manager bears.
	Refused bool
}

// Misdeeds returns all of them.
func Misdeeds() []Misdeed {
	return []Misdeed{
		{Name: "thousands of claims", Refused: true, Does: claimsOf(5000)},
		{Name: "claims that change with each write", Does: claimsOf(400)},
		{Name: "a huge status", Refused: true, Does: func(ctx context.Context, a Agent, n int) error {
			return patch(ctx, a, a.ManagedCluster(), func(o *clusterv1.ManagedCluster) {
				for i := range 5 {
					set(&o.Status.Conditions, fmt.Sprintf("Huge%d", i), n, strings.Repeat("x", 30000))
				}
			})
		}},
		{Name: "huge feedback that changes", Does: func(ctx context.Context, a Agent, n int) error {
			return patch(ctx, a, a.work(), func(o *workv1.ManifestWork) { o.Status.ResourceStatus.Manifests = feedback(n) })
		}},
		{Name: "conditions of the cluster that flip", Does: func(ctx context.Context, a Agent, n int) error {
			return patch(ctx, a, a.ManagedCluster(), func(o *clusterv1.ManagedCluster) {
				set(&o.Status.Conditions, clusterv1.ManagedClusterConditionAvailable, n, "flips")
			})
		}},
		{Name: "conditions of an add-on that flip", Does: func(ctx context.Context, a Agent, n int) error {
			o := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: a.Cluster, Name: AddOn}}
			return patch(ctx, a, o, func(o *addonv1alpha1.ManagedClusterAddOn) {
				set(&o.Status.Conditions, addonv1alpha1.ManagedClusterAddOnConditionAvailable, n, "flips")
			})
		}},
		{Name: "a work that is applied and not, by turns", Does: func(ctx context.Context, a Agent, n int) error {
			return patch(ctx, a, a.work(), func(o *workv1.ManifestWork) {
				set(&o.Status.Conditions, workv1.WorkApplied, n, "flips")
			})
		}},
		{Name: "leases from the future", Does: leaseFromTheFuture},
		{Name: "certificate requests in a loop", Does: requestCertificate},
	}
}

func leaseFromTheFuture(ctx context.Context, a Agent, n int) error {
	o := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: a.Cluster, Name: lease.ClusterLease}}
	if err := a.Reader.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return err // the caller looks at the answer
	}
	o.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(time.Duration(n+1) * time.Hour)}
	return a.Update(ctx, o) // likewise
}

func requestCertificate(ctx context.Context, a Agent, _ int) error {
	key, err := csr.NewKey()
	if err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	request, err := csr.ForCluster(a.Cluster, "agent").Build(key)
	if err != nil {
		return fmt.Errorf("building a request: %w", err)
	}
	return a.Create(ctx, request) // the caller looks at the answer
}

// claimsOf writes a number of claims whose values change.
func claimsOf(count int) func(context.Context, Agent, int) error {
	return func(ctx context.Context, a Agent, n int) error {
		all := make([]clusterv1.ManagedClusterClaim, count)
		for i := range all {
			all[i] = clusterv1.ManagedClusterClaim{Name: fmt.Sprintf("claim-%d", i), Value: fmt.Sprint(n)}
		}
		return patch(ctx, a, a.ManagedCluster(), func(o *clusterv1.ManagedCluster) { o.Status.ClusterClaims = all })
	}
}

// ManagedCluster returns the ManagedCluster of the agent, to be read.
func (a Agent) ManagedCluster() *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: a.Cluster}}
}

func (a Agent) work() *workv1.ManifestWork {
	return &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: a.Cluster, Name: Work}}
}

// set turns a condition on and off by turns.
func set(conditions *[]metav1.Condition, kind string, n int, message string) {
	status := metav1.ConditionTrue
	if n%2 == 1 {
		status = metav1.ConditionFalse
	}
	meta.SetStatusCondition(conditions, metav1.Condition{Type: kind, Status: status, Reason: "Storm", Message: message})
}

// feedback holds what an agent feeds back of one object: 100 texts of a kilobyte.
func feedback(n int) []workv1.ManifestCondition {
	var values []workv1.FeedbackValue
	for i := range 100 {
		text := fmt.Sprint(n) + strings.Repeat("x", 1000)
		values = append(values, workv1.FeedbackValue{
			Name: fmt.Sprintf("v%d", i), Value: workv1.FieldValue{Type: workv1.String, String: &text},
		})
	}
	return []workv1.ManifestCondition{{
		ResourceMeta:    workv1.ManifestResourceMeta{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Name: "agent"},
		StatusFeedbacks: workv1.StatusFeedbackResult{Values: values}, Conditions: []metav1.Condition{},
	}}
}

// patch writes the difference of a status.
func patch[T client.Object](ctx context.Context, a Agent, o T, change func(T)) error {
	if err := a.Reader.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return fmt.Errorf("reading: %w", err)
	}
	before, isObject := o.DeepCopyObject().(client.Object)
	if !isObject {
		return fmt.Errorf("%T is not an object", o)
	}
	change(o)
	return a.Status().Patch(ctx, o, client.MergeFrom(before)) // the caller looks at the answer
}
