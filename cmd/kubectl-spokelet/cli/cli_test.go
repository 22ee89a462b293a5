package cli

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var update = flag.Bool("update", false, "write the expected answers again")

// golden compares an answer with the one that is stored.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, "if that is meant: go test ./cli -update")
}

func TestAnswersOfAFleetInTrouble(t *testing.T) {
	for name, tc := range map[string]struct {
		args   []string
		status int
	}{
		"check":                {[]string{"check"}, statusProblem},
		"check-one-cluster":    {[]string{"check", "--cluster", "store-030"}, statusWell},
		"tree":                 {[]string{"tree"}, statusProblem},
		"tree-all":             {[]string{"tree", "addon", "metrics", "--all"}, statusWell},
		"tree-none":            {[]string{"tree", "addon", "nothing"}, statusProblem},
		"tree-name":            {[]string{"tree", "-o", "name"}, statusProblem},
		"tree-cluster":         {[]string{"tree", "cluster", "store-003"}, statusProblem},
		"tree-cluster-all":     {[]string{"tree", "cluster", "store-003", "--all"}, statusProblem},
		"tree-cluster-silent":  {[]string{"tree", "cluster", "store-114"}, statusProblem},
		"tree-cluster-none":    {[]string{"tree", "cluster", "store-999"}, statusProblem},
		"tree-work-none":       {[]string{"tree", "work", "nothing", "-n", "store-001"}, statusProblem},
		"check-name":           {[]string{"check", "-o", "name"}, statusProblem},
		"tree-addon-json":      {[]string{"tree", "addon", "logs", "-o", "json"}, statusProblem},
		"why-addon":            {[]string{"why", "addon", "logs", "-n", "store-003"}, statusProblem},
		"why-addon-well":       {[]string{"why", "addon", "metrics", "-n", "store-003"}, statusWell},
		"why-addon-missing":    {[]string{"why", "addon", "metrics", "-n", "store-114"}, statusProblem},
		"why-addon-no-cluster": {[]string{"why", "addon", "metrics", "-n", "store-999"}, statusProblem},
		"why-addon-silent":     {[]string{"why", "addon", "logs", "-n", "store-114"}, statusProblem},
		"why-cluster":          {[]string{"why", "cluster", "store-114"}, statusProblem},
		"why-cluster-waiting":  {[]string{"why", "cluster", "store-201"}, statusProblem},
		"why-csr":              {[]string{"why", "csr", "store-201-abcde"}, statusProblem},
		"why-work":             {[]string{"why", "work", "addon-logs-deploy-0", "-n", "store-001"}, statusWell},
		"get-clusters":         {[]string{"get", "clusters", "--not-ready"}, statusWell},
		"get-addons":           {[]string{"get", "addons", "-A", "--not-ready"}, statusWell},
		"get-works-name":       {[]string{"get", "works", "-n", "store-001", "-o", "name"}, statusWell},
	} {
		t.Run(name, func(t *testing.T) {
			got := plays(t, shop(), tc.args...)
			assert.Equal(t, tc.status, got.status)
			assert.Empty(t, got.errs)
			golden(t, name, got.out)
			for line := range strings.Lines(got.out) {
				if !strings.Contains(name, "json") {
					assert.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\n"))), 110, "a line is wider than the terminal: %s", line)
				}
			}
		})
	}
}

