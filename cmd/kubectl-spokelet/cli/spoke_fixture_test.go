package cli

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/internal/names"
)

const (
	pathPods        = "/api/v1/pods"
	pathSecrets     = "/api/v1/secrets"
	pathDeployments = "/apis/apps/v1/deployments"
	pathReplicaSets = "/apis/apps/v1/replicasets"
	pathRecords     = "/apis/work.open-cluster-management.io/v1/appliedmanifestworks"
	pathTemplates   = "/apis/addon.open-cluster-management.io/v1alpha1/addontemplates"
	pathPlacements  = "/apis/cluster.open-cluster-management.io/v1beta1/placements"
)

// ago is an instant some minutes before noon.
func ago(minutes int) string {
	return noon().Add(-time.Duration(minutes) * time.Minute).Format(time.RFC3339)
}

// event is an Event about an object, in minutes before noon.
func event(kind, namespace, name, reason, text string, first, last, count int) map[string]any {
	version := map[string]string{
		"ManagedClusterAddOn": "addon.open-cluster-management.io/v1beta1", "ClusterManagementAddOn": "addon.open-cluster-management.io/v1beta1",
		"ManifestWork": "work.open-cluster-management.io/v1", "ManagedCluster": "cluster.open-cluster-management.io/v1",
		"Pod": "v1", "ReplicaSet": "apps/v1", "CertificateSigningRequest": "certificates.k8s.io/v1",
	}[kind]
	at := namespace
	if at == "" {
		at = defaultNamespace
	}
	grade := "Normal"
	if strings.HasPrefix(reason, "Failed") || strings.HasSuffix(reason, "Unknown") || reason == "BackOff" || reason == "HookFailed" {
		grade = "Warning"
	}
	e := of(at, fmt.Sprintf("%s.%d", name, first))
	delete(e, "spec")
	delete(e, "status")
	part(e, "metadata")["uid"] = fmt.Sprintf("%s-%s-%s-%d", namespace, name, reason, first)
	e["involvedObject"] = map[string]any{"apiVersion": version, "kind": kind, "namespace": namespace, "name": name}
	e["type"], e["reason"], e["message"], e["count"] = grade, reason, text, count
	e["firstTimestamp"], e["lastTimestamp"], e["reportingComponent"] = ago(first), ago(last), "tester"
	return e
}

// happened are the Events of the hub of the tests.
func happened() []map[string]any {
	all := []map[string]any{
		event("ManagedCluster", "", "store-114", "AvailableUnknown", "The cluster has not renewed its Lease.", 252, 252, 1),
		event("ClusterManagementAddOn", "", "logs", "RemovalHeld", "The removal from 3 clusters is held.", 600, 60, 4),
		event("CertificateSigningRequest", "", "store-201-abcde", "Requested", "The agent asks for its first certificate.", 90, 90, 1),
		event("Pod", "kube-system", "dns", "FailedScheduling", "no business of ours", 5, 5, 1),
	}
	for i := 1; i <= 5; i++ {
		name := fmt.Sprintf("store-%03d", i)
		all = append(all, event("ManifestWork", name, "addon-logs-deploy-0", "ResourceApplied", "Deployment logs/agent was changed.", 39, 39, 1),
			event("ManagedClusterAddOn", name, "logs", "HookFailed", "The hook does not end.", 38, 37, 2))
	}
	return all
}

