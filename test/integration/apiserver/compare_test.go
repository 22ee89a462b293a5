package apiserver_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/spokelet/spokelet/test/suite"
)

// requests is how many requests a game has.
const requests = 250

func TestItAnswersAsARealAPIServer(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			newGame(t, seed).play()
		})
	}
}

// game sends requests to both API servers.
type game struct {
	*testing.T
	*rand.Rand

	real, memory *side
	// paths are those in which objects are made, by kind.
	paths map[string]string
	// last are the objects as the last answer showed them, in the names of the test, by path.
	last map[string]map[string]any
}

func newGame(t *testing.T, seed uint64) *game {
	t.Helper()
	admin := rest.CopyConfig(plane.Admin())
	client, err := rest.HTTPClientFor(admin)
	require.NoError(t, err)
	g := &game{T: t, Rand: rand.New(rand.NewPCG(seed, 21)), last: map[string]map[string]any{}, paths: collections()}
	space := suite.UniqueName("compare")
	g.real = &side{t: t, http: client, host: admin.Host, space: space, names: newNaming()}
	g.memory = &side{
		t: t, http: &http.Client{Transport: memory(t).Transport("admin")}, host: "https://memory", space: space, names: newNaming(),
	}
	return g
}

// collections are the paths in which objects are made.
func collections() map[string]string {
	return map[string]string{
		"ConfigMap":      "/api/v1/namespaces/SPACE/configmaps",
		"ManifestWork":   "/apis/work.open-cluster-management.io/v1/namespaces/SPACE/manifestworks",
		"ManagedCluster": "/apis/cluster.open-cluster-management.io/v1/managedclusters",
	}
}

func (g *game) play() {
	g.both(&ask{method: http.MethodPost, path: "/api/v1/namespaces", body: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "SPACE"},
	}})
	type pair struct{ real, memory *seen }
	watches := map[string]pair{}
	for kind, path := range g.paths {
		if kind == "ManagedCluster" {
			continue // other games have some, too
		}
		for _, query := range []string{"", "labelSelector=l=1"} {
			watches[kind+" "+query] = pair{g.real.follow(path, query), g.memory.follow(path, query)}
		}
	}
	for range requests {
		a := g.draw()
		g.both(a)
		g.agree(a)
	}
	g.both(&ask{method: http.MethodDelete, path: "/api/v1/namespaces/SPACE"})
	for name, w := range watches {
		suite.Eventually(g.T, suite.Checks(func(c assert.TestingT) { assert.Equal(c, w.real.texts(), w.memory.texts(), name) }))
	}
}

// both sends a request to both sides and compares the answers.
func (g *game) both(a *ask) {
	g.Helper()
	want, ofReal := g.real.send(a)
	got, ofMemory := g.memory.send(a)
	require.Equal(g, want, got, a.String())
	for goesOn(ofReal) != "" {
		one, other := *a, *a
		one.query += "&continue=" + goesOn(ofReal)
		other.query += "&continue=" + goesOn(ofMemory)
		want, ofReal = g.real.send(&one)
		got, ofMemory = g.memory.send(&other)
		require.Equal(g, want, got, one.String())
	}
	if one, ok := want.Body.(map[string]any); ok && one["metadata"] != nil && one["items"] == nil {
		meta, _ := one["metadata"].(map[string]any)
		if kind := fmt.Sprint(one["kind"]); g.paths[kind] != "" {
			g.last[g.paths[kind]+"/"+fmt.Sprint(meta["name"])] = one
		}
	}
}

// goesOn returns where a list goes on; empty when it is complete.
func goesOn(list map[string]any) string {
	token, _, _ := unstructured.NestedString(list, "metadata", "continue")
	return token
}

// agree waits until both sides have the same objects: real controllers take a moment.
func (g *game) agree(a *ask) {
	g.Helper()
	for _, path := range g.paths {
		list := &ask{method: http.MethodGet, path: path, query: "labelSelector=game=SPACE"}
		suite.Within(g.T, 20*time.Second, suite.Checks(func(c assert.TestingT) {
			want, _ := g.real.send(list)
			got, _ := g.memory.send(list)
			assert.Equal(c, want, got, "after %s", a)
		}))
	}
}

// pick draws one of some.
func pick[T any](g *game, all ...T) T { return all[g.IntN(len(all))] }