// inDetail is a shop of which one cluster tells more.
func inDetail() *hub {
	h := shop()
	status := func(o map[string]any) map[string]any { s, _ := o["status"].(map[string]any); return s }
	ends := map[string]any{
		"type": "ClusterCertificateRotated", "status": "True", "reason": "ClientCertificateUpdated", "message": "client " +
			"certificate rotated starting from 2026-11-28 12:00:00 +0000 UTC to 2026-12-02 12:00:00 +0000 UTC",
		"lastTransitionTime": noon().Format(time.RFC3339),
	}
	for _, path := range []string{pathClusters, pathAddOns, pathWorks} {
		for _, o := range h.lists[path] {
			metadata, _ := o["metadata"].(map[string]any)
			if metadata["name"] != "store-003" && metadata["namespace"] != "store-003" {
				continue
			}
			s := status(o)
			conditions, _ := s["conditions"].([]map[string]any)
			s["conditions"] = append(slices.DeleteFunc(conditions, func(c map[string]any) bool { return c["type"] == ends["type"] }), ends)
			s["version"] = map[string]any{"kubernetes": "v1.35.4"}
			s["clusterClaims"] = []any{map[string]any{"name": "agent-version.spokelet.io", "value": "v1.0.0"}}
			s["configReferences"] = []any{map[string]any{
				"resource": "addontemplates", "desiredConfig": map[string]any{"name": "v2", "specHash": "2"},
				"lastAppliedConfig": map[string]any{"name": "v1", "specHash": "1"},
			}}
			if path == pathWorks {
				o["spec"] = map[string]any{"workload": map[string]any{"manifests": []any{map[string]any{}, map[string]any{}}}}
			}
			s["resourceStatus"] = map[string]any{"manifests": []any{
				map[string]any{
					"resourceMeta": map[string]any{"kind": "Deployment", "namespace": "logs", "name": "agent"},
					"conditions":   []any{map[string]any{"type": "Applied", "status": "True"}},
				},
				map[string]any{
					"resourceMeta": map[string]any{"kind": "Secret", "namespace": "logs", "name": "logs"},
					"conditions": []any{map[string]any{
						"type": "Applied", "status": "False", "reason": "AppliedManifestFailed", "message": "a quota refuses it",
						"lastTransitionTime": noon().Add(-time.Hour).Format(time.RFC3339),
					}},
				},
			}}
		}
	}
	h.lists[pathLeases] = []map[string]any{{
		"metadata": map[string]any{"namespace": "store-003", "name": "managed-cluster-lease"},
		"spec":     map[string]any{"renewTime": noon().Add(-20 * time.Second).Format(metav1.RFC3339Micro)},
	}}
	return h
}

func TestMoreIsToldOfWhatIsAskedInDetail(t *testing.T) {
	for name, args := range map[string][]string{
		"get-clusters-wide": {"get", "clusters", "-o", "wide"},
		"get-addons-wide":   {"get", "addons", "-n", "store-003", "-o", "wide"},
		"get-works-wide":    {"get", "works", "-n", "store-003", "-o", "wide"},
		"tree-work":         {"tree", "work", "addon-logs-deploy-0", "-n", "store-003"},
		"tree-work-all":     {"tree", "work", "addon-logs-deploy-0", "-n", "store-003", "--all"},
	} {
		t.Run(name, func(t *testing.T) {
			got := plays(t, inDetail(), args...)
			assert.Empty(t, got.errs)
			golden(t, name, got.out)
		})
	}
}

func TestAnswersFitTerminalsOfEachWidth(t *testing.T) {
	server := httptest.NewServer(inDetail())
	defer server.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, []byte(kubeconfig(server.URL)), 0o600))
	for answer, args := range map[string][]string{
		"check": {"check"}, "tree": {"tree"}, "tree-cluster": {"tree", "cluster", "store-114", "--all"},
		"why-addon": {"why", "addon", "logs", "-n", "store-005"}, "why-cluster": {"why", "cluster", "store-114"},
		"get-addons": {"get", "addons", "-n", "store-005"}, "rollout": {"rollout", "status", "addon", "logs"},
	} {
		for _, width := range []int{60, 80, 200} {
			for _, language := range []string{"C", "de_DE.UTF-8"} {
				name := fmt.Sprintf("%s-%d-%s", answer, width, language[:1])
				t.Run(name, func(t *testing.T) {
					in := map[string]string{"COLUMNS": strconv.Itoa(width), "LANG": language}
					got := runIn(t.Context(), t, in, append([]string{"--kubeconfig", file}, args...)...)
					assert.Empty(t, got.errs)
					said := strings.ReplaceAll(got.out, server.URL, "https://hub.example")
					golden(t, filepath.Join("widths", name), said)
					for line := range strings.Lines(said) {
						line = strings.TrimSuffix(line, "\n")
						if !strings.HasPrefix(strings.TrimSpace(line), "next: ") { // A command stays whole, to be copied.
							assert.LessOrEqual(t, len([]rune(line)), width, line)
						}
						if language == "C" {
							assert.Len(t, []rune(line), len(line), "only ASCII")
						}
					}
				})
			}
		}
	}
}

