package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/internal/names"
)

// An agent whose certificate ended joins again with its bootstrap credential, and its request waits for a person as the
// first one did.
func TestAnAgentThatJoinsAgainWaitsForAPerson(t *testing.T) {
	h := shop()
	request := labelled(of("", "store-114-again"), map[string]any{names.LabelClusterName: "store-114"})
	part(request, "metadata")["creationTimestamp"] = ago(240)
	request["spec"] = map[string]any{"signerName": "kubernetes.io/kube-apiserver-client", "username": "bootstrap"}
	request["status"] = map[string]any{}
	h.lists[pathRequests] = append(h.lists[pathRequests], request)
	got := plays(t, h, "why", "cluster", "store-114")
	assert.Equal(t, statusProblem, got.status)
	assert.Contains(t, got.out, "first cause: a certificate request of a cluster waits for a person  [SPK021]")
}

// A deletion waits also where no hub manager says for what.
func TestTheDeletionOfAClusterThatNobodyLooksAfterWaits(t *testing.T) {
	h := shop()
	m := part(h.lists[pathClusters][0], "metadata")
	m["deletionTimestamp"], m["finalizers"] = ago(2*24*60), []any{"cluster.open-cluster-management.io/api-resource-cleanup"}
	got := plays(t, h, "why", "cluster", "store-001")
	assert.Equal(t, statusProblem, got.status, got.out)
	assert.Contains(t, got.out, "the deletion of a cluster waits  [SPK035]")
	assert.Contains(t, plays(t, h, "check").out, "cluster/store-001  the deletion of a cluster waits")
}

// While no hub manager runs, nothing sets Available to Unknown. The Lease says it.
func TestAHeartbeatThatStoppedIsSeenWithoutAHubManager(t *testing.T) {
	h := shop()
	beat := of("store-020", "managed-cluster-lease")
	beat["spec"] = map[string]any{"renewTime": "2026-11-29T06:00:00.000000Z", "leaseDurationSeconds": 60}
	h.lists[pathLeases] = []map[string]any{beat}
	got := plays(t, h, "why", "cluster", "store-020")
	assert.Equal(t, statusProblem, got.status, "it was heard of six hours ago: %s", got.out)
}

// A cluster that stops answering in the middle of a look says nothing of what was not looked at: here the first request
// after that for its version fails.
func TestWhatWasNotLookedAtIsNotMissing(t *testing.T) {
	cluster := store()
	failing := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/secrets") {
			http.Error(w, "etcdserver: request timed out", http.StatusServiceUnavailable)
			return
		}
		cluster.ServeHTTP(w, r)
	})
	hubServer, clusterServer := httptest.NewServer(shop()), httptest.NewServer(failing)
	defer hubServer.Close()
	defer clusterServer.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Config", "current-context": "hub",