// draw draws a request.
func (g *game) draw() *ask {
	kinds := []string{"ConfigMap", "ConfigMap", "ManifestWork", "ManifestWork", "ManagedCluster"}
	kind := pick(g, kinds...)
	collection := g.paths[kind]
	name := pick(g, "a", "b", "c", "d")
	if kind == "ManagedCluster" {
		name += "-SPACE"
	}
	path := collection + "/" + name
	switch g.IntN(12) {
	case 0, 1, 2:
		return &ask{method: http.MethodPost, path: collection, kind: "application/json", body: g.object(kind, name)}
	case 3, 4:
		return g.put(kind, name, path, "")
	case 5:
		return g.put(kind, name, path, pick(g, "/status", "/status", "/approval"))
	case 6, 7:
		return g.patch(kind, path)
	case 8, 9:
		return g.remove(path)
	case 10:
		return &ask{method: http.MethodGet, path: path, accept: pick(g, "", ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1")}
	}
	query := "labelSelector=" + pick(g, "game=SPACE", "game=SPACE,l=1", "game=SPACE,l!=1")
	if kind != "ManagedCluster" { // other games have some, too, so the pages differ
		query += pick(g, "", "&limit=2", "&limit=1")
	}
	return &ask{method: pick(g, http.MethodGet, http.MethodGet, http.MethodDelete), path: collection, query: query,
		accept: pick(g, "", ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")}
}

// object draws an object.
func (g *game) object(kind, name string) map[string]any {
	meta := map[string]any{"name": name, "labels": map[string]any{"game": "SPACE", "l": pick(g, "1", "2")}}
	if g.IntN(3) == 0 {
		meta["finalizers"] = []any{"example.com/" + pick(g, "one", "two")}
	}
	if kind != "ManagedCluster" && g.IntN(3) == 0 { // an object without namespace cannot have owners that have one
		meta["ownerReferences"] = g.owners()
	}
	if g.IntN(20) == 0 {
		meta["namespace"] = "elsewhere"
	}
	o := map[string]any{"kind": kind, "apiVersion": "v1", "metadata": meta}
	switch kind {
	case "ConfigMap":
		o["data"] = map[string]any{"k": pick(g, "1", "2")}
	case "ManifestWork":
		o["apiVersion"] = "work.open-cluster-management.io/v1"
		spec := map[string]any{
			"unknown":  "is dropped",
			"workload": map[string]any{"manifests": []any{map[string]any{"apiVersion": "v1", "kind": pick(g, "A", "B")}}},
		}
		if g.IntN(3) == 0 {
			spec["deleteOption"] = map[string]any{"propagationPolicy": pick(g, "Orphan", "Foreground", "Wrong")}
		}
		o["spec"] = spec
		if g.IntN(3) == 0 {
			o["status"] = map[string]any{"conditions": g.conditions()}
		}
	case "ManagedCluster":
		o["apiVersion"] = "cluster.open-cluster-management.io/v1"
		o["spec"] = map[string]any{"hubAcceptsClient": pick[any](g, true, false, "wrong")}
	}
	return o
}

func (g *game) conditions() []any {
	return []any{map[string]any{
		"type": pick(g, "Applied", "Available"), "status": pick(g, "True", "False", "Wrong"), "reason": "R", "message": "m",
		"lastTransitionTime": "2026-01-02T03:04:05Z",
	}}
}

// owners draws owners: objects that exist, or existed.
func (g *game) owners() []any {
	var all []any
	paths := []string{}
	for path := range g.last {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		o := g.last[path]
		meta, _ := o["metadata"].(map[string]any)
		if o["kind"] == "ConfigMap" && g.IntN(3) == 0 {
			owner := map[string]any{"apiVersion": o["apiVersion"], "kind": o["kind"], "name": meta["name"], "uid": meta["uid"]}
			if g.IntN(2) == 0 {
				owner["blockOwnerDeletion"] = true
			}
			all = append(all, owner)
		}
	}
	return all
}

// put draws a PUT of an object that may exist.
func (g *game) put(kind, name, path, sub string) *ask {
	o := g.object(kind, name)
	if known := g.last[path]; known != nil {
		meta, _ := known["metadata"].(map[string]any)
		own, _ := o["metadata"].(map[string]any)
		if g.IntN(8) > 0 {
			own["resourceVersion"] = meta["resourceVersion"]
		}
		if g.IntN(2) == 0 {
			own["uid"] = meta["uid"]
		}
		if g.IntN(4) == 0 {
			delete(own, "finalizers")
		}
	}
	if sub == "/status" { // without one, a real API server notes who manages fields, and writes that
		o["status"] = map[string]any{"conditions": g.conditions()}
	}
	return &ask{method: http.MethodPut, path: path + sub, kind: "application/json", body: o}
}

// patch draws a PATCH.
func (g *game) patch(kind, path string) *ask {
	a := &ask{method: http.MethodPatch, path: path}
	switch g.IntN(4) {
	case 0:
		a.kind = "application/json-patch+json"
		a.body = []any{
			map[string]any{"op": "test", "path": "/metadata/labels/l", "value": pick(g, "1", "2")},
			map[string]any{"op": "replace", "path": "/metadata/labels/l", "value": pick(g, "1", "2")},
		}
	case 1:
		a.kind = "application/strategic-merge-patch+json"
		a.body = map[string]any{"metadata": map[string]any{"finalizers": []any{"example.com/" + pick(g, "one", "two")}}}
	case 2:
		a.kind = "application/merge-patch+json"
		a.body = map[string]any{"metadata": map[string]any{"finalizers": nil}}
	case 3:
		a.kind = "application/merge-patch+json"
		a.body = map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"l": pick[any](g, "1", "2", nil)}},
			"data":     map[string]any{"k": pick[any](g, "1", nil)}, "status": map[string]any{"conditions": g.conditions()},
		}
		if kind == "ManifestWork" {
			a.path += pick(g, "", "/status")
		}
	}
	return a
}

// remove draws a DELETE.
func (g *game) remove(path string) *ask {
	options := map[string]any{"kind": "DeleteOptions", "apiVersion": "v1"}
	if policy := pick(g, "", "", "Background", "Foreground", "Orphan"); policy != "" {
		options["propagationPolicy"] = policy
	}
	if known := g.last[path]; known != nil && g.IntN(3) == 0 {
		meta, _ := known["metadata"].(map[string]any)
		options["preconditions"] = map[string]any{pick(g, "uid", "resourceVersion"): meta["uid"]}
		if g.IntN(2) == 0 {
			options["preconditions"] = map[string]any{"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
		}
	}
	return &ask{method: http.MethodDelete, path: path, kind: "application/json", body: options}
}