// store is the managed cluster store-003: it cannot pull the image of add-on logs.
func store() *hub {
	h := &hub{
		lists: map[string][]map[string]any{
			pathSecrets: {}, pathReplicaSets: {}, "/api/v1/configmaps": {}, "/apis/apps/v1/daemonsets": {}, pathLeases: {},
		},
		forbidden: map[string]bool{}, logs: map[string]string{}, documents: discovery(),
	}
	h.lists[pathRecords] = []map[string]any{record("addon-logs-deploy-0")}
	h.lists[pathDeployments] = []map[string]any{deployment("logs", "agent", 0), deployment(names.NamespaceAgent, "klusterlet-agent", 1)}
	owned(h.lists[pathDeployments][0], "work.open-cluster-management.io/v1", "AppliedManifestWork", "hash-addon-logs-deploy-0")
	set := of("logs", "agent-6c9f")
	owned(set, "apps/v1", "Deployment", "agent")
	h.lists[pathReplicaSets] = []map[string]any{set}
	pod := labelled(of("logs", "agent-6c9f-x2"), map[string]any{"app": "agent"})
	owned(pod, "apps/v1", "ReplicaSet", "agent-6c9f")
	pod["status"] = map[string]any{"phase": "Pending", "containerStatuses": []any{map[string]any{
		"name": "agent", "image": "registry.local/logs:1.10",
		"state": map[string]any{"waiting": map[string]any{"reason": "ImagePullBackOff", "message": "manifest unknown"}},
	}}}
	agent := labelled(of(names.NamespaceAgent, "klusterlet-agent-7d8f-k2"), map[string]any{"app": "klusterlet-agent"})
	agent["spec"] = map[string]any{"containers": []any{map[string]any{"name": "agent"}}}
	agent["status"] = map[string]any{"phase": "Running", "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
	h.lists[pathPods] = []map[string]any{pod, agent, of("kube-system", "dns")}
	h.lists[pathEvents] = []map[string]any{
		event("Pod", "logs", "agent-6c9f-x2", "BackOff", `Back-off pulling image "registry.local/logs:1.10"`, 38, 2, 160),
		event("Pod", "logs", "other", "BackOff", "of another program", 3, 1, 2),
	}
	h.lists[pathSecrets] = []map[string]any{of(names.NamespaceAgent, names.SecretHub), of("logs", "kept")}
	h.lists[pathSecrets][0]["data"] = map[string]any{"kubeconfig": "c2VjcmV0"}
	h.logs["/api/v1/namespaces/"+names.NamespaceAgent+"/pods/klusterlet-agent-7d8f-k2/log"] = strings.Join([]string{
		`{"level":"info","ts":"2026-11-29T11:59:00Z","msg":"the hub answers"}`,
		`{"level":"error","ts":"2026-11-29T11:59:30Z","msg":"applying a work","error":"the server rejected it"}`,
		`E1129 11:59:31.000000       1 reflector.go:204] "Failed to watch" err="unknown"`,
		"  indented \x1b[31mred\u202e",
	}, "\n") + "\n"
	return h
}

// deployment is a Deployment of one pod, so many of which are ready.
func deployment(namespace, name string, ready int) map[string]any {
	d := labelled(of(namespace, name), map[string]any{"app": name})
	part(d, "metadata")["managedFields"] = []any{
		map[string]any{"manager": "work-agent", "operation": "Update", "apiVersion": "apps/v1", "time": ago(2880)},
		map[string]any{"manager": "kubectl-edit", "operation": "Update", "apiVersion": "apps/v1", "time": ago(40)},
		map[string]any{"manager": "kube-controller-manager", "operation": "Update", "subresource": "status", "time": ago(38)},
	}
	d["spec"] = map[string]any{
		"replicas": 1, "selector": map[string]any{"matchLabels": map[string]any{"app": name}},
		"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
			"name": "agent", "args": []any{"agent", "--spoke-cluster-name=$(CLUSTER_NAME)"},
			"env": []any{map[string]any{"name": "CLUSTER_NAME", "value": "store-003"}},
		}}}},
	}
	if name != "klusterlet-agent" {
		delete(part(d, "spec"), "template")
	}
	d["status"] = map[string]any{"readyReplicas": ready}
	return d
}

// record is the AppliedManifestWork of a work.
func record(work string) map[string]any {
	r := of("", "hash-"+work)
	r["spec"] = map[string]any{"hubHash": "3fa2b1c0d4e5f6a7b8", "agentID": "5d2c", "manifestWorkName": work}
	r["status"] = map[string]any{"appliedResources": []any{
		map[string]any{"group": "apps", "version": "v1", "resource": "deployments", "namespace": "logs", "name": "agent"},
		map[string]any{"version": "v1", "resource": "secrets", "namespace": "logs", "name": "kept"},
	}}
	return r
}

