package report

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/unready"
)

// noon is the time of the tests.
func noon() time.Time { return time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC) }

func TestWhichLinesOfALogAreErrors(t *testing.T) {
	for sentence, tc := range map[string]struct {
		line, says string
		bad        bool
	}{
		"an error in JSON":                 {`{"level":"error","msg":"reading","error":"refused"}`, "reading: refused", true},
		"a note in JSON":                   {`{"level":"info","msg":"error"}`, `{"level":"info","msg":"error"}`, false},
		"an error of klog":                 {`E1129 11:59:31.000000       1 r.go:204] "Failed" err="x"`, `"Failed" err="x"`, true},
		"a fatal error of klog":            {`F1129 11:59:31.000000       1 r.go:204] end`, "end", true},
		"a warning of klog":                {`W1129 11:59:31.000000       1 r.go:204] hm`, `W1129 11:59:31.000000       1 r.go:204] hm`, false},
		"a panic":                          {"panic: nil map", "panic: nil map", true},
		"a program that refuses its flags": {"Error: unknown flag", "Error: unknown flag", true},
		"JSON that is none":                {"{", "{", false},
		"a text that begins like klog's":   {"E-mail", "E-mail", false},
		"nothing":                          {"", "", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			says, bad := ErrorOf(tc.line)
			assert.Equal(t, tc.says, says)
			assert.Equal(t, tc.bad, bad)
		})
	}
}

func TestWhatTheClusterAddsToTheFirstCause(t *testing.T) {
	broken := []Workload{{
		Target: unready.Target{Kind: "Deployment", Namespace: "ns", Name: "d"}, Read: true, Found: true,
		State: unready.State{Wanted: 1}, Why: "the image is gone",
	}}
	well := []Workload{{Target: broken[0].Target, Read: true, Found: true, State: unready.State{Wanted: 1, Have: 1, Ready: true}}}
	asleep := []Workload{{Target: broken[0].Target, Read: true, Found: true, State: unready.State{Ready: true}}}
	starting := []Workload{{Target: broken[0].Target, Read: true, Found: true, State: unready.State{Wanted: 1}}}
	for sentence, tc := range map[string]struct {
		hub  causes.Code
		side ClusterSide
		want causes.Code
	}{
		"a cluster that was not reached adds nothing": {hub: causes.LeaseMissing, side: ClusterSide{Workloads: broken}, want: causes.LeaseMissing},
		"a healthy cluster adds nothing":              {side: ClusterSide{Cluster: "c", Workloads: well, Agents: well}},
		"a pod that explains a missing lease": {
			hub: causes.LeaseMissing, side: ClusterSide{Cluster: "c", Workloads: broken, Agents: well}, want: causes.WorkloadNotReady,
		},
		"a pod that has trouble while the hub knows of none": {
			side: ClusterSide{Cluster: "c", Workloads: broken, Agents: well}, want: causes.WorkloadNotReady,
		},
		"a pod that is only starting is no cause":            {side: ClusterSide{Cluster: "c", Workloads: starting, Agents: well}},
		"what comes earlier in the chain stays":              {hub: causes.NotRendered, side: ClusterSide{Cluster: "c", Workloads: broken}, want: causes.NotRendered},
		"an agent that cannot start explains a silence":      {hub: causes.ClusterSilent, side: ClusterSide{Cluster: "c", Agents: broken}, want: causes.AgentDown},
		"an agent that runs does not":                        {hub: causes.ClusterSilent, side: ClusterSide{Cluster: "c", Agents: well}, want: causes.ClusterSilent},
		"no agent at all explains that a cluster is silent":  {hub: causes.ClusterSilent, side: ClusterSide{Cluster: "c", AgentNamespace: "ns"}, want: causes.AgentDown},
		"no agent where the cluster is alive is elsewhere":   {side: ClusterSide{Cluster: "c", AgentNamespace: "ns"}},
		"an agent that is scaled to zero explains a silence": {hub: causes.ClusterSilent, side: ClusterSide{Cluster: "c", Agents: asleep}, want: causes.AgentDown},
		"one of two agents that is scaled to zero does not": {
			hub: causes.ClusterSilent, side: ClusterSide{Cluster: "c", Agents: append(asleep, well...)}, want: causes.ClusterSilent,
		},
		"a workload that is gone while the hub knows of no trouble": {
			side: ClusterSide{Cluster: "c", Workloads: []Workload{{Target: broken[0].Target, Read: true}}, Agents: well}, want: causes.WorkNotAvailable,
		},
		"an agent that may not be looked for is not absent": {
			hub: causes.ClusterSilent, want: causes.ClusterSilent,
			side: ClusterSide{Cluster: "c", AgentNamespace: "ns", Lacks: func(plural string) bool { return plural == "deployments" }},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			chain := Chain{Kind: KindAddOn, Namespace: "c1", Name: "a", Healthy: tc.hub == ""}
			if tc.hub != "" {
				chain.Problem = &Problem{Code: tc.hub, Title: causes.Titles()[tc.hub]}
			}
			got := chain.With(tc.side)
			assert.Equal(t, tc.want == "", got.Healthy)
			if tc.want == "" {
				assert.Nil(t, got.Problem)
				return
			}
			require.NotNil(t, got.Problem)
			assert.Equal(t, tc.want, got.Problem.Code)
			assert.Equal(t, causes.Titles()[tc.want], got.Problem.Title)
		})
	}
}

