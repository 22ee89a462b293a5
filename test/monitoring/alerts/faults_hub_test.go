package alerts_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// hubFaults are those of add-ons and of the hub manager.
func hubFaults() []fault {
	const unavailable = "SpokeletAddOnUnavailable"
	return []fault{
		{
			name: "the pods of a new version of an add-on do not run", alerts: []string{"SpokeletRolloutStopped", unavailable},
			inject: stopRollout, heal: func(w *world) {
				for _, cluster := range w.fleet.Clusters() {
					w.pods.runAll(cluster.Name)
				}
				w.wellWith("v2")
				w.metric("spokelet_fleet_rollouts_stopped", zero)
			},
		},
		{
			name: "all clusters lose the label that placed an add-on", alerts: []string{"SpokeletRemovalHeld"},
			inject: func(w *world) { w.label("no"); w.metric("spokelet_fleet_removals_held", positive) },
			heal:   func(w *world) { w.label("yes"); w.metric("spokelet_fleet_removals_held", zero) },
		},
		{
			name: "a template has a variable that nobody sets", alerts: []string{"SpokeletRenderFailing"}, also: []string{unavailable},
			inject: func(w *world) {
				w.apply("broken.yaml", "")
				w.metric(`spokelet_template_renders_total{result="failed"}`, positive)
			},
			heal: removeBroken,
		},
		{
			name: "the certificate of the webhook is not renewed", alerts: []string{"SpokeletCertificateLate"},
			inject: ageWebhookCertificate, heal: renewWebhookCertificate,
		},
		{
			name: "the webhook asks the API server for a certificate that it does not have", alerts: []string{"SpokeletWebhookFailing"},
			also:   []string{"SpokeletHubManagerNotLeading"},
			inject: refuseConversions, during: askForConversions, heal: takeConversions,
		},
		{
			name: "the hub manager is killed", alerts: []string{"SpokeletHubManagerNotLeading"},
			inject: func(w *world) { w.fleet.HubManager().Kill() },
			heal:   func(w *world) { require.NoError(w, w.fleet.HubManager().Start()); w.leads() },
		},
		{
			name: "another client holds the Lease of the hub manager", alerts: []string{"SpokeletHubManagerNotLeading"},
			inject: takeLease, heal: func(w *world) { w.releaseLease(); w.leads() },
		},
	}
}

func stopRollout(w *world) {
	for _, cluster := range w.fleet.Clusters() {
		w.pods.refuse(cluster.Name, "v2")
	}
	w.apply("logs.yaml", "v2")
	w.metric("spokelet_fleet_rollouts_stopped", positive)
}

// label sets the label that places the add-on, on all clusters.
func (w *world) label(value string) {
	w.Helper()
	for _, cluster := range w.fleet.Clusters() {
		w.eventually("the label of "+cluster.Name, func(ctx context.Context) error {
			var found clusterv1.ManagedCluster
			if err := w.fleet.HubClient.Get(ctx, client.ObjectKey{Name: cluster.Name}, &found); err != nil {
				return err
			}
			found.Labels["monitored"] = value
			return w.fleet.HubClient.Update(ctx, &found)
		})
	}
}

func removeBroken(w *world) {
	definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "broken"}}
	require.NoError(w, w.fleet.HubClient.Delete(w.Context(), definition))
	w.eventually("the broken add-on to go", func(ctx context.Context) error {
		var list addonv1alpha1.ManagedClusterAddOnList
		if err := w.fleet.HubClient.List(ctx, &list); err != nil {
			return err
		}
		if slices.ContainsFunc(list.Items, func(a addonv1alpha1.ManagedClusterAddOn) bool { return a.Name == "broken" }) {
			return fleet.NotYet("it is there")
		}
		return nil
	})
}

// refuseConversions starts the hub manager with an authority of clients, and no API server presents a certificate.
func refuseConversions(w *world) {
	w.restartHub(func(args []string) []string {
		return append(args, "--webhook-client-ca="+filepath.Join(w.fleet.Dir(), "webhook", "tls.crt"))
	})
	askForConversions(w)
}

// refused counts the conversions that were refused.
const refused = `controller_runtime_webhook_requests_total{code="403"}`

// askForConversions reads add-ons until another conversion was refused.
func askForConversions(w *world) {
	before, err := w.fleet.Value(w.Context(), refused)
	if err != nil {
		before = 0 // none was refused yet
	}
	w.eventually("conversions to be refused", func(ctx context.Context) error {
		readBothVersions(w)
		now, err := w.fleet.Value(ctx, refused)
		if err == nil && now <= before {
			return fleet.NotYet("there are %v", now)
		}
		return err
	})
}

// readBothVersions reads add-ons as two programs of different age do. While the webhook refuses, the API server answers
// one of them from what it remembers, then with errors, then not at all: whatever it answers, it asked the webhook.
func readBothVersions(w *world) {
	ctx, cancel := context.WithTimeout(w.Context(), 500*time.Millisecond)
	defer cancel()
	old, current := &addonv1alpha1.ManagedClusterAddOnList{}, &addonv1beta1.ManagedClusterAddOnList{}
	if err := errors.Join(w.fleet.HubClient.List(ctx, old), w.fleet.HubClient.List(ctx, current)); err != nil {
		w.Logf("reading both versions of add-ons: %v", err)
	}
}

func takeConversions(w *world) {
	w.restartHub(func(args []string) []string { return args[:len(args)-1] })
	w.leads()
}

// restartHub starts the hub manager again with other arguments.
func (w *world) restartHub(change func([]string) []string) {
	w.Helper()
	manager := w.fleet.HubManager()
	manager.Stop(patience)
	manager.Args = change(manager.Args)
	require.NoError(w, manager.Start())
}

// leads waits until the hub manager leads, and finds its fleet well.
func (w *world) leads() {
	w.Helper()
	w.metric(`spokelet_fleet_clusters{code="well"}`, func(n float64) bool { return n == 2 })
	w.metric(`spokelet_fleet_addons{addon="logs",code="well"}`, func(n float64) bool { return n == 2 })
}

// leaseKey is the Lease of hub managers.
func leaseKey() client.ObjectKey {
	return client.ObjectKey{Namespace: names.NamespaceHub, Name: "spokelet-hub"}
}

// takeLease lets another client hold the Lease of the hub manager, which runs and waits.
func takeLease(w *world) {
	w.fleet.HubManager().Stop(patience)
	w.eventually("the Lease", func(ctx context.Context) error {
		var lease coordinationv1.Lease
		if err := w.fleet.HubClient.Get(ctx, leaseKey(), &lease); err != nil {
			return err
		}
		now := metav1.NewMicroTime(clock.RealClock{}.Now())
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = ptr.To("another client"), ptr.To(int32(3600))
		lease.Spec.AcquireTime, lease.Spec.RenewTime = &now, &now
		return w.fleet.HubClient.Update(ctx, &lease)
	})
	require.NoError(w, w.fleet.HubManager().Start())
	w.metric(`leader_election_master_status{job="spokelet-hub"}`, zero)
}

// releaseLease gives the Lease back.
func (w *world) releaseLease() {
	w.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: leaseKey().Namespace, Name: leaseKey().Name}}
	require.NoError(w, w.fleet.HubClient.Delete(w.Context(), lease))
}
