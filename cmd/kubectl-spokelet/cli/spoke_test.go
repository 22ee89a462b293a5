package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/internal/names"
)

func TestAnswersWithAManagedCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		args   []string
		status int
	}{
		"why-addon-spoke":   {[]string{"why", "addon", "logs", "-n", "store-003", "--spoke-context", "store"}, statusProblem},
		"why-cluster-spoke": {[]string{"why", "cluster", "store-003", "--spoke-context", "store"}, statusWell},
		"why-work-spoke":    {[]string{"why", "work", "addon-logs-deploy-0", "-n", "store-003", "--spoke-context", "store"}, statusProblem},
		"why-spoke-name":    {[]string{"why", "cluster", "store-003", "--spoke-context", "store", "-o", "name"}, statusWell},
		"trace":             {[]string{"trace", "deploy/agent", "-n", "logs", "--context", "store", "--hub-context", "hub"}, statusWell},
		"trace-pod":         {[]string{"trace", "pod/agent-6c9f-x2", "-n", "logs", "--context", "store"}, statusWell},
		"trace-kept":        {[]string{"trace", "secret/kept", "-n", "logs", "--context", "store"}, statusWell},
		"trace-missing":     {[]string{"trace", "cm/x", "-n", "logs", "--context", "store"}, statusProblem},
		"trace-nobody":      {[]string{"trace", "pods/dns", "-n", "kube-system", "--context", "store", "--hub-context", "hub"}, statusProblem},
		"trace-name":        {[]string{"trace", "deploy/agent", "-n", "logs", "--context", "store", "--hub-context", "hub", "-o", "name"}, statusWell},
		"trace-json":        {[]string{"trace", "deploy/agent", "-n", "logs", "--context", "store", "--hub-context", "hub", "-o", "json"}, statusWell},
		"events":            {[]string{"events", "-A"}, statusWell},
		"events-addon":      {[]string{"events", "addon", "logs", "-n", "store-003"}, statusWell},
		"events-cluster":    {[]string{"events", "cluster", "store-003"}, statusWell},
		"events-spoke":      {[]string{"events", "addon", "logs", "-n", "store-003", "--spoke-context", "store"}, statusWell},
		"events-yaml":       {[]string{"events", "cluster", "store-114", "-o", "yaml"}, statusWell},
		"logs-agent":        {[]string{"logs", "agent", "--spoke-context", "store"}, statusWell},
		"logs-agent-errors": {[]string{"logs", "agent", "--spoke-context", "store", "--errors", "-o", "json"}, statusWell},
		"logs-agent-none":   {[]string{"logs", "agent", "--spoke-context", "store", "--agent-namespace", "elsewhere"}, statusProblem},
	} {
		t.Run(name, func(t *testing.T) {
			got := playsBoth(t, reported(shop()), store(), tc.args...)
			assert.Equal(t, tc.status, got.status, got.errs)
			assert.Empty(t, got.errs)
			golden(t, name, got.out)
			assert.NotContains(t, got.out, "c2VjcmV0", "what is in a Secret is nobody's business")
			for line := range strings.Lines(got.out) {
				if !strings.Contains(line, `"`) {
					assert.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\n"))), 130, "a line is wider than the terminal: %s", line)
				}
			}
		})
	}
}

func TestTheClusterShowsWhatTheHubCannotSee(t *testing.T) {
	why := []string{"why", "cluster", "store-114", "--spoke-context", "store", "-o", "json"}
	for sentence, tc := range map[string]struct {
		change func(cluster *hub)
		args   []string
		code   string
		says   string
	}{
		"the image of the agent of a silent cluster cannot be pulled": {
			change: func(c *hub) {
				c.lists[pathDeployments][1]["status"] = map[string]any{"readyReplicas": 0}
				c.lists[pathPods][1]["status"] = map[string]any{"phase": "Pending", "containerStatuses": []any{map[string]any{
					"name": "agent", "image": "i", "state": map[string]any{"waiting": map[string]any{"reason": "ErrImagePull"}},
				}}}
			},
			code: "SPK038", says: "image i of container agent cannot be pulled",
		},
		"the agent of a silent cluster was removed": {
			change: func(c *hub) { c.lists[pathDeployments] = c.lists[pathDeployments][:1] },
			code:   "SPK038", says: "there is no Deployment of an agent",
		},
		"an agent that runs does not explain why its cluster is silent": {change: func(*hub) {}, code: "SPK031"},
		"an agent that may not be looked for explains nothing": {
			change: func(c *hub) { c.forbidden["deployments"] = true }, code: "SPK031",
		},
		"an add-on that the hub takes for well has no pod that runs": {
			change: func(*hub) {}, args: []string{"why", "work", "addon-logs-deploy-0", "-n", "store-003", "--spoke-context", "store", "-o", "json"},
			code: "SPK052", says: "registry.local/logs:1.10",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			cluster := store()
			tc.change(cluster)
			args := tc.args
			if args == nil {
				args = why
			}
			got := playsBoth(t, reported(shop()), cluster, args...)
			assert.Equal(t, statusProblem, got.status, got.errs)
			var a struct {
				Answer struct {
					Problem struct{ Code, Message string }
				}
			}
			require.NoError(t, json.Unmarshal([]byte(got.out), &a), got.out)
			assert.Equal(t, tc.code, a.Answer.Problem.Code)
			assert.Contains(t, a.Answer.Problem.Message, tc.says)
		})
	}
}