func TestNothingIsWritten(t *testing.T) {
	h := shop()
	for _, args := range [][]string{
		{"check"}, {"tree"}, {"why", "addon", "logs", "-n", "store-003"}, {"get", "works", "-A"}, {"why", "cluster", "store-201"},
		{"bundle", "-f", filepath.Join(t.TempDir(), "x.tgz")},
	} {
		plays(t, h, args...)
	}
	require.NotEmpty(t, h.asked)
	for _, request := range h.asked {
		assert.True(t, strings.HasPrefix(request, "GET "), request)
	}
}

func TestAWrongUseSaysWhatIsRight(t *testing.T) {
	for said, args := range map[string][]string{
		"why, one of addon, cluster, work, csr, and a name":        {"why", "pod", "x"},
		"it is get clusters, get addons, get works or get windows": {"get", "pods"},
		"unknown command":        {"explain"},
		"unknown flag: --nowait": {"check", "--nowait"},
		"--output is json, yaml, name or wide, and not \"xml\"":             {"check", "-o", "xml"},
		"-f names the file to write":                                        {"bundle"},
		"it is tree, tree addon NAME, tree cluster NAME, or tree work NAME": {"tree", "pod", "w"},
		"[wait watch] were all set":                                         {"check", "-w", "--wait", "1m"},
	} {
		t.Run(said, func(t *testing.T) {
			got := plays(t, shop(), args...)
			assert.Equal(t, statusUse, got.status)
			assert.Contains(t, got.errs, said)
			assert.Empty(t, got.out)
		})
	}
}

func TestWhatMayNotBeReadIsAGapOfTheAnswer(t *testing.T) {
	h := shop()
	h.forbidden = map[string]bool{"clustermanagementaddons": true, "placementdecisions": true, "certificatesigningrequests": true}
	got := plays(t, h, "why", "addon", "logs", "-n", "store-003")
	assert.Equal(t, statusProblem, got.status)
	golden(t, "why-addon-gaps", got.out)
	got = plays(t, h, "check")
	assert.Equal(t, statusProblem, got.status)
	assert.Contains(t, got.out, "certificatesigningrequests.certificates.k8s.io may not be read  [SPK002]")
	assert.Contains(t, got.out, `add the rule {apiGroups: ["certificates.k8s.io"], resources: [certificatesigningrequests], verbs: [list]}`)

	h.forbidden = map[string]bool{"managedclusters": true, "managedclusteraddons": true}
	got = plays(t, h, "check")
	assert.Equal(t, statusBlind, got.status, "nothing could be looked at")
	assert.Contains(t, got.errs, "add the rule")
}

func TestAHubThatDoesNotAnswer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	content := `{"apiVersion": "v1", "kind": "Config", "current-context": "c",
"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "users": [{"name": "u", "user": {}}],
"clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}]}`
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	got := run(t, "--kubeconfig", file, "check")
	assert.Equal(t, statusBlind, got.status)
	assert.Contains(t, got.errs, "the hub does not answer")
}

func TestALongListComesInPages(t *testing.T) {
	whole, pages := shop(), shop()
	pages.pages = 7
	for _, args := range [][]string{{"check"}, {"tree"}, {"get", "works", "-A"}} {
		assert.Equal(t, plays(t, whole, args...), plays(t, pages, args...), "%v", args)
	}
	assert.Greater(t, len(pages.asked), len(whole.asked)+20)
}

func TestAHubBehindAProxy(t *testing.T) {
	h := shop()
	h.prefix = "/clusters/hub"
	got := plays(t, h, "tree")
	assert.Equal(t, statusProblem, got.status, got.errs)
	assert.Equal(t, plays(t, shop(), "tree").out, got.out)
}

