package token

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
	tokens "github.com/spokelet/spokelet/internal/token"
)

// defaultWorkers is the default of Reconciler.Workers.
const defaultWorkers = 4

// Reconciler keeps the token infrastructure of add-ons.
type Reconciler struct {
	// Client reads clusters, ServiceAccounts, Roles and RoleBindings from a cache, and writes them. The cache needs to
	// contain only those with the labels of the infrastructure.
	Client client.Client
	// Live reads from the API server, which happens only when a name is taken or something may be lost.
	Live client.Reader
	// AddOns reads and writes add-ons.
	AddOns addonapi.Client
	// Clock is the clock of a pass.
	Clock clock.PassiveClock
	// Workers is how many add-ons are reconciled at the same time; zero means 4.
	Workers int
}

// Reconcile reconciles the token infrastructure of one add-on on one cluster.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	f, err := r.observe(ctx, r.Client, request.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	p := decide(f)
	if p.destroys() {
		// A cache may show an earlier add-on, driver or acceptance, and the tokens of a deleted ServiceAccount are void.
		if f, err = r.observe(ctx, r.Live, request.NamespacedName); err != nil {
			return ctrl.Result{}, err
		}
		p = decide(f)
	}
	done := r.act(ctx, f, p)
	return r.publish(ctx, f, p, done).And(outcomeOf(f, done)).And(reconcile.FromError(f.unknown)).Settle(f.now)
}

// facts are the inputs of a pass. The objects belong to the cache and must not be changed.
type facts struct {
	now time.Time
	// key is the namespace of the cluster and the name of the add-on.
	key types.NamespacedName
	// owners is the version in which owner references name add-ons.
	owners addonapi.Wire
	// addOn is nil when it does not exist, or is unknown.
	addOn *addonv1beta1.ManagedClusterAddOn
	// unknown is why the add-on could not be read, on a cluster that is not accepted; nil when it could.
	unknown error
	// accepted reports whether the hub accepts the cluster; false without a ManagedCluster.
	accepted bool
	// have are the existing objects with our labels, in the order of wanted; nil for a missing one.
	have []client.Object
	// foreign is why the namespace is not that of the cluster; nil when it is.
	foreign error
}

// observe reads the facts. A read error ends the pass, as nothing is deleted on a guess, but for one: on a cluster that
// is not accepted no add-on has an identity, whatever else the add-on says.
func (r *Reconciler) observe(ctx context.Context, reader client.Reader, key types.NamespacedName) (facts, error) {
	f := facts{now: r.Clock.Now(), key: key, owners: r.AddOns.Owners}
	cluster, err := reconcile.Get(ctx, reader, types.NamespacedName{Name: key.Namespace}, &clusterv1.ManagedCluster{})
	if err != nil {
		return facts{}, err
	}
	f.accepted = cluster != nil && cluster.Spec.HubAcceptsClient
	if f.addOn, err = r.AddOns.GetAddOnFrom(ctx, reader, key); !reconcile.ObjectGone(err) {
		f.unknown = err
	}
	if f.unknown != nil && f.accepted {
		return facts{}, f.unknown
	}
	for _, object := range wanted(key, nil, "") {
		there, err := reconcile.Get(ctx, reader, client.ObjectKeyFromObject(object), emptyLike(object))
		if err != nil {
			return facts{}, err
		}
		if there != nil && !labelled(there, key.Name) {
			there = nil
		}
		f.have = append(f.have, there)
	}
	namespace, err := reconcile.Get(ctx, reader, types.NamespacedName{Name: key.Namespace}, reconcile.Namespace())
	f.foreign = names.CheckNamespace(namespace, key.Namespace)
	return f, err
}

// step is the planned change of one object.
type step struct {
	reconcile.Step[client.Object]

	// blocked is why the step cannot be taken: its name belongs to an object of another client, or to one that is being
	// deleted.
	blocked error
}

// result is the result of a plan.
type result struct {
	// uid is that of the ServiceAccount; empty when it does not exist.
	uid types.UID
	// err joins the errors of all steps.
	err error
}

// takenError means that an object of another client has the name of one of ours.
type takenError struct{ object client.Object }

// Error names the object, with a remedy.
func (e *takenError) Error() string {
	return fmt.Sprintf("%s exists already and is not ours, so it is left alone; delete it, or hand it over by labelling "+
		"it %s=<name of the add-on> and %s=true", reconcile.Describe(e.object), tokens.LabelName, tokens.LabelInfrastructure)
}

// act runs the steps of a plan. The right to tokens is granted only after the ServiceAccount was found or made ours.
func (r *Reconciler) act(ctx context.Context, f facts, p plan) result {
	w := reconcile.Writer[client.Object]{Client: r.Client, Live: r.Live}
	w.Adopt = func(want, found client.Object) ([]reconcile.Step[client.Object], error) {
		s := towards(found, want, f.addOn)
		if s.blocked != nil {
			return nil, s.blocked
		}
		if s.Verb == reconcile.Replace {
			return nil, nil // The cache shows it soon, and then it is replaced.
		}
		if live, err := r.AddOns.SameAddOn(ctx, r.Live, f.addOn); err != nil || live == nil {
			return nil, err // It would get an owner that only the cache has.
		}
		return []reconcile.Step[client.Object]{s.Step}, nil
	}
	done := result{}
	var err error
	if done.uid, err = run(ctx, w, p.steps); err == nil {
		_, err = run(ctx, w, p.grants)
	} else if taken := (*takenError)(nil); errors.As(err, &taken) {
		_, failed := run(ctx, w, p.withdraw)
		err = errors.Join(err, failed)
	}
	done.err = err
	return done
}

// run runs steps, and returns the UID of the ServiceAccount if one of them is about it. One that fails does not keep
// the others from being run.
func run(ctx context.Context, w reconcile.Writer[client.Object], steps []step) (types.UID, error) {
	var uid types.UID
	var failed []error
	for _, s := range steps {
		if s.blocked != nil {
			failed = append(failed, s.blocked)
			continue
		}
		after, err := w.Run(ctx, s.Step)
		failed = append(failed, err)
		if account, isAccount := after.(*corev1.ServiceAccount); isAccount && err == nil {
			uid = account.UID
		}
	}
	return uid, errors.Join(failed...)
}

// publish writes the condition if it changed.
func (r *Reconciler) publish(ctx context.Context, f facts, p plan, done result) reconcile.Outcome {
	if f.addOn == nil {
		return reconcile.Done()
	}
	_, err := r.AddOns.PatchAddOnStatus(ctx, f.addOn, conclude(f, p, done))
	return reconcile.FromError(err)
}
