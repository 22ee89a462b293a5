package alerts_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// agentFaults are those of a cluster.
func agentFaults() []fault {
	return []fault{
		{
			name: "the connection of a cluster to the hub is cut", alerts: []string{"SpokeletHubUnreachable", "SpokeletClusterSilent"},
			inject: cutLink, heal: mendLink,
		},
		{
			name: "a finalizer keeps an object whose work was deleted", alerts: []string{"SpokeletDeletionBlocked"},
			inject: blockDeletion, heal: unblockDeletion,
		},
		{
			name: "another client writes objects of works again and again", alerts: []string{"SpokeletDriftRepeated"},
			inject: fight, heal: func(w *world) { w.deleteWorks(fought...) },
		},
		{
			name: "the hub loses works without a trace", alerts: []string{"SpokeletEvictionHeld"},
			inject: loseWorks, heal: func(w *world) {
				w.makeWorks(lost...)
				w.metric(`spokelet_work_unowned{state="held"}`, zero)
				w.deleteWorks(lost...)
			},
		},
		{
			name: "the certificate of an agent is old, and the hub signs none", alerts: []string{"SpokeletAgentCertificateLate", "SpokeletCertificateLate"},
			inject: ageCertificate, heal: renewCertificate,
		},
	}
}

// lease lets a cluster renew its heartbeat so often.
func (w *world) lease(seconds int32) {
	w.Helper()
	w.eventually("the period of heartbeats", func(ctx context.Context) error {
		var cluster clusterv1.ManagedCluster
		if err := w.fleet.HubClient.Get(ctx, client.ObjectKey{Name: far}, &cluster); err != nil {
			return err
		}
		cluster.Spec.LeaseDurationSeconds = seconds
		return w.fleet.HubClient.Update(ctx, &cluster)
	})
}

func cutLink(w *world) {
	w.lease(1)
	w.fleet.Link(far).Cut()
	w.metric(`spokelet_agent_connected{to="hub",cluster="`+far+`"}`, zero)
	w.metric(`spokelet_fleet_clusters{code="SPK031"}`, positive)
}

func mendLink(w *world) {
	w.fleet.Link(far).Mend()
	w.lease(60)
	w.metric(`spokelet_agent_connected{to="hub"}`, func(n float64) bool { return n == 2 })
	w.metric(`spokelet_fleet_clusters{code="well"}`, func(n float64) bool { return n == 2 })
}

// The works of the faults.
var (
	blocked = "blocked"
	fought  = []string{"fought-a", "fought-b", "fought-c"}
	lost    = []string{"lost-a", "lost-b", "lost-c", "lost-d"}
)

// configMap is the object of a work of that name.
func configMap(name string, finalizers ...string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Finalizers: finalizers},
		Data:       map[string]string{"owner": "work"},
	}
}

// makeWorks creates works with a ConfigMap each, and waits until they are applied.
func (w *world) makeWorks(works ...string) {
	w.Helper()
	for _, name := range works {
		work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: far, Name: name}}
		work.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Object: configMap(name)}}}
		require.NoError(w, w.fleet.HubClient.Create(w.Context(), work))
	}
	for _, name := range works {
		w.eventually("work "+name, func(ctx context.Context) error {
			var work workv1.ManifestWork
			if err := w.fleet.HubClient.Get(ctx, client.ObjectKey{Namespace: far, Name: name}, &work); err != nil {
				return err
			}
			if !meta.IsStatusConditionTrue(work.Status.Conditions, workv1.WorkApplied) {
				return fleet.NotYet("%v", work.Status.Conditions)
			}
			return nil
		})
	}
}

// deleteWorks deletes works and waits until they are gone.
func (w *world) deleteWorks(works ...string) {
	w.Helper()
	for _, name := range works {
		work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: far, Name: name}}
		require.NoError(w, client.IgnoreNotFound(w.fleet.HubClient.Delete(w.Context(), work)))
	}
	w.eventually("works to go", func(ctx context.Context) error {
		var list workv1.ManifestWorkList
		if err := w.fleet.HubClient.List(ctx, &list, client.InNamespace(far)); err != nil {
			return err
		}
		for i := range list.Items {
			if slices.Contains(works, list.Items[i].Name) {
				return fleet.NotYet("there is %s", list.Items[i].Name)
			}
		}
		return nil
	})
}

// onCluster changes the object of a work on the cluster, as another client does.
func (w *world) onCluster(name string, change func(*corev1.ConfigMap)) {
	w.Helper()
	w.eventually("object "+name, func(ctx context.Context) error {
		var object corev1.ConfigMap
		if err := w.fleet.Cluster(far).Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, &object); err != nil {
			return err
		}
		change(&object)
		return w.fleet.Cluster(far).Client.Update(ctx, &object)
	})
}

func blockDeletion(w *world) {
	w.makeWorks(blocked)
	w.onCluster(blocked, func(c *corev1.ConfigMap) { c.Finalizers = append(c.Finalizers, "example.com/keep") })
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: far, Name: blocked}}
	require.NoError(w, w.fleet.HubClient.Delete(w.Context(), work))
	w.metric(`spokelet_work_deletion_blocked`, positive)
}

func unblockDeletion(w *world) {
	w.onCluster(blocked, func(c *corev1.ConfigMap) { c.Finalizers = nil })
	w.deleteWorks(blocked)
	w.metric(`spokelet_work_deletion_blocked`, zero)
}

// fight writes three objects nine times each, which are repaired each time: an agent repairs ten times without a pause.
func fight(w *world) {
	w.makeWorks(fought...)
	for i := range 9 {
		for _, name := range fought {
			w.onCluster(name, func(c *corev1.ConfigMap) { c.Data["owner"] = fmt.Sprint("another client ", i) })
		}
		for _, name := range fought {
			w.eventually("the repair of "+name, func(ctx context.Context) error {
				var object corev1.ConfigMap
				err := w.fleet.Cluster(far).Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, &object)
				if err == nil && object.Data["owner"] != "work" {
					return fleet.NotYet("it is of %s", object.Data["owner"])
				}
				return err
			})
		}
	}
}

// loseWorks takes works from the hub while the agent does not look, as a restored hub lacks them.
func loseWorks(w *world) {
	w.makeWorks(lost...)
	w.fleet.Link(far).Cut()
	for _, name := range lost {
		key := client.ObjectKey{Namespace: far, Name: name}
		w.eventually("work "+name+" to be lost", func(ctx context.Context) error {
			var work workv1.ManifestWork
			if err := w.fleet.HubClient.Get(ctx, key, &work); err != nil {
				return client.IgnoreNotFound(err)
			}
			work.Finalizers = nil
			if err := w.fleet.HubClient.Update(ctx, &work); err != nil {
				return err
			}
			return w.fleet.HubClient.Delete(ctx, &work)
		})
	}
	w.fleet.Link(far).Mend()
	w.metric(`spokelet_work_unowned{state="held"}`, func(n float64) bool { return int(n) == len(lost) })
	w.metric(`spokelet_agent_connected{to="hub"}`, func(n float64) bool { return n == 2 })
}

// past and future bound the life of a certificate of which nine tenths are over.
const past, future = -9 * time.Hour, time.Hour
