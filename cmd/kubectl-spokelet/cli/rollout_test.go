package cli

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/internal/names"
)

// shelf is a hub in the middle of a rollout that stopped: five clusters of forty failed, thirty wait.
func shelf() *hub {
	const path = "/apis/apps/v1/controllerrevisions"
	h := shop()
	h.lists[path] = []map[string]any{}
	h.lists[pathAddOns] = nil
	hash := func(of string) map[string]any {
		return map[string]any{"name": "logs", "specHash": of}
	}
	for i := 1; i <= 40; i++ {
		name := fmt.Sprintf("store-%03d", i)
		conditions := []map[string]any{condition("Progressing", "False", "Completed", "completed", 60)}
		applied := "9f8e7d6c5b4a39281"
		switch {
		case i <= 5:
			applied = "1a2b3c4d5e6f70819"
			conditions = []map[string]any{
				condition("Progressing", "True", "Progressing", "progressing... work is not ready", 41),
				condition("addon.spokelet.io/RolloutFailed", "True", "Failed", "The rollout counts the cluster as failed", 40),
				condition("addon.spokelet.io/WorkloadsReady", "False", "WorkloadNotReady", "image registry.local/logs:1.10 cannot be pulled", 41),
			}
		case i <= 10:
			applied = "1a2b3c4d5e6f70819"
		default:
			conditions = append(conditions, condition("Configured", "False", "ConfigurationsNotConfigured",
				"waiting for the rollout: 5 clusters failed, and maxFailures is 2", 41))
		}
		a := addOn(name, "logs", conditions...)
		part(a, "status")["configReferences"] = []any{map[string]any{
			"resource": "addontemplates", "desiredConfig": hash("1a2b3c4d5e6f70819"), "lastAppliedConfig": hash(applied),
		}}
		h.lists[pathAddOns] = append(h.lists[pathAddOns], a)
	}
	h.lists[pathDefinitions][0]["spec"] = map[string]any{"installStrategy": map[string]any{
		"type": "Placements", "placements": []any{map[string]any{
			"name": "stores", "namespace": "add-ons", "rolloutStrategy": map[string]any{"type": "Progressive", "progressive": map[string]any{
				"maxConcurrency": 5, "maxFailures": "2", "minSuccessTime": "10m", "progressDeadline": "30m",
			}},
		}},
	}}
	h.lists[pathDefinitions][0]["status"] = map[string]any{"installProgressions": []any{map[string]any{
		"name": "stores", "namespace": "add-ons", "conditions": []any{condition("Progressing", "True", "Progressing",
			"10/40 progressing, 5 failed. Stopped: 5 clusters failed, and maxFailures is 2", 40)},
	}}}
	for i, spec := range []string{"9f8e7d6c5b4a39281", "1a2b3c4d5e6f70819"} {
		r := labelled(of(names.NamespaceHub, fmt.Sprint("logs-", i)), map[string]any{
			names.LabelAddonName: "logs", names.LabelConfigRevision: "true",
		})
		part(r, "metadata")["annotations"] = map[string]any{
			names.AnnotationConfigKey: fmt.Sprintf(`{"resource":"addontemplates","name":"logs","specHash":%q}`, spec),
		}
		h.lists[path] = append(h.lists[path], r)
	}
	return h
}

func TestHowFarARolloutIs(t *testing.T) {
	for name, tc := range map[string]struct {
		args   []string
		status int
	}{
		"rollout-status":      {[]string{"rollout", "status", "addon", "logs"}, statusProblem},
		"rollout-status-json": {[]string{"rollout", "status", "addon", "logs", "-o", "json"}, statusProblem},
		"rollout-history":     {[]string{"rollout", "history", "addon", "logs"}, statusWell},
	} {
		t.Run(name, func(t *testing.T) {
			got := plays(t, shelf(), tc.args...)
			assert.Equal(t, tc.status, got.status, got.errs)
			assert.Empty(t, got.errs)
			golden(t, name, got.out)
		})
	}
	got := plays(t, shelf(), "rollout", "status", "logs")
	assert.Equal(t, statusUse, got.status)
	got = plays(t, shelf(), "rollout", "status", "addon", "nothing")
	assert.Equal(t, statusUse, got.status)
	assert.Contains(t, got.errs, "there is no add-on nothing, or it is on no cluster")
}

