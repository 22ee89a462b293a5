package configure

import (
	"context"
	"maps"
	"regexp"

	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/kept"
)

// awaiting are the add-ons of which it is in doubt which Placement selects their cluster, with those Placements. What a
// Placement decides last is its status, which concerns no other add-ons.
type awaiting struct {
	kept.Map[types.NamespacedName, doubts]
}

// doubts are Placements with the kind of reason why they are in doubt, which a user reads.
type doubts map[types.NamespacedName]string

// varying is what each page changes in a reason: numbers, and lists of pages. It is not another reason: all add-ons of
// a fleet may await the pages of one decision.
var varying = regexp.MustCompile(`\[[^\]]*\]|[0-9]+`)

func kindOf(why error) string { return varying.ReplaceAllString(why.Error(), "") }

// note remembers the Placements that an add-on awaits; none forgets it. A nil receiver remembers nothing.
func (a *awaiting) note(addOn types.NamespacedName, placements doubts) {
	if a == nil {
		return
	}
	a.Change(addOn, func(doubts) (doubts, bool) { return placements, len(placements) > 0 })
}

// take returns the add-ons that await a Placement, but for those that were told why it is still in doubt, and forgets
// them: the next pass of one notes what it still awaits.
func (a *awaiting) take(placement types.NamespacedName, why string) []ctrl.Request {
	var all []ctrl.Request
	for _, addOn := range a.Take(func(_ types.NamespacedName, placements doubts) bool {
		told, awaits := placements[placement]
		return awaits && told != why
	}) {
		all = append(all, ctrl.Request{NamespacedName: addOn})
	}
	return all
}

// awaited reports whether an add-on awaits a Placement.
func (a *awaiting) awaited(placement types.NamespacedName) (is bool) {
	a.Each(func(_ types.NamespacedName, placements doubts) {
		_, awaits := placements[placement]
		is = is || awaits
	})
	return is
}

// owner returns which of the listed placements the cluster of an add-on belongs to. If awaits is set, an add-on that is
// in doubt is noted before the answer is read that counts, so that no later event is missed.
func (c *Configurer) owner(
	ctx context.Context, addOn types.NamespacedName, placements []types.NamespacedName, awaits bool,
) (fleet.Owner, error) {
	switch {
	case len(placements) == 0:
		if awaits {
			c.awaiting.note(addOn, nil)
		}
		return fleet.Owner{Index: -1}, nil
	case !awaits || c.awaiting == nil:
		return c.Placements.Owner(ctx, placements, addOn.Namespace)
	}
	var noted doubts
	for {
		owner, err := c.Placements.Owner(ctx, placements, addOn.Namespace)
		if err != nil {
			return owner, err
		}
		doubted := doubts{}
		for _, doubt := range owner.Doubts {
			doubted[placements[doubt.Index]] = kindOf(doubt.Why)
		}
		if maps.Equal(noted, doubted) {
			c.awaiting.note(addOn, doubted)
			return owner, nil
		}
		noted = doubted
		c.awaiting.note(addOn, noted)
	}
}

// wakesAwaiting enqueues the add-ons that await the Placement of an object as soon as its decisions are certain, or in
// doubt for another reason.
func (c *Configurer) wakesAwaiting(placementOf func(client.Object) types.NamespacedName) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []ctrl.Request {
		key := placementOf(o)
		if !c.awaiting.awaited(key) {
			return nil
		}
		d, err := c.Placements.Decisions(ctx, key)
		if err != nil {
			log.FromContext(ctx).Error(err, "finding out whether a placement has decided", "placement", key)
			return c.awaiting.take(key, "")
		}
		if _, uncertain := d.Uncertain(c.Placements.Clock.Now()); uncertain != nil {
			return c.awaiting.take(key, kindOf(uncertain))
		}
		return c.awaiting.take(key, "")
	})
}

// placementOfDecision returns the key of the Placement that a PlacementDecision belongs to.
func placementOfDecision(o client.Object) types.NamespacedName {
	decision, is := o.(*clusterv1beta1.PlacementDecision)
	if !is {
		return types.NamespacedName{}
	}
	return types.NamespacedName(addonapi.PlacementOf(decision))
}