func TestTheStepsOfACluster(t *testing.T) {
	target := unready.Target{Kind: "Deployment", Namespace: "ns", Name: "d"}
	evicted := fleet.Record{}
	evicted.Status.Eviction = &metav1.Time{Time: noon()}
	for sentence, tc := range map[string]struct {
		step  Step
		state State
		says  string
	}{
		"a work that the agent has not recorded": {
			ClusterSide{Works: []string{"w"}}.recorded(), Failed, "the agent has no AppliedManifestWork of work w",
		},
		"a work whose objects are about to go": {
			ClusterSide{Works: []string{"w"}, Records: map[string]fleet.Record{"w": evicted}}.recorded(), Warning, "0 objects",
		},
		"a workload that was deleted": {
			ClusterSide{Workloads: []Workload{{Target: target, Read: true}}}.running(), Failed, "Deployment ns/d does not exist",
		},
		"a workload that may not be read": {ClusterSide{Workloads: []Workload{{Target: target}}}.running(), Waiting, "cannot be read"},
		"a workload with fewer pods than it wants": {
			ClusterSide{Workloads: []Workload{{Target: target, Read: true, Found: true,
				State: unready.State{Ready: true, Wanted: 2, Have: 1}}}}.running(), Warning, "1 of 2 ready",
		},
		"two workloads that are ready": {
			ClusterSide{Workloads: []Workload{{Target: target, Read: true, Found: true, State: unready.State{Ready: true}},
				{Target: target, Read: true, Found: true, State: unready.State{Ready: true}}}}.running(), OK, "2 of 2 workloads",
		},
		"a Secret that is there":     {ClusterSide{Secrets: []Presence{{Name: "s", Read: true, There: true}}}.secrets()[0], OK, "s is there"},
		"a Secret that is not there": {ClusterSide{Secrets: []Presence{{Name: "s", Read: true}}}.secrets()[0], Warning, "s is not there"},
		"a Secret that nobody says":  {ClusterSide{Secrets: []Presence{{Name: "s"}}}.secrets()[0], Waiting, "cannot be read"},
		"a log without errors":       {ClusterSide{Log: "p"}.logged(), OK, "no errors in the last lines of pod p"},
		"an agent of another place":  {ClusterSide{AgentNamespace: "ns"}.agent(), Warning, "no Deployment of an agent in namespace ns"},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, tc.state, tc.step.State)
			assert.Contains(t, tc.step.Evidence, tc.says)
		})
	}
}

func TestEqualEventsAreOneRow(t *testing.T) {
	one := func(namespace, name, text string, minute, count int) fleet.Event {
		e := fleet.Event{Type: "Warning", Reason: "R", Message: text, Count: count}
		e.Object.Kind, e.Object.Namespace, e.Object.Name = "ManifestWork", namespace, name
		e.Last = &metav1.Time{Time: noon().Add(time.Duration(minute) * time.Minute)}
		e.First = &metav1.Time{Time: noon()}
		return e
	}
	rows := Events([]fleet.Event{
		one("b", "w", "x", 5, 2), one("a", "w", "x", 9, 1), one("a", "w", "y", 1, 1), one("a", "v", "x", 2, 1), one("a", "w", "x", 3, 1),
	}, SideCluster)
	require.Len(t, rows, 3)
	assert.Equal(t, "y", rows[0].Message, "what happened last comes last")
	last := rows[2]
	assert.Equal(t, []string{"a", "b"}, last.Namespaces)
	assert.Equal(t, 4, last.Count)
	assert.Equal(t, noon().Add(9*time.Minute), last.Last)
	assert.Equal(t, SideCluster, last.Side)
}

