package apiserver_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/test/suite"
)

// TestItServesVersionsAsARealAPIServer is TestItAnswersAsARealAPIServer for the add-on API: each request has one of two
// versions, between which the webhook of the hub manager converts for both sides, or nobody.
func TestItServesVersionsAsARealAPIServer(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			newVersions(t, seed).play()
		})
	}
}

// group is the add-on API, in a version that stands for both.
const group = "/apis/addon.open-cluster-management.io/VERSION"

// versions sends requests to both API servers in versions that it draws.
type versions struct{ *game }

func newVersions(t *testing.T, seed uint64) versions {
	t.Helper()
	g := newGame(t, seed)
	g.Rand = rand.New(rand.NewPCG(seed, 28))
	g.paths = map[string]string{
		"ManagedClusterAddOn":    group + "/namespaces/SPACE/managedclusteraddons",
		"AddOnDeploymentConfig":  group + "/namespaces/SPACE/addondeploymentconfigs",
		"ClusterManagementAddOn": group + "/clustermanagementaddons",
		"AddOnTemplate":          group + "/addontemplates",
	}
	return versions{g}
}

// eachVersion are the versions.
func eachVersion() []string { return []string{"v1alpha1", "v1beta1"} }

// in is a path in a version.
func in(version, path string) string { return strings.ReplaceAll(path, "VERSION", version) }

func (g versions) play() {
	g.both(&ask{method: http.MethodPost, path: "/api/v1/namespaces", body: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "SPACE"},
	}})
	type pair struct{ real, memory *seen }
	watches := map[string]pair{}
	for kind, path := range g.paths {
		if !strings.Contains(path, "SPACE") {
			continue // other games have some, too
		}
		for _, version := range eachVersion() {
			path := in(version, path)
			watches[kind+" "+version] = pair{g.real.follow(path, "labelSelector=l=1"), g.memory.follow(path, "labelSelector=l=1")}
		}
	}
	for range requests {
		a := g.draw()
		g.both(a)
		g.agree(a)
	}
	for name, w := range watches {
		suite.Eventually(g.T, suite.Checks(func(c assert.TestingT) { assert.Equal(c, w.real.texts(), w.memory.texts(), name) }))
	}
}

// agree waits until both sides have the same objects in both versions.
func (g versions) agree(a *ask) {
	g.Helper()
	for _, path := range g.paths {
		for _, version := range eachVersion() {
			list := &ask{method: http.MethodGet, path: in(version, path), query: "labelSelector=game=SPACE"}
			suite.Within(g.T, 20*time.Second, suite.Checks(func(c assert.TestingT) {
				want, _ := g.real.send(list)
				got, _ := g.memory.send(list)
				assert.Equal(c, want, got, "after %s", a)
			}))
		}
	}
}

