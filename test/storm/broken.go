package storm

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

const (
	// copyTime is how long works have before the hub goes, so that there are copies of them.
	copyTime = 5 * time.Second
	// goingPatience is how long the controllers of the cluster may take to remove a namespace. After an outage of the API
	// server they watch namespaces again only after a pause, which grows to a minute.
	goingPatience = 2 * time.Minute
	// awayPatience is how long a namespace that is gone may take to come back with its content while the hub is away. A
	// restarted agent waits ten seconds for the hub.
	awayPatience = 45 * time.Second
)

// typingError holds what is wrong with a manifest.
type typingError string

const (
	noNamespace  typingError = "its namespace is missing"
	wrongGroup   typingError = "its group is wrong"
	wrongVersion typingError = "its version is wrong"
	noVersion    typingError = "its version is missing"
)

// spoil puts a typing error into a manifest.
func (e typingError) spoil(manifest map[string]any) {
	apiVersion, _ := manifest["apiVersion"].(string)
	group, version, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		group, version = "", apiVersion
	}
	switch e {
	case noNamespace:
		metadata, _ := manifest["metadata"].(map[string]any)
		delete(metadata, "namespace")
	case wrongGroup:
		manifest["apiVersion"] = "typo" + group + "/" + version
	case wrongVersion:
		manifest["apiVersion"] = apiVersion + "1"
	case noVersion:
		manifest["apiVersion"] = strings.TrimSuffix(apiVersion, "/"+version)
	}
}

// spoiled is the work as it is to be on the hub, but with a typing error in the manifest of one object.
func (w *work) spoiled(t *thing, wrong typingError) writing {
	broken := w.write()
	for i, one := range w.things {
		if one == t {
			object := t.manifest(t.revision)
			wrong.spoil(object)
			broken.spec.Workload.Manifests[i].Raw, _ = json.Marshal(object)
		}
	}
	return broken
}

// breakManifest writes a work with a typing error in a manifest, and then without.
func (m *Model) breakManifest() *Edit {
	w, ok := pick(m, m.works, exists)
	if !ok {
		return nil
	}
	t, ok := pick(m, w.things, func(t *thing) bool {
		// The others may go for a reason of their own: because their namespace or their definition does.
		return t.writes() && !t.byHand && t.home == nil && t.kind != widget && t.kind != gadget
	})
	if !ok {
		return nil
	}
	wrong, _ := pick(m, []typingError{noNamespace, wrongGroup, wrongVersion, noVersion}, func(e typingError) bool {
		return (e != noNamespace || t.namespace != "") && (e != noVersion || strings.Contains(t.kind.gvk().Group, "."))
	})
	return &Edit{
		Action: breakManifest, Work: w.name, thing: t, Note: string(wrong),
		writes: []writing{w.spoiled(t, wrong), w.write()},
	}
}

// loseNamespace deletes a namespace that a work makes while the hub is away and the agent was restarted.
func (m *Model) loseNamespace() *Edit {
	t, ok := pick(m, m.things, func(t *thing) bool { return t.kind == namespace && m.written(t) && !m.blocked(t) })
	if !ok {
		return nil
	}
	m.lost(t, gone)
	e := &Edit{Action: loseNamespace, Work: m.holders(t)[0].name, thing: t}
	for _, c := range m.children(t) {
		if m.written(c) && c.kind != widget {
			e.things = append(e.things, c)
		}
	}
	return e
}

// steady returns the UID of an object that no other edit is about to take away; empty when one may be. A work that is
// gone takes what its record alone owns, also when another work has the object and orphans it.
func (s *storm) steady(ctx context.Context, t *thing) types.UID {
	for _, w := range s.model.holders(t) {
		if s.excused[w.name] {
			return ""
		}
	}
	live, err := s.get(ctx, t)
	if err != nil || live == nil || live.GetDeletionTimestamp() != nil || !s.settled(ctx, t) {
		return ""
	}
	for _, owner := range live.GetOwnerReferences() {
		if !slices.ContainsFunc(s.model.holders(t), func(w *work) bool {
			return w.owns(t) && strings.HasSuffix(owner.Name, "-"+w.name)
		}) {
			return ""
		}
	}
	return live.GetUID()
}

