package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
)

// readingOfHub are command lines that read all that commands read of a hub.
func readingOfHub(t *testing.T) [][]string {
	t.Helper()
	return [][]string{
		{"check"}, {"tree"}, {"why", "addon", "logs", "-n", "store-003"}, {"why", "cluster", "store-201"},
		{"why", "csr", "store-201-abcde"}, {"why", "work", "addon-logs-deploy-0", "-n", "store-003"}, {"get", "works", "-A"},
		{"events", "-A"}, {"events", "addon", "logs", "-n", "store-003"}, {"events", "cluster", "store-003"},
		{"rollout", "status", "addon", "logs"}, {"get", "windows"},
		{"bundle", "-f", filepath.Join(t.TempDir(), "x.tgz")},
		{"trace", "deploy/agent", "-n", "logs", "--context", "store", "--hub-context", "hub"},
	}
}

// The roles that are shipped have what the commands read, and no more.
func TestTheRolesHaveJustWhatTheCommandsRead(t *testing.T) {
	h, cluster := governed(t, reported(shop())), store()
	config := of("add-ons", "config")
	h.lists["/apis/addon.open-cluster-management.io/v1beta1/addondeploymentconfigs"] = []map[string]any{config}
	for _, a := range h.lists[pathAddOns] {
		if references, is := part(a, "status")["configReferences"].([]any); is {
			part(a, "status")["configReferences"] = append(references, map[string]any{
				"group": "addon.open-cluster-management.io", "resource": "addondeploymentconfigs",
				"desiredConfig": map[string]any{"namespace": "add-ons", "name": "config"},
			})
		}
	}
	for _, args := range readingOfHub(t) {
		got := playsBoth(t, h, cluster, args...)
		require.NotEqual(t, statusUse, got.status, got.errs)
		require.NotContains(t, got.out, "SPK010", "%v", args)
	}
	watches(t, h)
	assert.Equal(t, rulesOf(t, "ClusterRole", "spokelet-view", manifests.Hub()), used(h, false))
	home := used(h, true)

	h, cluster = reported(shop()), store()
	manager := func(name string) map[string]any {
		return labelled(of(names.NamespaceHub, name), map[string]any{"app": "spokelet-hub"})
	}
	h.lists[pathPods], h.logs = []map[string]any{manager("a"), manager("b")}, map[string]string{}
	playsBoth(t, h, cluster, "logs", "hub")
	kept := used(h, true)
	maps.Copy(kept, home)
	h.asked, h.queries = nil, nil
	h.lists["/apis/apps/v1/controllerrevisions"] = nil
	playsBoth(t, h, cluster, "rollout", "history", "addon", "logs")
	maps.Copy(kept, used(h, true))
	assert.Equal(t, rulesOf(t, "Role", "spokelet-view", manifests.Hub()), kept)

	racks := rack(t)
	plays(t, racks, "diff", "addon", "logs", "-f", file(t, variables("usual", "info", "x")))
	have := rulesOf(t, "ClusterRole", "spokelet-view", manifests.Hub())
	for right := range used(racks, false) {
		assert.Contains(t, have, right, "diff needs it")
	}
}

// Secrets are left out of the role, and so are the kinds of an object that is traced.
func TestTheRolesOfClustersHaveJustWhatTheCommandsRead(t *testing.T) {
	h, cluster := reported(shop()), store()
	for _, w := range h.lists[pathWorks] {
		if states, is := part(part(w, "status"), "resourceStatus")["manifests"].([]any); is {
			part(part(w, "status"), "resourceStatus")["manifests"] = append(states, map[string]any{"resourceMeta": map[string]any{
				"group": "apps", "kind": "DaemonSet", "namespace": "logs", "name": "nodes",
			}})
		}
	}
	cluster.lists[pathPods] = append(cluster.lists[pathPods],
		labelled(of(names.NamespaceAgent, "klusterlet-agent-other"), map[string]any{"app": "klusterlet-agent"}))
	playsBoth(t, h, cluster, "why", "addon", "logs", "-n", "store-003", "--spoke-context", "store")
	playsBoth(t, h, cluster, "events", "cluster", "store-003", "--spoke-context", "store")
	playsBoth(t, h, cluster, "logs", "agent", "--spoke-context", "store")
	want := rulesOf(t, "ClusterRole", "spokelet-view-cluster", manifests.Klusterlet())
	maps.Copy(want, rulesOf(t, "Role", "spokelet-view-cluster", manifests.Klusterlet()))
	want["list secrets"] = true
	assert.Equal(t, want, used(cluster, false))
}

// watches runs "events -w" until it shows what happened before.
func watches(t *testing.T, h *hub) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	h.watched = stop
	got := playsUntil(ctx, t, h, "events", "-A", "-w")
	assert.Equal(t, statusWell, got.status, got.errs)
}

// used are the rights that requests took in the namespace of the hub manager, or elsewhere, such as
// "list apps/deployments". What everybody may ask is left out.
func used(h *hub, home bool) map[string]bool {
	rights := map[string]bool{}
	for i, request := range h.asked {
		path := strings.TrimPrefix(request, "GET ")
		words := strings.Split(strings.Trim(path, "/"), "/")
		group := ""
		switch {
		case words[0] == "api" && len(words) > 2:
			words = words[2:]
		case words[0] == "apis" && len(words) > 3:
			group, words = words[1]+"/", words[3:]
		default:
			continue // Discovery, and the version.
		}
		namespace := ""
		if words[0] == "namespaces" && len(words) > 2 {
			namespace, words = words[1], words[2:]
		}
		if home != (namespace == names.NamespaceHub) {
			continue
		}
		verb, resource := "list", words[0]
		if len(words) == 3 {
			verb, resource = "get", words[0]+"/"+words[2]
		}
		if strings.Contains(h.queries[i], "watch=true") {
			verb = "watch"
		}
		rights[verb+" "+group+resource] = true
	}
	return rights
}

// rulesOf are the rights that a role has.
func rulesOf(t *testing.T, kind, name string, files [][]byte) map[string]bool {
	t.Helper()
	rights := map[string]bool{}
	for _, file := range files {
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(file), 4096)
		for {
			var role rbacv1.ClusterRole
			if err := decoder.Decode(&role); errors.Is(err, io.EOF) {
				break
			}
			if role.Kind != kind || role.Name != name {
				continue
			}
			for _, rule := range role.Rules {
				for _, group := range rule.APIGroups {
					if group != "" {
						group += "/"
					}
					for _, resource := range rule.Resources {
						for _, verb := range rule.Verbs {
							rights[verb+" "+group+resource] = true
						}
					}
				}
			}
		}
	}
	require.NotEmpty(t, slices.Collect(maps.Keys(rights)), "%s %s is not shipped", kind, name)
	return rights
}