func TestWhereATraceEnds(t *testing.T) {
	object := func(owner string) fleet.Traced {
		o := fleet.Traced{Kind: "Pod"}
		o.Metadata.Namespace, o.Metadata.Name = "ns", "p"
		if owner != "" {
			o.Metadata.Owners = []metav1.OwnerReference{{Kind: "Job", Name: owner}}
		}
		return o
	}
	helm := object("")
	helm.Metadata.Annotations = map[string]string{"meta.helm.sh/release-name": "r"}
	helm.Metadata.Writers = []metav1.ManagedFieldsEntry{
		{Manager: "kubelet", Subresource: "status", Time: &metav1.Time{Time: noon()}},
		{Manager: "old", Time: &metav1.Time{Time: noon().Add(-time.Hour)}}, {Manager: "helm", Time: &metav1.Time{Time: noon()}},
	}
	record := TracedRecord{Owned: object("")}
	for sentence, tc := range map[string]struct {
		facts TraceFacts
		code  causes.Code
		says  string
	}{
		"an object that does not exist": {TraceFacts{Kind: "Pod", Name: "p"}, causes.ObjectMissing, "Pod p does not exist"},
		"an object that nothing owns":   {TraceFacts{Objects: []fleet.Traced{object("")}}, causes.Untraced, "nothing owns it"},
		"an object that others own":     {TraceFacts{Objects: []fleet.Traced{object("j")}}, causes.Untraced, "which Job j owns"},
		"an object of Helm": {
			TraceFacts{Objects: []fleet.Traced{helm}}, causes.Untraced, "it is release r of Helm; helm wrote it last",
		},
		"an object of a work": {TraceFacts{Objects: []fleet.Traced{object("")}, Records: []TracedRecord{record}}, "", ""},
		"a work that the hub does not have": {
			TraceFacts{Objects: []fleet.Traced{object("")}, Records: []TracedRecord{record}, Works: []TracedWork{{
				Name: "w", Cluster: "c", Links: []Link{{Step: "work", Missing: true}},
			}}}, causes.WorksMissing, "the hub has no ManifestWork w in namespace c",
		},
		"a cluster whose name nobody says": {
			TraceFacts{Objects: []fleet.Traced{object("")}, Records: []TracedRecord{record}, Works: []TracedWork{{Unknown: "which"}}},
			causes.WorkNotSeen, "which",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := TraceOf(tc.facts)
			if tc.code == "" {
				assert.Nil(t, got.Problem)
				return
			}
			require.NotNil(t, got.Problem)
			assert.Equal(t, tc.code, got.Problem.Code)
			assert.Contains(t, got.Problem.Message, tc.says)
		})
	}
}

func TestEqualProblemsAreOneGroup(t *testing.T) {
	all := []Problem{
		{Code: "SPK052", Kind: KindAddOn, Namespace: "a", Name: "logs"}, {Code: "SPK052", Kind: KindAddOn, Namespace: "b", Name: "logs"},
		{Code: "SPK053", Kind: KindAddOn, Namespace: "c", Name: "logs"},
		{Code: "SPK031", Kind: KindAddOn, Namespace: "d", Name: "logs", Behind: true},
		{Code: "SPK031", Kind: KindCluster, Name: "d"}, {Code: "SPK031", Kind: KindCluster, Name: "e"},
	}
	groups := Groups(all)
	said := make([]string, 0, len(groups))
	for _, g := range groups {
		said = append(said, g.Name())
	}
	assert.Equal(t, []string{"cluster/d", "cluster/e", "addon/logs on 2 clusters, first a", "addon/logs on c"}, said)
}

func TestProblemsOfOneKindAreAlike(t *testing.T) {
	const crash = "Deployment logs/agent is not ready. Pod logs/%s: container agent crashes again and again"
	for sentence, tc := range map[string]struct {
		one, other string
		alike      bool
	}{
		"the same":                        {"x", "x", true},
		"names of the clusters":           {"cluster c1 is away", "cluster c2 is away", true},
		"names of pods, without a digit":  {fmt.Sprintf(crash, "agent-bcdfg-xkcdz"), fmt.Sprintf(crash, "agent-6c9f-x2"), true},
		"numbers":                         {"0/3 nodes are available", "0/12 nodes are available", true},
		"hashes and UUIDs":                {"id 0d3ab6f2-aaaa-bbbb-cccc-0123456789ab", "id ab3ab6f2-1234-bbbb-dddd-0123456789ab", true},
		"instants":                        {"since 2026-11-01T00:00:00Z", "since 2026-12-24T18:30:00Z", true},
		"another trouble of a pod":        {fmt.Sprintf(crash, "agent-x"), "Deployment logs/agent is not ready. Pod logs/agent-x: it failed", false},
		"another workload":                {"Deployment logs/agent is not ready", "Deployment logs/collector is not ready", false},
		"a word that is like the cluster": {"c1x", "c2y", true},
		"no words":                        {"...", "…", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, tc.alike, Alike(tc.one, "c1") == Alike(tc.other, "c2"), "%q and %q", Alike(tc.one, "c1"), Alike(tc.other, "c2"))
		})
	}
}
