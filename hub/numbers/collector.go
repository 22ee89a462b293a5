package numbers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Name is the name of this part of the hub manager in its log.
const Name = "hub.numbers"

// Numbers has the metrics of a fleet while its process leads. It is a Runnable of a manager.
type Numbers struct {
	// Client is the client of the manager, whose cache has ManagedClusters and the Leases of their heartbeats.
	Client client.Reader
	// AddOns reads add-ons and their definitions.
	AddOns addonapi.Client
	// Gates has the policies of add-ons; nil has none.
	Gates *gate.Reader
	// Registry gets the metrics; nil gets none.
	Registry prometheus.Registerer
	Clock    clock.PassiveClock
}

// SetupWithManager adds it to a manager.
func (n *Numbers) SetupWithManager(mgr ctrl.Manager) error { return mgr.Add(n) }

// NeedLeaderElection returns true: the leader alone has numbers.
func (*Numbers) NeedLeaderElection() bool { return true }

// Start has the metrics until the context ends.
func (n *Numbers) Start(ctx context.Context) error {
	if n.Registry == nil {
		return nil
	}
	logger := ctrl.LoggerFrom(ctx).WithName(Name)
	c := collector{descriptions: describe(), read: func() (fleet, error) { return n.read(ctx) }, failed: func(err error) {
		logger.Error(err, "the fleet was not counted")
	}}
	if _, err := reconcile.RegisterMetric(n.Registry, prometheus.Collector(c)); err != nil {
		return fmt.Errorf("registering the numbers of the fleet: %w", err)
	}
	<-ctx.Done()
	n.Registry.Unregister(c)
	return nil
}

// read counts what is in the cache. Its objects are not copied, and not changed.
func (n *Numbers) read(ctx context.Context) (fleet, error) {
	f := facts{now: n.Clock.Now()}
	var clusters clusterv1.ManagedClusterList
	var leases coordinationv1.LeaseList
	err := errors.Join(
		n.Client.List(ctx, &clusters, client.UnsafeDisableDeepCopy),
		n.Client.List(ctx, &leases, client.UnsafeDisableDeepCopy))
	if err != nil {
		return fleet{}, fmt.Errorf("listing clusters and their heartbeats: %w", err)
	}
	f.clusters, f.leases = clusters.Items, leases.Items
	if f.addOns, err = n.AddOns.ListWatched(ctx); err != nil {
		return fleet{}, err
	}
	if f.definitions, err = n.AddOns.ListClusterManagementAddOns(ctx); err != nil {
		return fleet{}, err
	}
	f.paused = map[string]bool{}
	for _, d := range f.definitions {
		if f.paused[d.Name], err = n.Gates.Paused(ctx, d.Name); err != nil {
			return fleet{}, err
		}
	}
	return count(f), nil
}

// descriptions describe the metrics.
type descriptions struct {
	clusters, addOns, rollouts, stopped, held, paused, heartbeats, ends, late *prometheus.Desc
}

func describe() descriptions {
	metric := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return descriptions{
		clusters: metric("spokelet_fleet_clusters", "Clusters by the code of what is wrong with them first; code well for "+
			"nothing.", "code"),
		addOns: metric("spokelet_fleet_addons", "Add-ons on clusters by the code of what is wrong with them first; code "+
			"well for nothing.", "addon", "code"),
		rollouts: metric("spokelet_fleet_rollouts", "Add-ons on clusters by how far they are with their configuration.",
			"addon", "state"),
		stopped: metric("spokelet_fleet_rollouts_stopped", "Placements of an add-on whose rollout does not go on, because "+
			"more clusters failed than it tolerates.", "addon"),
		held: metric("spokelet_fleet_removals_held", "Clusters from which an add-on is not removed until a person confirms "+
			"it, because many lost it at once without an edit that explains it.", "addon"),
		paused: metric("spokelet_fleet_paused", "1 for an add-on whose AddOnPolicy is paused, and 0 for others.",
			"addon"),
		heartbeats: metric("spokelet_fleet_heartbeat_age_seconds", "Ages of the heartbeats of accepted clusters, now."),
		ends: metric("spokelet_fleet_certificate_ends_timestamp_seconds", "When the first certificate of a kind ends, as "+
			"agents report it.", "kind"),
		late: metric("spokelet_fleet_certificates_late", "Certificates that should have been replaced.", "kind"),
	}
}

// collector counts when it is asked.
type collector struct {
	descriptions

	read func() (fleet, error)
	// failed tells an error of read. It leaves the other metrics of the program as they are.
	failed func(error)
}

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.clusters, c.addOns, c.rollouts, c.stopped, c.held, c.paused, c.heartbeats, c.ends, c.late,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	n, err := c.read()
	if err != nil {
		c.failed(err)
		return
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	for code, count := range n.clusters {
		gauge(c.clusters, float64(count), string(code))
	}
	for of, count := range n.addOns {
		gauge(c.addOns, float64(count), of.name, string(of.is))
	}
	for of, count := range n.stages {
		gauge(c.rollouts, float64(count), of.name, string(of.is))
	}
	for name, count := range n.stopped {
		gauge(c.stopped, float64(count), name)
	}
	for name, count := range n.held {
		gauge(c.held, float64(count), name)
	}
	for name, paused := range n.paused {
		value := 0.0
		if paused {
			value = 1
		}
		gauge(c.paused, value, name)
	}
	for of, count := range n.certificates.Late {
		gauge(c.late, float64(count), string(of))
	}
	for of, end := range n.certificates.First {
		gauge(c.ends, float64(end.Unix()), string(of))
	}
	buckets, sum := histogram(n.ages)
	ch <- prometheus.MustNewConstHistogram(c.heartbeats, uint64(len(n.ages)), sum, buckets)
}

// bounds are the upper bounds of the ages of heartbeats: those of a healthy fleet renew within 75 seconds.
func bounds() []time.Duration {
	return []time.Duration{
		time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour,
	}
}

// histogram returns how many ages are up to each bound, and their sum in seconds.
func histogram(ages []time.Duration) (map[float64]uint64, float64) {
	buckets, sum := map[float64]uint64{}, 0.0
	for _, bound := range bounds() {
		buckets[bound.Seconds()] = 0
	}
	for _, age := range ages {
		sum += age.Seconds()
		for _, bound := range bounds() {
			if age <= bound {
				buckets[bound.Seconds()]++
			}
		}
	}
	return buckets, sum
}