func TestWhatIsNewBetweenTwoBundles(t *testing.T) {
	earlier, later := filepath.Join(t.TempDir(), "monday.tgz"), filepath.Join(t.TempDir(), "tuesday.tgz")
	before, after := shop(), shop()
	before.lists[pathClusters][6]["spec"] = map[string]any{"hubAcceptsClient": false}
	after.lists[pathClusters] = after.lists[pathClusters][:41]
	require.Equal(t, statusWell, plays(t, before, "bundle", "-f", earlier).status)
	require.Equal(t, statusWell, plays(t, after, "bundle", "-f", later).status)
	got := run(t, "check", "--compare", earlier, later)
	assert.Equal(t, statusProblem, got.status, got.errs)
	golden(t, "check-compare", got.out)
	got = run(t, "check", "--compare", later, later)
	assert.Equal(t, statusWell, got.status, got.errs)
	got = run(t, "check", "--compare", later)
	assert.Equal(t, statusUse, got.status)
	got = run(t, "check", "--compare", later, filepath.Join(t.TempDir(), "missing.tgz"))
	assert.Equal(t, statusBlind, got.status)
}

func TestWhetherItCanBeInstalled(t *testing.T) {
	resources := func(names ...string) map[string]any {
		var all []any
		for _, name := range names {
			all = append(all, map[string]any{"name": name})
		}
		return map[string]any{"resources": all}
	}
	policies := resources("validatingadmissionpolicies")
	for name, tc := range map[string]struct {
		documents map[string]any
		lists     map[string][]map[string]any
		lacks     string
		status    int
	}{
		"pre-well": {documents: map[string]any{"/apis/admissionregistration.k8s.io/v1": policies}, status: statusWell},
		"pre-ocm": {
			documents: map[string]any{
				"/apis/admissionregistration.k8s.io/v1":        policies,
				"/apis/operator.open-cluster-management.io/v1": resources("clustermanagers"),
			},
			lists:  map[string][]map[string]any{"/apis/operator.open-cluster-management.io/v1/clustermanagers": {of("", "cluster-manager")}},
			status: statusWell,
		},
		"pre-lacks": {lacks: "clusterroles", status: statusProblem},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hub{documents: tc.documents, lists: tc.lists, may: func(resource string) bool { return resource != tc.lacks }}
			got := plays(t, h, "check", "--pre")
			assert.Equal(t, tc.status, got.status, got.errs)
			golden(t, name, got.out)
		})
	}
}

func TestShellsCompleteCommands(t *testing.T) {
	got := run(t, "__complete", "rollout", "st")
	assert.Equal(t, statusWell, got.status)
	assert.Contains(t, got.out, "status\tShow the clusters of each placement")
	got = run(t, "__complete", "why", "c")
	assert.Contains(t, got.out, "cluster\ncsr\n")
	for _, shell := range []string{"bash", "zsh", "fish"} {
		got := run(t, "completion", shell)
		assert.Equal(t, statusWell, got.status)
		assert.Contains(t, got.out, "kubectl-spokelet", shell)
	}
	got = run(t, "diff", "--help")
	assert.Contains(t, got.out, "kubectl spokelet diff addon NAME -f FILE")
}

// Two configurations with the same content are two.
func TestTheClustersOfAContentAreThoseOfItsConfiguration(t *testing.T) {
	h := shop()
	hash := func(name string) map[string]any {
		return map[string]any{"namespace": "add-ons", "name": name, "specHash": "5f2c"}
	}
	for i, a := range h.lists[pathAddOns] {
		name := "a"
		if i > 9 {
			name = "b"
		}
		part(a, "status")["configReferences"] = []any{map[string]any{
			"resource": "addondeploymentconfigs", "desiredConfig": hash(name), "lastAppliedConfig": hash(name),
		}}
	}
	for _, name := range []string{"a", "b"} {
		r := labelled(of(names.NamespaceHub, "logs-"+name), map[string]any{
			names.LabelAddonName: "logs", names.LabelConfigRevision: "true",
		})
		part(r, "metadata")["annotations"] = map[string]any{
			names.AnnotationConfigKey: `{"resource":"addondeploymentconfigs","namespace":"add-ons","name":"` + name + `","specHash":"5f2c"}`,
		}
		h.lists["/apis/apps/v1/controllerrevisions"] = append(h.lists["/apis/apps/v1/controllerrevisions"], r)
	}
	got := plays(t, h, "rollout", "history", "addon", "logs")
	assert.Equal(t, statusWell, got.status, got.errs)
	assert.Regexp(t, `add-ons/a +5f2c +2d +5\n`, got.out)
	assert.Regexp(t, `add-ons/b +5f2c +2d +36\n`, got.out)
}