// draw draws a request.
func (g versions) draw() *ask {
	kind := pick(g.game, "ManagedClusterAddOn", "ManagedClusterAddOn", "ClusterManagementAddOn", "ClusterManagementAddOn",
		"AddOnTemplate", "AddOnDeploymentConfig")
	version, name := pick(g.game, eachVersion()...), pick(g.game, "a", "b", "c")
	if !strings.Contains(g.paths[kind], "SPACE") {
		name += "-SPACE"
	}
	known := g.last[g.paths[kind]+"/"+name]
	collection := in(version, g.paths[kind])
	path := collection + "/" + name
	accept := pick(g.game, "", ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
	query, sub := pick(g.game, "", "", "", "dryRun=All"), pick(g.game, "", "", "/status")
	if kind != "ManagedClusterAddOn" && kind != "ClusterManagementAddOn" {
		sub = "" // it has nothing in it
	}
	switch g.IntN(12) {
	case 0, 1, 2:
		return &ask{method: http.MethodPost, path: collection, kind: "application/json", accept: accept,
			body: g.object(version, kind, name), query: query}
	case 3, 4, 5, 6:
		o := g.object(version, kind, name)
		if meta, ok := known["metadata"].(map[string]any); ok && g.IntN(8) > 0 {
			own, _ := o["metadata"].(map[string]any)
			own["resourceVersion"] = meta["resourceVersion"]
		}
		if sub == "/status" {
			o["status"] = g.status(version, kind)
		}
		return &ask{method: http.MethodPut, path: path + sub, kind: "application/json", body: o, query: query}
	case 7:
		return &ask{method: http.MethodPatch, path: path + sub, kind: "application/merge-patch+json",
			query: query,
			body: map[string]any{
				"metadata": map[string]any{
					"labels": map[string]any{"l": pick[any](g.game, "1", "2", nil)}, "finalizers": pick[any](g.game, nil, []any{"example.com/one"}),
				},
				"spec": g.spec(version, kind), "status": g.status(version, kind),
			}}
	case 8:
		return g.remove(path)
	case 9, 10:
		return &ask{method: http.MethodGet, path: path, accept: accept}
	}
	query = "labelSelector=" + pick(g.game, "game=SPACE", "game=SPACE,l=1")
	return &ask{method: pick(g.game, http.MethodGet, http.MethodGet, http.MethodDelete), path: collection, query: query,
		accept: pick(g.game, "", ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")}
}

// object draws an object.
func (g versions) object(version, kind, name string) map[string]any {
	meta := map[string]any{"name": name, "labels": map[string]any{"game": "SPACE", "l": pick(g.game, "1", "2")}}
	if g.IntN(4) == 0 {
		meta["finalizers"] = []any{"example.com/one"}
	}
	if g.IntN(4) == 0 {
		meta["annotations"] = map[string]any{
			pick(g.game, "a", "addon.open-cluster-management.io/v1alpha1-install-namespace"): pick(g.game, "x", "y"),
		}
	}
	o := map[string]any{
		"kind": kind, "apiVersion": "addon.open-cluster-management.io/" + version, "metadata": meta,
		"unknown": "is dropped",
	}
	if g.IntN(8) > 0 {
		o["spec"] = g.spec(version, kind)
	}
	if g.IntN(3) == 0 {
		o["status"] = g.status(version, kind)
	}
	return o
}

// referent draws the name of a configuration.
func (g versions) referent() map[string]any {
	all := map[string]any{"name": pick(g.game, "one", "two")}
	if g.IntN(2) == 0 {
		all["namespace"] = "default"
	}
	return all
}

// kindOf draws a kind of configuration, with more fields.
func (g versions) kindOf(more map[string]any) map[string]any {
	all := map[string]any{"resource": pick(g.game, "addondeploymentconfigs", "addontemplates")}
	if g.IntN(8) > 0 {
		all["group"] = "addon.open-cluster-management.io"
	}
	for key, value := range more {
		all[key] = value
	}
	return all
}

// spec draws a spec.
func (g versions) spec(version, kind string) any {
	switch kind {
	case "AddOnTemplate":
		return map[string]any{"addonName": pick[any](g.game, "one", "two", 3), "agentSpec": map[string]any{"unknown": 1}}
	case "AddOnDeploymentConfig":
		return map[string]any{"customizedVariables": []any{map[string]any{"name": pick(g.game, "ONE", "1"), "value": "v"}}}
	case "ManagedClusterAddOn":
		spec := map[string]any{"configs": []any{g.kindOf(g.referent())}, "unknown": map[string]any{"is": "dropped"}}
		if g.IntN(2) == 0 {
			spec["installNamespace"] = pick(g.game, "somewhere", "elsewhere", "_")
		}
		return spec
	}
	spec := map[string]any{"addOnMeta": map[string]any{"displayName": pick(g.game, "One", "Two")}}
	configs, name := []any{g.kindOf(g.referent())}, "defaultConfigs"
	if version == "v1alpha1" {
		configs, name = []any{g.kindOf(map[string]any{"defaultConfig": g.referent()})}, "supportedConfigs"
		if g.IntN(2) == 0 {
			spec["addOnConfiguration"] = map[string]any{"crdName": pick(g.game, "one", "two")}
		}
	}
	if g.IntN(4) == 0 {
		configs = append(configs, configs[0])
	}
	if spec[name] = configs; g.IntN(2) == 0 {
		spec["installStrategy"] = map[string]any{"type": "Placements", "placements": []any{map[string]any{
			"name": pick(g.game, "p", "q"), "namespace": "default", "configs": []any{g.kindOf(g.referent())},
		}}}
	}
	return spec
}

// status draws a status.
func (g versions) status(version, kind string) any {
	hashed := func() map[string]any {
		all := g.referent()
		all["specHash"] = pick(g.game, "1", "2")
		return all
	}
	switch kind {
	case "AddOnTemplate", "AddOnDeploymentConfig":
		return map[string]any{}
	case "ClusterManagementAddOn":
		references := []any{g.kindOf(map[string]any{"desiredConfig": hashed()})}
		if version == "v1alpha1" {
			return map[string]any{"defaultconfigReferences": references}
		}
		return map[string]any{"defaultConfigReferences": references}
	}
	reference := g.kindOf(map[string]any{"desiredConfig": hashed()})
	registration := map[string]any{"type": "KubeClient", "kubeClient": map[string]any{
		"subject": map[string]any{"user": pick(g.game, "u", "v")}, "driver": pick(g.game, "csr", "token"),
	}}
	if version == "v1alpha1" {
		reference["name"] = pick(g.game, "one", "other")
		registration = map[string]any{"subject": map[string]any{"user": "u", "groups": []any{"g"}}}
		registration["signerName"] = pick(g.game, "kubernetes.io/kube-apiserver-client", "example.com/signer")
	}
	status := map[string]any{
		"conditions": g.conditions(), "configReferences": []any{reference}, "registrations": []any{registration},
		"healthCheck": map[string]any{"mode": pick(g.game, "Lease", "Customized", "Wrong")},
	}
	if g.IntN(2) == 0 {
		delete(status, pick(g.game, "conditions", "configReferences", "registrations", "healthCheck"))
	}
	require.NotEmpty(g.T, status)
	return status
}