// violate notes that something is wrong right after an edit.
func (s *storm) violate(e *Edit, what string) {
	s.report.Violations = append(s.report.Violations,
		fmt.Sprintf("seed %d, edit %d: %s: %s\n%s", s.Seed, e.Number, e.thing, what, s.latest(e.thing.String())))
}

// breakManifest writes a work with a typing error and waits until the agent has seen it: the object must stay.
func (s *storm) breakManifest(ctx context.Context, e *Edit) error {
	uid := s.steady(ctx, e.thing)
	if err := s.writeWork(ctx, &e.writes[0]); err != nil {
		return err
	}
	if uid == "" || !s.refused(ctx, e.Work) {
		s.report.Missed++
	} else if live, err := s.get(ctx, e.thing); err == nil {
		if live == nil || live.GetUID() != uid || live.GetDeletionTimestamp() != nil {
			s.violate(e, "it was deleted, although a manifest with a typing error may mean it")
		}
	}
	return s.writeWork(ctx, &e.writes[1])
}

// refused waits until the agent reports that a manifest of a work cannot be applied.
func (s *storm) refused(ctx context.Context, name string) bool {
	short, cancel := context.WithTimeout(ctx, leavePatience)
	defer cancel()
	return fleet.Wait(short, name, nil, func(ctx context.Context) error {
		live := &workv1.ManifestWork{}
		if err := s.hub.Get(ctx, types.NamespacedName{Namespace: clusterName, Name: name}, live); err != nil {
			return err
		}
		applied := meta.FindStatusCondition(live.Status.Conditions, workv1.WorkApplied)
		if applied == nil || applied.Status != metav1.ConditionFalse || applied.ObservedGeneration != live.Generation {
			return fleet.NotYet("it is not refused")
		}
		return nil
	}) == nil
}

// loseNamespace deletes a namespace behind the back of a hub that is away: it must come back with its content before
// the hub does.
func (s *storm) loseNamespace(ctx context.Context, e *Edit) error {
	s.awaitReturns(ctx)
	before := map[*thing]types.UID{}
	for _, t := range e.things {
		if uid := s.steady(ctx, t); uid != "" {
			before[t] = uid
		}
	}
	if before[e.thing] == "" {
		s.report.Missed++
		return s.byHand(ctx, &Edit{Action: deleteObject, thing: e.thing})
	}
	timer := time.NewTimer(copyTime)
	defer timer.Stop()
	<-timer.C
	s.fleet.Link.Cut()
	defer s.fleet.Link.Mend()
	s.cluster.Agent.Kill()
	if err := s.cluster.Agent.Start(); err != nil {
		return err
	}
	if err := s.byHand(ctx, &Edit{Action: deleteObject, thing: e.thing}); err != nil {
		return err
	}
	// As long as the namespace is going, its controller is at work and the agent can make nothing.
	if err := s.renewed(ctx, goingPatience, map[*thing]types.UID{e.thing: before[e.thing]}, true); err != nil {
		return err
	}
	if err := s.renewed(ctx, awayPatience, before, false); err != nil {
		s.violate(e, err.Error())
	}
	return nil
}

// renewed waits until none of the objects has its former UID; each must be there with another one unless it may be
// gone.
func (s *storm) renewed(
	ctx context.Context, patience time.Duration, before map[*thing]types.UID, mayBeGone bool,
) error {
	short, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return fleet.Wait(short, "what was lost without the hub to be made again", nil, func(ctx context.Context) error {
		for t, uid := range before {
			live, err := s.get(ctx, t)
			switch {
			case err != nil:
				return err
			case live == nil && mayBeGone:
			case live == nil || live.GetUID() == uid || live.GetDeletionTimestamp() != nil:
				return fleet.NotYet("%s is not", t)
			}
		}
		return nil
	})
}