func TestAClusterThatDoesNotAnswerIsAGap(t *testing.T) {
	got := playsBoth(t, reported(shop()), store(), "why", "addon", "logs", "-n", "store-003", "--spoke-context", "away")
	assert.Equal(t, statusProblem, got.status, got.errs)
	assert.Contains(t, got.out, "the managed cluster of context away does not answer  [SPK003]")
	assert.Contains(t, got.out, "first cause: a workload is not ready  [SPK052]", "what the hub knows is told")
	got = playsBoth(t, reported(shop()), store(), "events", "addon", "logs", "-n", "store-003", "--spoke-context", "away")
	assert.Equal(t, statusWell, got.status, got.errs)
	assert.Contains(t, got.out, "[SPK003]")
	got = playsBoth(t, shop(), store(), "trace", "pod/x", "--context", "away")
	assert.Equal(t, statusBlind, got.status)
	got = playsBoth(t, shop(), store(), "trace", "deploy/agent", "-n", "logs", "--context", "store", "--hub-context", "away")
	assert.Equal(t, statusBlind, got.status)
	assert.Contains(t, got.out, "AppliedManifestWork hash-addon-logs-deploy-0", "what the cluster knows is told")
}

func TestWhatMayNotBeReadOnTheClusterIsAGapWithItsRule(t *testing.T) {
	cluster := store()
	cluster.forbidden = map[string]bool{"secrets": true, "pods/log": true, "appliedmanifestworks": true, "events": true}
	got := playsBoth(t, reported(shop()), cluster, "why", "addon", "logs", "-n", "store-003", "--spoke-context", "store")
	assert.Equal(t, statusProblem, got.status, got.errs)
	golden(t, "why-addon-spoke-gaps", got.out)
	cluster.forbidden["pods"] = true
	got = playsBoth(t, reported(shop()), cluster, "logs", "agent", "--spoke-context", "store")
	assert.Equal(t, statusBlind, got.status)
	assert.Contains(t, got.errs, `add the rule {apiGroups: [""], resources: [pods], verbs: [list]}`)
	delete(cluster.forbidden, "pods")
	got = playsBoth(t, reported(shop()), cluster, "logs", "agent", "--spoke-context", "store")
	assert.Equal(t, statusBlind, got.status)
	assert.Contains(t, got.errs, `add the rule {apiGroups: [""], resources: [pods/log], verbs: [get]}`)
}

// Secrets are asked for by name, and their metadata alone.
func TestSecretsStayWhereTheyAre(t *testing.T) {
	cluster := store()
	playsBoth(t, reported(shop()), cluster, "why", "addon", "logs", "-n", "store-003", "--spoke-context", "store")
	playsBoth(t, reported(shop()), cluster, "trace", "secret/"+names.SecretHub, "-n", names.NamespaceAgent, "--context", "store")
	secrets := 0
	for i, request := range cluster.asked {
		if !strings.HasSuffix(request, "/secrets") {
			continue
		}
		secrets++
		assert.Contains(t, cluster.accepted[i], "PartialObjectMetadataList", request)
		assert.Contains(t, cluster.queries[i], "metadata.name", request)
	}
	assert.Equal(t, 3, secrets)
}

func TestEventsOfABundle(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.tgz")
	require.Equal(t, statusWell, plays(t, shop(), "bundle", "-f", file).status)
	for _, args := range [][]string{{"events", "-A"}, {"events", "addon", "logs", "-n", "store-003"}, {"events", "cluster", "store-114"}} {
		assert.Equal(t, plays(t, shop(), args...).out, run(t, append([]string{"--from", file}, args...)...).out, "%v", args)
	}
	assert.NotContains(t, unpack(t, file), "no business of ours")
	got := run(t, "--from", file, "events", "-A", "-w")
	assert.Equal(t, statusUse, got.status)
	got = run(t, "--from", file, "logs", "hub")
	assert.Equal(t, statusUse, got.status)
}