"contexts": [{"name": "hub", "context": {"cluster": "hub", "user": "u"}}, {"name": "store", "context": {"cluster": "store", "user": "u"}}],
"users": [{"name": "u", "user": {}}], "clusters": [{"name": "hub", "cluster": {"server": %q}},
{"name": "store", "cluster": {"server": %q}}]}`, hubServer.URL, clusterServer.URL), 0o600))
	got := run(t, "--kubeconfig", file, "why", "cluster", "store-114", "--spoke-context", "store")
	assert.Equal(t, statusProblem, got.status, got.errs)
	assert.Contains(t, got.out, "SPK003", "it is told that the cluster does not answer")
	assert.NotContains(t, got.out, "there is no Deployment of an agent", "nobody looked for it")
	assert.Contains(t, got.out, "first cause: the heartbeat of a cluster stopped  [SPK031]")
}

// An agent without a pod does not run, also where its Deployment asks for none.
func TestAnAgentThatWasScaledToZeroDoesNotRun(t *testing.T) {
	cluster := store()
	part(cluster.lists[pathDeployments][1], "spec")["replicas"] = 0
	cluster.lists[pathDeployments][1]["status"] = map[string]any{}
	var pods []map[string]any
	for _, pod := range cluster.lists[pathPods] {
		if part(pod, "metadata")["namespace"] != names.NamespaceAgent {
			pods = append(pods, pod)
		}
	}
	cluster.lists[pathPods] = pods
	got := playsBoth(t, shop(), cluster, "why", "cluster", "store-114", "--spoke-context", "store")
	assert.Equal(t, statusProblem, got.status, got.errs)
	assert.Contains(t, got.out, "first cause: the agent of a cluster does not run  [SPK038]")
}

// A question about one cluster or one add-on is answered with what belongs to it.
func TestTheRolloutOfOtherClustersIsNoProblemOfACluster(t *testing.T) {
	h := shop()
	d := of("", "elsewhere")
	d["spec"] = map[string]any{"installStrategy": map[string]any{
		"type": "Placements", "placements": []any{map[string]any{"name": "others", "namespace": "add-ons"}},
	}}
	d["status"] = map[string]any{"installProgressions": []any{map[string]any{
		"name": "others", "namespace": "add-ons", "conditions": []any{condition("Progressing", "True", "Progressing",
			"the rollout stopped: 5 clusters failed, and maxFailures is 2", 40)},
	}}}
	h.lists[pathDefinitions] = append(h.lists[pathDefinitions], d)
	got := plays(t, h, "check", "--cluster", "store-020")
	assert.Equal(t, statusWell, got.status, "all of store-020 is well: %s", got.out)
	got = plays(t, h, "tree", "cluster", "store-020")
	assert.Equal(t, statusWell, got.status, got.out)
	assert.NotContains(t, got.out, "elsewhere", "the add-on is not on the cluster")
}

// "check" and "get" of one cluster are of one mind with "why".
func TestWhatIsSaidOfOneClusterIsTheSameEverywhere(t *testing.T) {
	h := shop()
	beat := of("store-020", "managed-cluster-lease")
	beat["spec"] = map[string]any{"renewTime": "2026-11-29T06:00:00.000000Z", "leaseDurationSeconds": 60}
	h.lists[pathLeases] = []map[string]any{beat}
	request := labelled(of("", "store-114-again"), map[string]any{names.LabelClusterName: "store-114"})
	part(request, "metadata")["creationTimestamp"] = ago(240)
	request["spec"], request["status"] = map[string]any{"username": "bootstrap"}, map[string]any{}
	h.lists[pathRequests] = append(h.lists[pathRequests], request)
	for code, commands := range map[string][][]string{
		"SPK031": {
			{"why", "cluster", "store-020"}, {"check", "--cluster", "store-020"}, {"tree", "cluster", "store-020"},
			{"get", "clusters", "-o", "wide"},
		},
		"SPK021": {
			{"why", "cluster", "store-114"}, {"check"}, {"check", "--cluster", "store-114"}, {"tree", "cluster", "store-114"},
			{"get", "clusters"}, {"why", "addon", "logs", "-n", "store-114"},
		},
	} {
		for _, args := range commands {
			assert.Contains(t, plays(t, h, args...).out, code, "%v", args)
		}
	}
	part(request, "metadata")["creationTimestamp"] = ago(300)
	assert.Contains(t, plays(t, h, "why", "cluster", "store-114").out, "[SPK031]", "it asked while it had a certificate")
}

// A rollout that stopped is a problem of a cluster that it holds up.
func TestARolloutThatStoppedIsAProblemOfTheClusterThatItHoldsUp(t *testing.T) {
	h := shop()
	part(h.lists[pathDefinitions][0], "status")["installProgressions"] = []any{map[string]any{
		"name": "stores", "namespace": "add-ons", "conditions": []any{condition("Progressing", "True", "Progressing",
			"the rollout stopped: 5 clusters failed, and maxFailures is 2", 40)},
	}}
	for i, one := range h.lists[pathAddOns] {
		if m := part(one, "metadata"); m["namespace"] == "store-020" && m["name"] == "logs" {
			h.lists[pathAddOns][i] = addOn("store-020", "logs", condition("Configured", "False", "ConfigurationsNotConfigured",
				"Configurations updated and not configured yet", 40))
		}
	}
	for _, args := range [][]string{
		{"check", "--cluster", "store-020"}, {"why", "addon", "logs", "-n", "store-020"}, {"tree", "cluster", "store-020"},
	} {
		got := plays(t, h, args...)
		assert.Contains(t, got.out, "SPK062", "%v", args)
		assert.Equal(t, statusProblem, got.status)
	}
	assert.Equal(t, statusWell, plays(t, h, "check", "--cluster", "store-021").status)
}
