package rollout

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/hub/rollout/planner"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// observe reads the facts about a ClusterManagementAddOn; without one, facts has the members alone.
func (r *Reconciler) observe(ctx context.Context, name string, now time.Time) (facts, error) {
	f := facts{now: now}
	cma, err := r.AddOns.GetClusterManagementAddOn(ctx, name)
	if client.IgnoreNotFound(err) != nil {
		return f, err
	}
	if f.members, err = r.readMembers(ctx, name, now); err != nil {
		return f, err
	}
	if cma == nil {
		r.Store.Want(name)
		return f, nil
	}
	f.cma = cma
	configs := slices.Clone(cma.Spec.DefaultConfigs)
	for _, placement := range addonconfig.PlacementsOf(cma) {
		configs = append(configs, placement.Configs...)
		decisions, err := r.Placements.Decisions(ctx, types.NamespacedName(placement.PlacementRef))
		if err != nil {
			return f, err
		}
		f.placements = append(f.placements, decisions)
	}
	noDefault := func(c addonv1beta1.AddOnConfig) bool { return !addonapi.HasDefault(c) }
	named := []addonconfig.Named{{Configs: slices.DeleteFunc(slices.Clone(configs), noDefault)}}
	for _, m := range f.members {
		configs = append(configs, m.configs...)
		if supported := m.supportedConfigs(); len(supported) > 0 {
			named = append(named, addonconfig.Named{Cluster: m.cluster, Configs: supported})
		}
	}
	slices.SortFunc(named, func(a, b addonconfig.Named) int { return strings.Compare(a.Cluster, b.Cluster) })
	if f.served, err = r.served(ctx, f); err != nil {
		return f, err
	}
	configs = slices.DeleteFunc(configs, noDefault)
	r.Store.Want(name, named...)
	if f.states, err = r.Store.States(ctx, configs...); err != nil {
		return f, err
	}
	before, _ := r.decided.Get(name)
	f.admitted, f.ways = before.admissions, before.ways
	return f, r.observeGate(ctx, name, &f)
}

// observeGate reads the gate of an add-on, and what it needs to know of the clusters.
func (r *Reconciler) observeGate(ctx context.Context, name string, f *facts) error {
	var err error
	if f.gate, err = r.Gates.Gate(ctx, name); err != nil {
		return err
	}
	if err = r.observeUndo(ctx, name, f); err != nil || !f.gate.HasWindows() && !f.gate.Depends() {
		return err
	}
	f.clusters = map[string]gate.Cluster{}
	has := f.has()
	for cluster, m := range f.members {
		if !f.gate.Undoes() && has(m) { // It has nothing to begin.
			continue
		}
		if f.clusters[cluster], err = r.Gates.On(ctx, f.gate, cluster); err != nil {
			return err
		}
	}
	return nil
}

// observeUndo finds out which contents cannot be given again.
func (r *Reconciler) observeUndo(ctx context.Context, name string, f *facts) error {
	if !f.gate.Undoes() {
		return nil
	}
	f.lacks = map[string]string{}
	for index := range f.placements {
		u := f.undoing(index)
		if len(u.how.Completed) == 0 {
			continue
		}
		lacks, err := r.Store.Lacks(ctx, name, addonconfig.Return{From: u.from, How: u.how, To: u.how.Completed[0]})
		if err != nil {
			return err
		}
		if lacks != "" {
			f.lacks[u.placement] = lacks
		}
	}
	return nil
}

// has returns whether a member is known to have what it is to have. Of one with configurations of its own, or whose
// placement is not known, that is not known.
func (f facts) has() func(*member) bool {
	common := make([]addonconfig.Target, len(f.placements))
	for index := range f.placements {
		common[index] = f.target(&addonv1beta1.ManagedClusterAddOn{}, index)
	}
	return func(m *member) bool {
		if len(m.configs) > 0 || len(m.references) == 0 {
			return false
		}
		for index, placement := range slices.Backward(f.placements) {
			if placement.Selects(m.cluster) {
				return len(common[index].Waiting) == 0 && addonconfig.SameDesired(m.references, common[index].References)
			}
		}
		return false
	}
}

// served returns those of the selected clusters without an add-on that will get it.
func (r *Reconciler) served(ctx context.Context, f facts) (map[string]bool, error) {
	served := map[string]bool{}
	for _, placement := range f.placements {
		for _, name := range placement.Names {
			if m := f.members[name]; m != nil && !m.deleting {
				continue
			}
			key := types.NamespacedName{Name: name}
			cluster, err := reconcile.Peek(ctx, r.Client, key, &clusterv1.ManagedCluster{})
			if decode.IsUnknown(err) {
				continue // Nothing is installed there meanwhile.
			}
			if err != nil {
				return nil, err
			}
			namespace, err := reconcile.Peek(ctx, r.Client, key, reconcile.Namespace())
			if err != nil {
				return nil, err
			}
			_, unserved := fleet.Unserved(name, cluster, namespace)
			served[name] = unserved == nil
		}
	}
	return served, nil
}

// readMembers returns the add-ons of a ClusterManagementAddOn by cluster.
func (r *Reconciler) readMembers(ctx context.Context, name string, now time.Time) (map[string]*member, error) {
	var like *member
	see := func(addOn *addonv1beta1.ManagedClusterAddOn, before *member) *member {
		like = newMember(addOn, cmp.Or(like, before)).saw(before, now)
		return like
	}
	members, _, err := r.members.Read(ctx, r.AddOns, name, see)
	return members, err
}

// World holds what a pass knows about a ClusterManagementAddOn.
type World struct {
	Now time.Time
	CMA *addonv1beta1.ClusterManagementAddOn
	// Placements are what the placements of the install strategy have decided, in its order.
	Placements []*fleet.Decisions
	AddOns     []*addonv1beta1.ManagedClusterAddOn
	States     addonconfig.States
	// Served are those of the selected clusters without an add-on that will get it.
	Served map[string]bool
	// Gate says whether clusters may begin to change, and Clusters is what it knows of them.
	Gate     gate.Gate
	Clusters map[string]gate.Cluster
}

// Rehearsed is what a rehearsal decides beside the admissions.
type Rehearsed struct {
	// Placements are the decisions for the placements, in their order.
	Placements []planner.Result
	// Policy is the policy of the gate with its next status; nil without one.
	Policy *policies.AddOnPolicy
	// Wake is when time alone may change the decision; zero for never.
	Wake time.Time
}

// Rehearse does the pass of a reconciler that has no clients: it plans, and remembers what the next pass and Admission
// need.
func (r *Reconciler) Rehearse(w World) Rehearsed {
	name, members := w.CMA.Name, make(map[string]*member, len(w.AddOns))
	for _, addOn := range w.AddOns {
		members[addOn.Namespace] = newMember(addOn, nil).saw(r.members.Known(addOn), w.Now)
	}
	r.members.Keep(name, members)
	before, _ := r.decided.Get(name)
	f := facts{
		now: w.Now, cma: w.CMA, placements: w.Placements, members: members, states: w.States, served: w.Served,
		admitted: before.admissions, ways: before.ways, gate: w.Gate, clusters: w.Clusters,
	}
	p := decide(f)
	r.remember(name, p)
	said := Rehearsed{Placements: p.placements, Wake: p.wake}
	if policy := w.Gate.Policy(); policy != nil {
		said.Policy = f.concludePolicy(policy, p)
	}
	return said
}
