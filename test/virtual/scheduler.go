package virtual

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
)

const (
	// pageOf is how many clusters a page of another scheduler has.
	pageOf = 4
	// away is how long it may be ended in the middle of what it writes.
	away = 3 * time.Minute
	// refused is how long it may be unable to write the decisions of a Placement that it has never decided.
	refused = 40 * time.Minute
)

// scheduler plays another program that schedules Placements, as OCM does: it makes an empty page, writes its decisions,
// does so with the next one, deletes those that are too many, and writes the status of the Placement in the end.
// Between two of these requests it takes its time, or is ended for a while and begins again. Now and then what it
// writes for a new Placement is refused when it has made the first page, as a quota or a webhook does.
type scheduler struct {
	*World

	mu     sync.Mutex
	random *rand.Rand
	wake   chan struct{}
	// held is until when it does not run, and refused until when it cannot write the decisions of a new Placement.
	held    time.Time
	refused map[types.UID]time.Time
	// refuses reports whether the decisions of the next new Placement are refused anyway.
	refuses bool
}

// hold ends the scheduler for a while.
func (s *scheduler) hold(pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rested() {
		s.held = time.Now().Add(pause)
	}
}

// rested reports whether the scheduler was not ended for a while: it is replaced within five minutes, and works then.
func (s *scheduler) rested() bool { return time.Since(s.held) > 5*time.Minute }

func newScheduler(w *World, seed uint64) *scheduler {
	return &scheduler{
		World: w, random: rand.New(rand.NewPCG(seed, 14)), wake: make(chan struct{}, 1), refused: map[types.UID]time.Time{},
	}
}

// mend lets it write all decisions.
func (s *scheduler) mend() {
	s.mu.Lock()
	clear(s.refused)
	s.mu.Unlock()
	s.look()
}

// refuseNext has the decisions of the next new Placement refused.
func (s *scheduler) refuseNext() {
	s.mu.Lock()
	s.refuses = true
	s.mu.Unlock()
}

// isRefused reports whether it cannot write the decisions of a Placement. It draws that for one that it is about to
// decide for the first time.
func (s *scheduler) isRefused(placement *clusterv1beta1.Placement, isNew bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if isNew && len(placement.Status.Conditions) == 0 && (s.refuses || s.random.IntN(4) == 0) {
		s.refuses = false
		most := time.Duration(s.random.Int64N(int64(refused)))
		s.refused[placement.UID] = time.Now().Add(most)
		s.options.Log.Info("the other scheduler cannot decide", "placement", placement.Name, "for", most)
		time.AfterFunc(most, s.look)
	}
	return time.Now().Before(s.refused[placement.UID])
}

func (s *scheduler) start() {
	go follow(s.ctx, s.admin, &clusterv1.ManagedClusterList{},
		func(watch.EventType, *clusterv1.ManagedCluster) { s.look() })
	go follow(s.ctx, s.admin, &clusterv1beta1.PlacementList{},
		func(watch.EventType, *clusterv1beta1.Placement) { s.look() })
	go follow(s.ctx, s.admin, &clusterv1beta1.PlacementDecisionList{},
		func(kind watch.EventType, _ *clusterv1beta1.PlacementDecision) {
			if kind == watch.Deleted {
				s.look()
			}
		})
	go s.run()
}

// look asks for a pass.
func (s *scheduler) look() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// pause lets time pass between two requests, and reports whether the program was ended.
func (s *scheduler) pause(ctx context.Context) (ended bool) {
	s.mu.Lock()
	took := time.Duration(s.random.Int64N(int64(time.Second)))
	if s.random.IntN(15) == 0 && s.rested() {
		s.held = time.Now().Add(time.Duration(s.random.Int64N(int64(away))))
	}
	if held := time.Until(s.held); held > 0 {
		took, ended = held, true
		s.options.Log.Info("the other scheduler is ended", "for", held)
	}
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		return true
	case <-time.After(took):
		return ended
	}
}

// run decides whenever something changed, and again after an error or an end.
func (s *scheduler) run() {
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.wake:
		}
		s.pause(s.ctx)
		for i := range s.options.AddOns {
			if name := addOnName(i); kindOf(name) == foreign {
				if over, err := s.decide(s.ctx, name); err != nil || !over {
					s.look()
				}
			}
		}
	}
}

