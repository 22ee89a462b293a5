package scene

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/bench/spokes"
	"github.com/spokelet/spokelet/test/monitoring/harness"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// The real clusters. Trouble of works is made on the first, and the second one loses its hub.
const (
	First  = "shop-001"
	Second = "shop-002"
)

const (
	// labelFleet selects the clusters of the fleet.
	labelFleet = "fleet"
	shops      = "shops"
	// beat is how often a real cluster renews its heartbeat. The hub misses it after five times that.
	beat = 5
	// playedBeat is how often the other clusters do.
	playedBeat = 30 * time.Second
)

//go:embed addons.yaml
var addOns []byte

//go:embed logs.yaml
var logs string

// Options are the size and the pace of a scene.
type Options struct {
	// Binaries is a directory with our programs.
	Binaries string
	// Played is how many clusters there are besides the real ones.
	Played int
	// Takes is how long they need to apply a change.
	Takes time.Duration
	// Wave is how many clusters of a rollout move at once, and Deadline how long one may take.
	Wave     int
	Deadline time.Duration
	// Unready are played clusters where the pods of an image do not start.
	Unready map[string]string
	// Log receives what happens.
	Log io.Writer
}

// Scene is a fleet that plays.
type Scene struct {
	*harness.Fleet

	opts   Options
	played *spokes.Spokes
	stop   context.CancelFunc
	pods   sync.WaitGroup

	mu sync.Mutex
	// unready are clusters where the pods of a version of an image do not start.
	unready map[string]string
}

// Start starts a scene, whose clusters have all add-ons when it returns. The caller must call Close.
func Start(ctx context.Context, o Options) (*Scene, error) {
	f, err := harness.Start(ctx, harness.Options{
		Clusters: []string{First, Second}, Labels: map[string]string{labelFleet: shops}, Binaries: o.Binaries, Log: o.Log,
	})
	if err != nil {
		return nil, err
	}
	s := &Scene{Fleet: f, opts: o, unready: map[string]string{}}
	maps.Copy(s.unready, o.Unready)
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	if err := s.install(ctx, running); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close ends the scene.
func (s *Scene) Close() error {
	s.stop()
	s.pods.Wait()
	if s.played != nil {
		s.played.Stop()
	}
	return s.Fleet.Close()
}

// install lets the played clusters join, and installs the add-ons.
func (s *Scene) install(ctx, running context.Context) error {
	for _, cluster := range s.Clusters() {
		s.pods.Go(func() { cluster.RunPods(running, names.NamespaceAgentAddon, nil, s.opts.Log) })
		if err := s.beatOften(ctx, cluster.Name); err != nil {
			return err
		}
	}
	identity, err := s.Hub.User(spokes.User, spokes.Group)
	if err != nil {
		return fmt.Errorf("making a user for the played clusters: %w", err)
	}
	s.played, err = spokes.Start(running, spokes.Options{
		Config: identity, Judge: s.judge, Heartbeat: playedBeat, Log: s.opts.Log,
	})
	if err != nil {
		return fmt.Errorf("starting the played clusters: %w", err)
	}
	var clusters []string
	for i := range s.opts.Played {
		clusters = append(clusters, fmt.Sprintf("shop-%03d", i+3))
	}
	if err := s.played.Join(ctx, clusters, map[string]string{labelFleet: shops}); err != nil {
		return fmt.Errorf("letting the played clusters join: %w", err)
	}
	if err := s.Hub.Apply(ctx, addOns); err != nil {
		return fmt.Errorf("installing the add-ons: %w", err)
	}
	if err := s.Roll(ctx, "v1"); err != nil {
		return err
	}
	return s.await(ctx, "logs v1 everywhere", func(a *addonv1beta1.ManagedClusterAddOn) bool {
		return a.Name != "logs" || meta.IsStatusConditionTrue(a.Status.Conditions, "Available")
	}, 2*(s.opts.Played+2))
}

// beatOften lets the hub notice soon that a cluster is silent.
func (s *Scene) beatOften(ctx context.Context, name string) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"leaseDurationSeconds":%d}}`, beat))
	cluster := &clusterv1.ManagedCluster{}
	cluster.Name = name
	if err := s.HubClient.Patch(ctx, cluster, patch); err != nil {
		return fmt.Errorf("shortening the lease of cluster %s: %w", name, err)
	}
	return nil
}

// Roll brings a version of the add-on logs to the hub, which rolls it out in waves. Played clusters take their time.
func (s *Scene) Roll(ctx context.Context, version string) error {
	if version != "v1" {
		s.played.Delay(s.opts.Takes)
	}
	content := strings.NewReplacer(
		"VERSION", version, "WAVE", strconv.Itoa(s.opts.Wave), "DEADLINE", s.opts.Deadline.String())
	if err := s.Hub.Apply(ctx, []byte(content.Replace(logs))); err != nil {
		return fmt.Errorf("rolling out logs %s: %w", version, err)
	}
	return nil
}

// Fail keeps the pods of an image from starting on a played cluster from now on.
func (s *Scene) Fail(cluster, image string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unready[cluster] = image
}

// judge decides what becomes of a work on a played cluster. The real ones answer themselves.
func (s *Scene) judge(work *workv1.ManifestWork) spokes.Outcome {
	if work.Namespace == First || work.Namespace == Second {
		return spokes.Silent
	}
	s.mu.Lock()
	image, is := s.unready[work.Namespace]
	s.mu.Unlock()
	for _, m := range work.Spec.Workload.Manifests {
		if is && strings.Contains(string(m.Raw), image) {
			return spokes.Unready
		}
	}
	return spokes.Healthy
}

// await waits until at least so many add-ons exist and all hold.
func (s *Scene) await(
	ctx context.Context, what string, holds func(*addonv1beta1.ManagedClusterAddOn) bool, atLeast int,
) error {
	return fleet.Wait(ctx, what, nil, func(ctx context.Context) error {
		var all addonv1beta1.ManagedClusterAddOnList
		if err := s.HubClient.List(ctx, &all); err != nil {
			return err
		}
		waits := 0
		for i := range all.Items {
			if !holds(&all.Items[i]) {
				waits++
			}
		}
		if len(all.Items) < atLeast || waits > 0 {
			return fleet.NotYet("%d of %d add-ons exist, and %d of them wait", len(all.Items), atLeast, waits)
		}
		return nil
	})
}
