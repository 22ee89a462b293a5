package deploy

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Preview holds what passes write for an add-on on one cluster of which nothing exists yet.
type Preview struct {
	// AddOn is the add-on with its finalizers and its status after the first pass.
	AddOn *addonv1beta1.ManagedClusterAddOn
	// About are the properties of the agent that are the same for all clusters.
	About addon.About
	// Choice is the configuration of the add-on.
	Choice addon.Choice
	// Works are the works, those of the managed cluster before those of the hosting cluster, and deploy works before those
	// of pre-delete hooks.
	Works []PreviewWork
	// Bindings are the RoleBindings on the hub; one without a namespace is a ClusterRoleBinding. Pending is why they are
	// made later; empty when they are not.
	Bindings []*rbacv1.RoleBinding
	Pending  string
	// Remarks are sentences of the agent for the author of a configuration.
	Remarks []string
}

// PreviewWork is one work of a Preview.
type PreviewWork struct {
	works.Step
	// Side is the cluster that the work is for, and Purpose when it is there.
	Side    works.Side
	Purpose works.Purpose
}

// Preview observes and decides like a pass, and like one after the deletion of the add-on for its pre-delete hooks. It
// writes nothing. There must be no works and no RoleBindings of the add-on. The error is why the add-on would not be
// deployed; About and Choice are set even then where they are known.
func (r *Reconciler) Preview(ctx context.Context, key types.NamespacedName) (Preview, error) {
	f, err := r.observeAccess(ctx, key)
	if err == nil {
		f, err = r.observe(ctx, key, f)
	}
	switch {
	case err != nil:
		return Preview{}, err
	case !f.relevant:
		return Preview{}, fmt.Errorf("there is no add-on %s, no accepted cluster of it, or no agent", key)
	}
	p := decide(f)
	if f.withheld != nil {
		f.remarks = append(slices.Clone(f.remarks), message.Sentence(f.withheld.Error()))
	}
	result := Preview{
		About: f.about, Choice: f.configuration.Choice, Pending: p.pending, Remarks: f.remarks,
	}
	for _, unknown := range []error{f.configuration.Err, f.registrationsErr, f.setupErr, f.refused, p.worksErr} {
		if unknown != nil {
			return result, unknown
		}
	}
	result.AddOn = conclude(f, p, results{bindings: make([]error, len(p.bindings)), works: make([]error, len(p.works))})
	for _, step := range p.bindings {
		result.Bindings = append(result.Bindings, step.After)
	}
	steps := p.works
	if p.finalizers != nil {
		result.AddOn = p.guarded(result.AddOn)
		hooks, err := r.previewHooks(ctx, result.AddOn)
		if err != nil {
			return result, err
		}
		steps = slices.Concat(steps, hooks)
	}
	for _, purpose := range []works.Purpose{works.Deploy, works.PreDelete} {
		for _, side := range []works.Side{works.Managed, works.Hosting} {
			for _, step := range steps {
				if _, of := setOf(f, side, purpose).Index(step.After.Name); of {
					result.Works = append(result.Works, PreviewWork{Step: step, Side: side, Purpose: purpose})
				}
			}
		}
	}
	return result, nil
}

// previewHooks returns the steps that create the works of pre-delete hooks when the add-on is deleted.
func (r *Reconciler) previewHooks(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn) ([]workStep, error) {
	deleted := addOn.DeepCopy()
	deleted.DeletionTimestamp = &metav1.Time{Time: r.Clock.Now()}
	f, err := r.observeDeletion(ctx, deleted, nil)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(decideDeletion(f).works, func(step workStep) bool {
		if step.Verb != reconcile.Create {
			return true
		}
		for _, side := range []works.Side{works.Managed, works.Hosting} {
			if _, of := setOf(f.facts, side, works.PreDelete).Index(step.After.Name); of {
				return false
			}
		}
		return true
	}), nil
}