// decide writes the decisions of a Placement. It reports whether it came to its end.
func (s *scheduler) decide(ctx context.Context, name string) (bool, error) {
	var placement clusterv1beta1.Placement
	if err := s.admin.Get(ctx, client.ObjectKey{Namespace: space, Name: name}, &placement); err != nil {
		return true, client.IgnoreNotFound(err)
	}
	if placement.DeletionTimestamp != nil || s.isRefused(&placement, false) {
		return true, nil
	}
	selected, err := s.selected(ctx, &placement)
	if err != nil {
		return false, err
	}
	groups := slices.Collect(slices.Chunk(selected, pageOf))
	if len(groups) == 0 {
		groups = [][]string{nil}
	}
	for i, clusters := range groups {
		if over, err := s.writePage(ctx, &placement, i, clusters); err != nil || !over {
			return false, err
		}
	}
	var pages clusterv1beta1.PlacementDecisionList
	if err := s.admin.List(ctx, &pages, client.InNamespace(space), client.MatchingLabels{
		clusterv1beta1.PlacementLabel: name,
	}); err != nil {
		return false, fmt.Errorf("listing the pages of %s: %w", name, err)
	}
	placement.Status.NumberOfSelectedClusters, placement.Status.DecisionGroups = int32(len(selected)), nil
	for i, clusters := range groups {
		placement.Status.DecisionGroups = append(placement.Status.DecisionGroups, clusterv1beta1.DecisionGroupStatus{
			DecisionGroupIndex: int32(i), Decisions: []string{pageName(name, i)}, ClustersCount: int32(len(clusters)),
		})
	}
	for i := range pages.Items {
		wanted := slices.ContainsFunc(placement.Status.DecisionGroups, func(g clusterv1beta1.DecisionGroupStatus) bool {
			return slices.Contains(g.Decisions, pages.Items[i].Name)
		})
		if wanted || pages.Items[i].DeletionTimestamp != nil {
			continue
		}
		if err := s.admin.Delete(ctx, &pages.Items[i]); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("deleting a page of %s: %w", name, err)
		}
		if s.pause(ctx) {
			return false, nil
		}
	}
	meta.SetStatusCondition(&placement.Status.Conditions, metav1.Condition{
		Type: clusterv1beta1.PlacementConditionSatisfied, Status: metav1.ConditionTrue, Reason: "AllDecisionsScheduled",
		ObservedGeneration: placement.Generation,
	})
	return true, s.admin.Status().Update(ctx, &placement)
}

// selected returns the clusters that have the label of an add-on, by name. Those with a taint are left out where the
// Placement tolerates none.
func (s *scheduler) selected(ctx context.Context, placement *clusterv1beta1.Placement) ([]string, error) {
	var clusters clusterv1.ManagedClusterList
	if err := s.admin.List(ctx, &clusters, client.MatchingLabels{labelOf(placement.Name): "yes"}); err != nil {
		return nil, fmt.Errorf("listing the clusters of %s: %w", placement.Name, err)
	}
	var all []string
	for i := range clusters.Items {
		if len(clusters.Items[i].Spec.Taints) == 0 || len(placement.Spec.Tolerations) > 0 {
			all = append(all, clusters.Items[i].Name)
		}
	}
	slices.Sort(all)
	return all, nil
}

func pageName(placement string, i int) string { return fmt.Sprintf("%s-decision-%d", placement, i+1) }

// writePage writes a page in two requests, and reports whether the program was not ended. One of an earlier Placement
// that is still there is written, too, and made again when it is gone.
func (s *scheduler) writePage(
	ctx context.Context, placement *clusterv1beta1.Placement, i int, clusters []string,
) (bool, error) {
	var page clusterv1beta1.PlacementDecision
	err := s.admin.Get(ctx, client.ObjectKey{Namespace: space, Name: pageName(placement.Name, i)}, &page)
	if apierrors.IsNotFound(err) {
		page = clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
			Namespace: space, Name: pageName(placement.Name, i),
			Labels: map[string]string{
				clusterv1beta1.PlacementLabel: placement.Name, names.LabelDecisionGroupIndex: fmt.Sprint(i),
				names.LabelDecisionGroupName: "",
			},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(placement,
				schema.GroupVersion(clusterv1beta1.GroupVersion).WithKind("Placement"))},
		}}
		if err = s.admin.Create(ctx, &page); err == nil && (s.isRefused(placement, i == 0) || s.pause(ctx)) {
			return false, nil
		}
	}
	if err != nil {
		return false, fmt.Errorf("making a page of %s: %w", placement.Name, err)
	}
	var decisions []clusterv1beta1.ClusterDecision
	for _, name := range clusters {
		decisions = append(decisions, clusterv1beta1.ClusterDecision{ClusterName: name})
	}
	if slices.Equal(page.Status.Decisions, decisions) {
		return true, nil
	}
	page.Status.Decisions = decisions
	if err := s.admin.Status().Update(ctx, &page); err != nil {
		return false, fmt.Errorf("writing a page of %s: %w", placement.Name, err)
	}
	return !s.pause(ctx), nil
}