// An expert elsewhere sees what the person on call sees, and nothing that is secret.
func TestABundleGivesTheSameAnswers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.tgz")
	got := plays(t, shop(), "bundle", "-f", file)
	require.Equal(t, statusWell, got.status, got.errs)
	for _, args := range [][]string{
		{"tree"}, {"why", "addon", "logs", "-n", "store-003"}, {"why", "cluster", "store-114"}, {"get", "addons", "-A", "--not-ready"},
	} {
		live, stored := plays(t, shop(), args...), run(t, append([]string{"--from", file}, args...)...)
		assert.Equal(t, live.status, stored.status, "%v", args)
		said := strings.ReplaceAll(stored.out, "next, on the hub of the bundle: ", "next: ")
		assert.Equal(t, live.out, said, "%v", args)
	}
	hub := governed(t, shop())
	require.Equal(t, statusWell, plays(t, hub, "bundle", "-f", file).status)
	live, stored := plays(t, hub, "check"), run(t, "check", "--from", file)
	const begin = "  ok    hub manager"
	_, ofLive, is := strings.Cut(live.out, begin)
	require.True(t, is, live.out)
	_, ofStored, _ := strings.Cut(strings.ReplaceAll(stored.out, "next, on the hub of the bundle: ", "next: "), begin)
	assert.Equal(t, ofLive, ofStored, "the hub itself is in a bundle, too")
	unpacked := unpack(t, file)
	for _, secret := range []string{"hunter2", "c2VjcmV0"} {
		assert.NotContains(t, unpacked, secret)
	}
	require.NoError(t, os.WriteFile(file, []byte("no bundle"), 0o600))
	assert.Equal(t, statusBlind, run(t, "--from", file, "check").status)
}

// Names, reasons and messages are written by agents.
func TestHostileTextDoesNoHarm(t *testing.T) {
	evil := "\x1b]0;owned\x07\x1b[2J\u202egnp.exe\nFAIL  everything\r" + strings.Repeat("x", 1<<20)
	h := shop()
	h.lists[pathClusters] = append(h.lists[pathClusters],
		cluster("store-666", condition("ManagedClusterConditionAvailable", "Unknown", evil, evil, 5)))
	h.lists[pathAddOns] = append(h.lists[pathAddOns], addOn("store-666", "logs", condition("ManifestApplied", "False", evil, evil, 5)))
	for _, args := range [][]string{
		{"check"}, {"tree"}, {"why", "cluster", "store-666"}, {"why", "addon", "logs", "-n", "store-666"}, {"get", "addons", "-A"},
	} {
		got := plays(t, h, args...)
		assert.NotContains(t, got.out, "\x1b", "%v", args)
		assert.NotContains(t, got.out, "\u202e", "%v", args)
		assert.NotContains(t, got.out, "\nFAIL", "%v", args)
		assert.Less(t, len(got.out), 64<<10, "%v", args)
	}
}

func TestJSONHasItsSchema(t *testing.T) {
	got := plays(t, shop(), "why", "addon", "logs", "-n", "store-003", "-o", "json")
	var a struct {
		Schema, Kind, Hub string
		Answer            struct {
			Healthy bool
			Same    int
			Problem struct{ Code, Next string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got.out), &a))
	assert.Equal(t, "spokelet.io/cli/v1", a.Schema)
	assert.Equal(t, "why", a.Kind)
	assert.False(t, a.Answer.Healthy)
	assert.Equal(t, 4, a.Answer.Same)
	assert.Equal(t, "SPK052", a.Answer.Problem.Code)
}

func TestThePageShowsTheseAnswers(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "operations", "plugin.md"))
	require.NoError(t, err)
	for _, name := range []string{"check", "tree", "why-addon", "diff-two", "rollout-status", "rollout-policy", "get-windows", "pre-ocm"} {
		answer, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
		require.NoError(t, err)
		assert.Contains(t, string(page), string(answer), name)
	}
}
