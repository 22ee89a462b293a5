package fleet_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// observed is the length of the window in which requests at rest are counted: longer than half a heartbeat, and than
// every interval at which a poll of objects would be worth anything.
const observed = 30 * time.Second

// ours are the resources that only Spokelet works on in the sandbox; the control plane's own programs do not touch
// them at rest, so what the API server counts for them is ours.
var ours = sets.New(
	"manifestworks", "appliedmanifestworks", "managedclusters", "managedclusteraddons", "clustermanagementaddons",
	"addontemplates", "addondeploymentconfigs", "placements", "placementdecisions", "clusterclaims",
	"certificatesigningrequests", "secrets", "configmaps", "deployments", "rolebindings", "clusterrolebindings",
	"clusterroles", "roles", "nodes", "events",
)

// TestAtRestOnlyWatchesAndLeases has a cluster hold a work with objects, and then counts what is asked of both API
// servers while nothing happens.
func TestAtRestOnlyWatchesAndLeases(t *testing.T) {
	f := shared.fleet
	cluster := f.Cluster("cluster1")
	installWork(t, f, cluster)
	planes := []*sandbox.ControlPlane{f.Hub, cluster.ControlPlane}
	settle(t, planes)

	before := map[string]map[string]float64{}
	started := time.Now()
	for _, plane := range planes {
		before[plane.Name] = count(t, plane)
	}
	pause(t, observed)
	for _, plane := range planes {
		after := count(t, plane)
		for request, n := range after {
			assert.InDelta(t, before[plane.Name][request], n, 0,
				"%s was asked for %s while nothing happened", plane.Name, request)
		}
		assert.Empty(t, requestsOfOurs(t, plane, started), "%s: requests of ours at rest, by its audit log", plane.Name)
	}
}

// installWork creates a ManifestWork with ConfigMaps and waits until it is available.
func installWork(t *testing.T, f *fleet.Fleet, cluster *fleet.Cluster) {
	t.Helper()
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "at-rest", Namespace: cluster.Name}}
	for i := range 10 {
		manifest := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap",`+
			`"metadata":{"name":"at-rest-%d","namespace":"default"},"data":{"k":"v"}}`, i)
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, raw(manifest))
	}
	require.NoError(t, f.HubClient.Create(t.Context(), work))
	t.Cleanup(func() { removeWork(t, f, cluster, work) })
	eventually(t, "work at-rest to be available", func(ctx context.Context) error {
		return workAvailable(ctx, f, client.ObjectKeyFromObject(work))
	})
}

// removeWork deletes a work and waits until it and its objects are gone.
func removeWork(t *testing.T, f *fleet.Fleet, cluster *fleet.Cluster, work *workv1.ManifestWork) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	require.NoError(t, client.IgnoreNotFound(f.HubClient.Delete(ctx, work)))
	require.NoError(t, fleet.Wait(ctx, "work "+work.Name+" to be gone", nil, func(ctx context.Context) error {
		var left workv1.ManifestWork
		if err := f.HubClient.Get(ctx, client.ObjectKeyFromObject(work), &left); client.IgnoreNotFound(err) != nil {
			return err
		} else if err == nil {
			return fleet.NotYet("it is still there: %v", left.Status.Conditions)
		}
		var configMaps corev1.ConfigMapList
		if err := cluster.Client.List(ctx, &configMaps, client.InNamespace("default")); err != nil {
			return err
		}
		for _, configMap := range configMaps.Items {
			if strings.HasPrefix(configMap.Name, work.Name) {
				return fleet.NotYet("ConfigMap %s is left", configMap.Name)
			}
		}
		return nil
	}))
}

// settle waits until nothing has been asked of the API servers for three seconds, so that the window after it counts
// what happens at rest and not the end of what happened before.
func settle(t *testing.T, planes []*sandbox.ControlPlane) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	last, since := "", time.Now()
	require.NoError(t, fleet.Wait(ctx, "the API servers to be quiet", nil, func(context.Context) error {
		var now []string
		for _, plane := range planes {
			now = append(now, fmt.Sprint(count(t, plane)))
		}
		if joined := strings.Join(now, "\n"); joined != last {
			last, since = joined, time.Now()
		}
		if quiet := time.Since(since); quiet < 3*time.Second {
			return fleet.NotYet("quiet for %s", quiet)
		}
		return nil
	}))
}

// count reads from the metrics of an API server how many requests for resources of ours it has answered, watches
// aside, by verb and resource.
func count(t *testing.T, plane *sandbox.ControlPlane) map[string]float64 {
	t.Helper()
	families, err := plane.Metrics(t.Context())
	require.NoError(t, err)
	requests, ok := families["apiserver_request_total"]
	require.True(t, ok, "the API server must count its requests")
	counts := map[string]float64{}
	for _, metric := range requests.GetMetric() {
		labels := map[string]string{}
		for _, pair := range metric.GetLabel() {
			labels[pair.GetName()] = pair.GetValue()
		}
		if labels["verb"] != "WATCH" && ours.Has(labels["resource"]) {
			counts[labels["verb"]+" "+labels["resource"]+" "+labels["subresource"]] += metric.GetCounter().GetValue()
		}
	}
	return counts
}

// auditEvent holds what we need of a line of an audit log.
type auditEvent struct {
	Verb           string `json:"verb"`
	RequestURI     string `json:"requestURI"`
	StageTimestamp string `json:"stageTimestamp"`
	User           struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		APIGroup    string `json:"apiGroup"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// requestsOfOurs reads from the audit log what the hub manager and the agents asked since an instant, watches and
// leases aside.
func requestsOfOurs(t *testing.T, plane *sandbox.ControlPlane, since time.Time) []string {
	t.Helper()
	var found []string
	for event := range audit(t, plane) {
		at, err := time.Parse(time.RFC3339Nano, event.StageTimestamp)
		require.NoError(t, err)
		if at.Before(since) || !isOurs(event.User.Username) || event.Verb == "watch" || event.ObjectRef.Resource == "leases" {
			continue
		}
		found = append(found, event.User.Username+": "+event.Verb+" "+event.RequestURI)
	}
	return found
}

// isOurs reports whether a user is the hub manager or an agent.
func isOurs(user string) bool {
	return user == "system:serviceaccount:"+names.NamespaceHub+":"+names.ServiceAccountManager ||
		user == "system:serviceaccount:"+names.NamespaceAgent+":"+names.ServiceAccountAgent ||
		strings.HasPrefix(user, "system:open-cluster-management:cluster")
}

// audit yields the lines of an audit log.
func audit(t *testing.T, plane *sandbox.ControlPlane) func(yield func(auditEvent) bool) {
	t.Helper()
	return func(yield func(auditEvent) bool) {
		log, err := os.Open(plane.AuditLog())
		require.NoError(t, err)
		defer log.Close()
		lines := bufio.NewScanner(log)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var event auditEvent
			if json.Unmarshal(lines.Bytes(), &event) != nil {
				// The last line may still be on its way.
				continue
			}
			if !yield(event) {
				return
			}
		}
		require.NoError(t, lines.Err())
	}
}

// pause lets the fleet alone for a while; it is what is measured, not a wait for something.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
		require.NoError(t, t.Context().Err())
	}
}
