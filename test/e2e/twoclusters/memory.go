package twoclusters

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"golang.org/x/sync/errgroup"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/e2e/cluster"
	"github.com/spokelet/spokelet/test/e2e/suite"
)

const (
	// manyWorks of configMapsEach is what the agent is measured under.
	manyWorks, configMapsEach = 200, 10
	// restBudget and loadBudget are what the agent may need at rest and under many works, in bytes.
	restBudget, loadBudget = 32 << 20, 48 << 20
	// settled is how many measurements in a row must be alike, and calm how much they may differ from the first of them,
	// in percent.
	settled, calm = 4, 2
	// mib is a MiB in bytes.
	mib = 1 << 20
	// worksLabel is on the works that are created for the measurement.
	worksLabel = "e2e.spokelet.io/memory"
)

// memory measures our pods without works, and with many. A figure above its budget is shown and is not a failure,
// because it depends on the machine.
func (p *play) memory(ctx context.Context, s *suite.Session) error {
	if err := measure(ctx, s, "at rest", restBudget); err != nil {
		return err
	}
	s.Cleanup("delete the works", func(ctx context.Context) error { return deleteWorks(ctx, s.Fleet) })
	group, creating := errgroup.WithContext(ctx)
	group.SetLimit(5)
	for i := range manyWorks {
		group.Go(func() error {
			work, err := manifestWork(fmt.Sprintf("memory-%03d", i), "some text", configMapsEach)
			if err != nil {
				return err
			}
			work.Labels = map[string]string{worksLabel: "true"}
			return s.Fleet.Hub().Client.Create(creating, work)
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("creating works: %w", err)
	}
	err := cluster.Until(ctx, "all works to be available", func(ctx context.Context) error {
		var works workv1.ManifestWorkList
		if err := s.Fleet.Hub().Client.List(ctx, &works, client.MatchingLabels{worksLabel: "true"}); err != nil {
			return err
		}
		available := 0
		for _, work := range works.Items {
			if meta.IsStatusConditionTrue(work.Status.Conditions, workv1.WorkAvailable) {
				available++
			}
		}
		if available < manyWorks {
			return fmt.Errorf("%d of %d are", available, manyWorks)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return measure(ctx, s, fmt.Sprintf("%d works of %d ConfigMaps", manyWorks, configMapsEach), loadBudget)
}

// deleteWorks deletes the works and waits until they are gone. An API server gives up a deletion of many objects after
// a minute, with some of them done: on a machine that is busy it has to be asked again.
func deleteWorks(ctx context.Context, f *suite.Fleet) error {
	hub := f.Hub().Client
	ours := client.MatchingLabels{worksLabel: "true"}
	return cluster.Until(ctx, "the works to be gone", func(ctx context.Context) error {
		var works workv1.ManifestWorkList
		if err := hub.List(ctx, &works, ours); err != nil {
			return err
		}
		if slices.ContainsFunc(works.Items, func(w workv1.ManifestWork) bool { return w.DeletionTimestamp.IsZero() }) {
			if err := hub.DeleteAllOf(ctx, &workv1.ManifestWork{}, client.InNamespace(clusterName), ours); err != nil {
				return err
			}
		}
		if len(works.Items) > 0 {
			return fmt.Errorf("%d are left", len(works.Items))
		}
		return nil
	})
}

// measure notes the memory of all our containers when that of the agent has settled.
func measure(ctx context.Context, s *suite.Session, when string, budget int64) error {
	agent, err := settledAgent(ctx, s.Fleet.Managed())
	if err != nil {
		return err
	}
	hub, err := s.Fleet.Hub().Memory(ctx, names.NamespaceHub)
	if err != nil {
		return err
	}
	others, err := s.Fleet.Managed().Memory(ctx, names.NamespaceAgentAddon)
	if err != nil {
		return err
	}
	verdict := "met"
	if agent.WorkingSet > budget {
		verdict = "missed"
	}
	if err := note(ctx, s, s.Fleet.Managed(), when, "spokelet", []cluster.Memory{agent}); err != nil {
		return err
	}
	s.Note("%-27s the budget of %d MiB for the working set of the agent is %s", when, budget/mib, verdict)
	return errors.Join(note(ctx, s, s.Fleet.Hub(), when, "spokelet-hub", hub),
		note(ctx, s, s.Fleet.Managed(), when, helloAgent, others))
}

// note notes the memory of the containers of one program.
func note(ctx context.Context, s *suite.Session, c *cluster.Cluster, when, program string, all []cluster.Memory) error {
	process, err := c.ProcessRSS(ctx, program)
	if err != nil {
		return err
	}
	for _, m := range all {
		s.Note("%-27s %-12s working set %5.1f MiB, rss %5.1f MiB; process with its program %5.1f MiB", when, program,
			float64(m.WorkingSet)/mib, float64(m.RSS)/mib, float64(process)/mib)
	}
	return nil
}

// settledAgent returns the memory of the agent when some measurements in a row were alike. The kubelet measures every
// ten seconds or so.
func settledAgent(ctx context.Context, c *cluster.Cluster) (cluster.Memory, error) {
	var series []cluster.Memory
	err := cluster.Until(ctx, "the memory of the agent to settle", func(ctx context.Context) error {
		all, err := c.Memory(ctx, names.NamespaceAgent)
		if err != nil {
			return err
		}
		pod, err := suite.Pod(ctx, c, names.NamespaceAgent, suite.Agent)
		if err != nil {
			return err
		}
		for _, m := range all {
			if m.Pod != pod.Name || len(series) > 0 && series[len(series)-1].Measured == m.Measured {
				continue
			}
			if len(series) > 0 && abs(m.WorkingSet-series[0].WorkingSet)*100 > calm*series[0].WorkingSet {
				series = nil
			}
			series = append(series, m)
		}
		if len(series) == 0 {
			return errors.New("the kubelet has no figure of it")
		}
		if len(series) < settled {
			return fmt.Errorf("the last %d figures are alike", len(series))
		}
		return nil
	})
	if err != nil {
		return cluster.Memory{}, err
	}
	return series[len(series)-1], nil
}

func abs(n int64) int64 { return max(n, -n) }