// owned makes an object belong to another one.
func owned(o map[string]any, version, kind, name string) {
	part(o, "metadata")["ownerReferences"] = []any{
		map[string]any{"apiVersion": version, "kind": kind, "name": name, "uid": "u", "controller": true},
	}
}

// discovery is what an API server says of its kinds.
func discovery() map[string]any {
	resource := func(name, kind string, short ...string) map[string]any {
		return map[string]any{
			"name": name, "singularName": strings.ToLower(kind), "kind": kind, "namespaced": true,
			"verbs": []any{"get", "list"}, "shortNames": short,
		}
	}
	list := func(version string, resources ...map[string]any) map[string]any {
		return map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}
	}
	return map[string]any{
		"/api": map[string]any{"kind": "APIVersions", "versions": []any{"v1"}},
		"/apis": map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{map[string]any{
			"name": "apps", "versions": []any{map[string]any{"groupVersion": "apps/v1", "version": "v1"}},
			"preferredVersion": map[string]any{"groupVersion": "apps/v1", "version": "v1"},
		}}},
		"/api/v1": list("v1", resource("pods", "Pod", "po"), resource("secrets", "Secret"),
			resource("configmaps", "ConfigMap", "cm")),
		"/apis/apps/v1": list("apps/v1", resource("deployments", "Deployment", "deploy"),
			resource("replicasets", "ReplicaSet")),
	}
}

// playsBoth runs a command line on a hub, of context hub, and a managed cluster, of context store.
func playsBoth(t *testing.T, h, cluster *hub, args ...string) outcome {
	t.Helper()
	hubServer, clusterServer := httptest.NewServer(h), httptest.NewServer(cluster)
	defer hubServer.Close()
	defer clusterServer.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "kubeconfig")
	content := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "hub",
"contexts": [{"name": "hub", "context": {"cluster": "hub", "user": "u"}}, {"name": "store", "context": {"cluster": "store", "user": "u"}},
{"name": "away", "context": {"cluster": "away", "user": "u"}}],
"users": [{"name": "u", "user": {}}], "clusters": [{"name": "hub", "cluster": {"server": %q}},
{"name": "store", "cluster": {"server": %q}}, {"name": "away", "cluster": {"server": "http://127.0.0.1:1"}}]}`,
		hubServer.URL, clusterServer.URL)
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	got := run(t, append([]string{"--kubeconfig", file, "--cache-dir", filepath.Join(dir, "cache")}, args...)...)
	for url, name := range map[string]string{hubServer.URL: "https://hub.example", clusterServer.URL: "https://store.example"} {
		got.out, got.errs = strings.ReplaceAll(got.out, url, name), strings.ReplaceAll(got.errs, url, name)
	}
	return got
}

// reported says what the agent says of the objects of the work of logs on store-003.
func reported(h *hub) *hub {
	for _, w := range h.lists[pathWorks] {
		m := part(w, "metadata")
		if m["namespace"] == "store-003" && m["name"] == "addon-logs-deploy-0" {
			part(w, "status")["resourceStatus"] = map[string]any{"manifests": []any{map[string]any{
				"resourceMeta": map[string]any{"group": "apps", "version": "v1", "kind": "Deployment", "resource": "deployments",
					"name": "agent", "namespace": "logs"},
			}}}
		}
	}
	for _, a := range h.lists[pathAddOns] {
		m := part(a, "metadata")
		if m["namespace"] == "store-003" && m["name"] == "logs" {
			status := part(a, "status")
			status["registrations"] = []any{map[string]any{"type": "kubeClient"}}
			hash := map[string]any{"name": "logs-v10", "specHash": "5f2c"}
			status["configReferences"] = []any{map[string]any{
				"group": "addon.open-cluster-management.io", "resource": "addontemplates", "desiredConfig": hash, "lastAppliedConfig": hash,
			}}
		}
	}
	h.lists[pathTemplates] = []map[string]any{of("", "logs-v10")}
	h.lists[pathPlacements] = []map[string]any{of("add-ons", "stores")}
	return h
}

// part is a part of an object that is an object, too.
func part(o map[string]any, name string) map[string]any {
	found, _ := o[name].(map[string]any)
	return found
}