func TestTheLeaderComesFirst(t *testing.T) {
	h := shop()
	lease := of(names.NamespaceHub, "spokelet-hub")
	lease["spec"] = map[string]any{"holderIdentity": "spokelet-hub-b_uid"}
	h.lists[pathLeases] = append(h.lists[pathLeases], lease)
	h.logs = map[string]string{}
	for _, name := range []string{"spokelet-hub-a", "spokelet-hub-b"} {
		h.lists[pathPods] = append(h.lists[pathPods], labelled(of(names.NamespaceHub, name), map[string]any{"app": "spokelet-hub"}))
		h.logs["/api/v1/namespaces/"+names.NamespaceHub+"/pods/"+name+"/log"] = "line of " + name
	}
	got := plays(t, h, "logs", "hub")
	assert.Equal(t, statusWell, got.status, got.errs)
	assert.Equal(t, "[spokelet-hub-b] line of spokelet-hub-b\n[spokelet-hub-a] line of spokelet-hub-a\n", got.out)
	got = plays(t, h, "logs", "hub", "-o", "name")
	assert.Equal(t, "pod/spokelet-hub-b\npod/spokelet-hub-a\n", got.out)
}

// Objects and logs of a managed cluster are written by anybody there.
func TestHostileTextOfAClusterDoesNoHarm(t *testing.T) {
	evil := "\x1b]0;owned\x07\x1b[2J\u202egnp.exe\nFAIL  everything\r" + strings.Repeat("x", 1<<20)
	cluster, h := store(), reported(shop())
	cluster.lists[pathEvents] = append(cluster.lists[pathEvents], event("Pod", "logs", "agent-6c9f-x2", "Failed"+evil, evil, 1, 1, 1))
	h.lists[pathEvents] = append(h.lists[pathEvents], event("ManifestWork", "store-003", "addon-logs-deploy-0", "Failed"+evil, evil, 1, 1, 1))
	for path := range cluster.logs {
		cluster.logs[path] = strings.ReplaceAll(evil, "\n", "\nE1129 11:59:31.000000 1 x.go:2] ")
	}
	cluster.lists[pathPods][0]["status"] = map[string]any{"phase": "Failed", "reason": evil, "message": evil}
	part(cluster.lists[pathDeployments][0], "metadata")["managedFields"] = []any{map[string]any{"manager": evil, "operation": evil}}
	part(cluster.lists[pathRecords][0], "spec")["agentID"] = evil
	for _, args := range [][]string{
		{"why", "addon", "logs", "-n", "store-003", "--spoke-context", "store"},
		{"trace", "deploy/agent", "-n", "logs", "--context", "store", "--hub-context", "hub"},
		{"events", "addon", "logs", "-n", "store-003", "--spoke-context", "store"}, {"logs", "agent", "--spoke-context", "store"},
		{"events", "-A"}, {"events", "-A", "-o", "name"},
	} {
		got := playsBoth(t, h, cluster, args...)
		assert.NotEqual(t, statusUse, got.status, "%v: %s", args, got.errs)
		for _, bad := range []string{"\x1b", "\u202e", "\nFAIL", "\r"} {
			assert.NotContains(t, got.out+got.errs, bad, "%v", args)
		}
		assert.Less(t, len(got.out), 64<<10, "%v", args)
	}
}

func TestAWrongUseOfTheCommandsForClusters(t *testing.T) {
	for said, args := range map[string][]string{
		"it is trace KIND/NAME":      {"trace", "deployment"},
		"it is logs hub or logs":     {"logs", "pods"},
		"it is events, events addon": {"events", "pod", "x"},
		`finding the kind "unknown"`: {"trace", "unknown/x", "--context", "store"},
		"leave out -f or -o":         {"logs", "hub", "-f", "-o", "json"},
		`context "nowhere" does not`: {"why", "cluster", "store-003", "--spoke-context", "nowhere"},
	} {
		t.Run(said, func(t *testing.T) {
			got := playsBoth(t, shop(), store(), args...)
			assert.Equal(t, statusUse, got.status)
			assert.Contains(t, got.errs, said)
			assert.Empty(t, got.out)
		})
	}
}

func TestThePageShowsAnswersOfManagedClusters(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "operations", "plugin.md"))
	require.NoError(t, err)
	for _, name := range []string{"why-addon-spoke", "trace", "events", "logs-agent"} {
		answer, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
		require.NoError(t, err)
		assert.Contains(t, string(page), "\n"+string(answer)+"```\n", name)
	}
}
