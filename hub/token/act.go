package token

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/reconcile"
	tokens "github.com/spokelet/spokelet/internal/token"
)

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
