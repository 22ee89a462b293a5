package cli

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/internal/names"
)

// The last that a cluster said before it fell silent is the last that is known, and no cause of its silence: a shop that
// loses its power loses its pods first.
func TestWhatASilentClusterSaidLastIsNotTheFirstCause(t *testing.T) {
	h := shop()
	for i, one := range h.lists[pathAddOns] {
		if part(one, "metadata")["namespace"] == "store-114" {
			h.lists[pathAddOns][i] = addOn("store-114", "logs",
				condition("addon.spokelet.io/WorkloadsReady", "False", "WorkloadNotReady", "Deployment logs/agent is not ready.", 254),
				condition("Available", "Unknown", "ManagedClusterLeaseUpdateStopped", "Registration agent stopped updating its lease.", 252))
		}
	}
	got := plays(t, h, "why", "addon", "logs", "-n", "store-114")
	assert.Equal(t, statusProblem, got.status)
	assert.Contains(t, got.out, "first cause: the heartbeat of a cluster stopped  [SPK031]")
	got = plays(t, h, "check")
	assert.NotContains(t, got.out, "kubectl spokelet why addon logs -n store-114", "the cluster explains it")
}

// What a silent cluster has to do does not happen because it is silent.
func TestASilentClusterExplainsWhatItHasToDo(t *testing.T) {
	deleted := func(conditions ...map[string]any) map[string]any {
		a := addOn("store-114", "logs", conditions...)
		part(a, "metadata")["deletionTimestamp"] = ago(200)
		part(a, "metadata")["finalizers"] = []any{"addon.open-cluster-management.io/addon-pre-delete"}
		return a
	}
	silent := condition("Available", "Unknown", "ManagedClusterLeaseUpdateStopped", "Registration agent stopped updating its lease.", 252)
	for sentence, a := range map[string]map[string]any{
		"the hook of a deletion, with our hub": deleted(silent, condition("addon.spokelet.io/Deleting", "False", "WaitingForHook",
			"The pre-delete hook runs on cluster store-114 and is not complete", 199)),
		"the hook of a deletion, with OCM's hub": deleted(silent, condition("HookManifestCompleted", "False",
			"HookManifestIsNotCompleted", "hook manifestWork is not completed", 199)),
	} {
		t.Run(sentence, func(t *testing.T) {
			h := shop()
			for i, one := range h.lists[pathAddOns] {
				if part(one, "metadata")["namespace"] == "store-114" {
					h.lists[pathAddOns][i] = a
				}
			}
			got := plays(t, h, "why", "addon", "logs", "-n", "store-114")
			assert.Equal(t, statusProblem, got.status)
			assert.Contains(t, got.out, "first cause: the heartbeat of a cluster stopped  [SPK031]")
		})
	}
}

// What "why" explains by a cluster is no trouble of its own for "check": one cluster with twenty add-ons is one row.
func TestCheckAndWhyAgreeOnWhatAClusterExplains(t *testing.T) {
	h := shop()
	h.lists[pathClusters][19] = cluster("store-020", condition("ManagedClusterConditionAvailable", "False",
		"ManagedClusterKubeAPIServerUnavailable", "The kube-apiserver is not ok", 20))
	for i, a := range h.lists[pathAddOns] {
		if m := part(a, "metadata"); m["namespace"] == "store-020" {
			h.lists[pathAddOns][i] = addOn("store-020", fmt.Sprint(m["name"]), condition("Available", "False",
				"ManagedClusterAddOnLeaseUpdateStopped", "The lease is not updated", 15))
		}
	}
	got := plays(t, h, "why", "addon", "metrics", "-n", "store-020")
	require.Contains(t, got.out, "first cause: the API server of a cluster does not answer its agent  [SPK032]")
	got = plays(t, h, "check")
	assert.Contains(t, got.out, "[SPK032]")
	assert.NotContains(t, got.out, "[SPK053]", "it has the same cause, and sends the person to the wrong place")
}

// The hub sets Available of each add-on to Unknown with its cluster. For an add-on that reports its health itself nobody
// takes that back when the cluster is there again: then the heartbeat of the cluster is no cause any more.
func TestAHeartbeatThatCameBackIsNotTheFirstCause(t *testing.T) {
	h := shop()
	h.lists[pathAddOns] = append(h.lists[pathAddOns], addOn("store-020", "backup",
		condition("Available", "Unknown", "ManagedClusterLeaseUpdateStopped", "Registration agent stopped updating its lease.", 2000)))
	got := plays(t, h, "why", "addon", "backup", "-n", "store-020")
	assert.Equal(t, statusProblem, got.status)
	assert.NotContains(t, got.out, "first cause: the heartbeat of a cluster stopped", "it has been back for 1000 minutes")
	assert.Contains(t, got.out, "[SPK059]")
	for _, args := range [][]string{{"get", "addons", "-n", "store-020"}, {"check"}, {"tree", "cluster", "store-020"}} {
		assert.Contains(t, plays(t, h, args...).out, "SPK059", "%v", args)
	}
}

// A configuration that an add-on does not support never gets in force, whatever else works. OCM's hub says that in
// Progressing alone.
func TestAConfigurationThatIsNotSupportedIsSeen(t *testing.T) {
	h := shop()
	a := addOn("store-020", "backup", condition("Progressing", "False", "ConfigurationUnsupported",
		"Configuration with gvr addon.open-cluster-management.io/addonhubconfigs is not supported for this addon", 300))
	part(a, "status")["configReferences"] = []any{map[string]any{
		"group": "addon.open-cluster-management.io", "resource": "addonhubconfigs", "desiredConfig": map[string]any{"name": "x", "specHash": "1"},
	}}
	h.lists[pathAddOns] = append(h.lists[pathAddOns], a)
	got := plays(t, h, "why", "addon", "backup", "-n", "store-020")
	assert.Equal(t, statusProblem, got.status, got.out)
	assert.Contains(t, got.out, "[SPK041]")
}

// An add-on whose agent lives and whose second work lost an object is not well, and an answer does not contradict
// itself.
func TestAnAddOnWithAFailedStepIsNotWell(t *testing.T) {
	h := shop()
	second := work("store-020", "logs", condition("Applied", "True", "AppliedManifestWorkComplete", "", 800),
		condition("Available", "False", "ResourcesNotAvailable", "1 of 1 resources are not available", 30))
	part(second, "metadata")["name"] = "addon-logs-deploy-1"
	h.lists[pathWorks] = append(h.lists[pathWorks], second)
	got := plays(t, h, "why", "addon", "logs", "-n", "store-020")
	assert.Equal(t, statusProblem, got.status, got.out)
	assert.NotContains(t, got.out, "is well")
	assert.Contains(t, got.out, "[SPK071]")
	// A work that the agent is about to see again moves, and what moves is well as long as it works.
	h = shop()
	for _, w := range h.lists[pathWorks] {
		if m := part(w, "metadata"); m["namespace"] == "store-020" {
			m["generation"] = 2
		}
	}
	got = plays(t, h, "why", "addon", "logs", "-n", "store-020")
	assert.Equal(t, statusWell, got.status, got.out)
	assert.NotContains(t, got.out, "FAIL")
	assert.Contains(t, got.out, "the agent has not seen a work: addon-logs-deploy-0")
}

// Two troubles of one code are not one trouble: the second must be seen.
func TestAnotherTroubleOfTheSameCodeIsSeen(t *testing.T) {
	h := shop()
	for i, one := range h.lists[pathAddOns] {
		m := part(one, "metadata")
		if m["namespace"] == "store-030" && m["name"] == "logs" {
			h.lists[pathAddOns][i] = addOn("store-030", "logs",
				condition("addon.spokelet.io/WorkloadsReady", "False", "WorkloadNotReady",
					"Deployment logs/agent is not ready. Pod logs/agent-1: container agent crashes again and again", 3),
				condition("Available", "False", "ProbeUnavailable", "Deployment logs/agent is not ready", 3))
		}
	}
	for _, args := range [][]string{{"check"}, {"check", "-o", "json"}} {
		got := plays(t, h, args...)
		assert.Contains(t, got.out, "again and again", "%v: nothing names the crash on store-030", args)
	}
	got := plays(t, h, "why", "addon", "logs", "-n", "store-030")
	assert.NotContains(t, got.out, "5 other clusters have the same trouble", "their image cannot be pulled; it has no such trouble")
}

func TestTheTreeOfAnAddOnHasNoClusterThatDoesNotHaveIt(t *testing.T) {
	got := plays(t, shop(), "tree", "addon", "metrics")
	assert.NotContains(t, got.out, "store-114", "it has no add-on metrics")
	assert.NotContains(t, got.out, "store-201", "it has no add-on metrics")
	assert.Equal(t, statusWell, got.status, "the add-on is well on all its clusters")
}

// The hub writes what a cluster is to have before it writes that the rollout goes on. In between the rollout is not
// complete: "kubectl apply" and "rollout status --wait" follow each other in a script.
func TestARolloutThatHasJustBegunIsNotComplete(t *testing.T) {
	h := shop()
	for _, a := range h.lists[pathAddOns] {
		status := part(a, "status")
		conditions, _ := status["conditions"].([]map[string]any)
		status["conditions"] = append(conditions, condition("Progressing", "False", "Completed", "completed", 900))
		status["configReferences"] = []any{map[string]any{
			"resource":          "addontemplates",
			"desiredConfig":     map[string]any{"name": "logs", "specHash": "new"},
			"lastAppliedConfig": map[string]any{"name": "logs", "specHash": "old"},
		}}
	}
	got := plays(t, h, "rollout", "status", "addon", "metrics")
	assert.NotContains(t, got.out, "is complete")
	assert.Equal(t, statusProblem, got.status)
}

// hosts is a hub where store-020 hosts add-on logs of store-021, whose work is not applied. All of store-020 is well.
func hosts() *hub {
	h := shop()
	w := work("store-020", "logs", condition("Applied", "False", "AppliedManifestWorkFailed", "Failed to apply", 30),
		condition("Available", "False", "ResourcesNotAvailable", "", 30))
	labelled(w, map[string]any{names.LabelAddonName: "logs", names.LabelAddonNamespace: "store-021"})
	part(w, "metadata")["name"] = "addon-logs-deploy-hosting-0"
	part(w, "status")["resourceStatus"] = map[string]any{"manifests": []any{map[string]any{
		"resourceMeta": map[string]any{"group": "apps", "version": "v1", "kind": "Deployment", "resource": "deployments",
			"name": "agent", "namespace": "logs"},
	}}}
	h.lists[pathWorks] = append(h.lists[pathWorks], w)
	for _, a := range h.lists[pathAddOns] {
		if m := part(a, "metadata"); m["namespace"] == "store-021" && m["name"] == "logs" {
			m["annotations"] = map[string]any{"addon.open-cluster-management.io/hosting-cluster-name": "store-020"}
		}
	}
	return h
}

// The works that a cluster hosts for others are not those of its own add-on.
func TestAHostedWorkOfAnotherClusterIsNoTroubleOfAnAddOn(t *testing.T) {
	got := plays(t, hosts(), "why", "addon", "logs", "-n", "store-020")
	assert.NotContains(t, got.out, "FAIL", got.out)
	got = playsBoth(t, hosts(), store(), "why", "addon", "logs", "-n", "store-020", "--spoke-context", "store")
	assert.Equal(t, statusWell, got.status, "it is well: %s", got.out)
}

// The works of a hosted add-on are in the namespace of its hosting cluster.
func TestTheWorksOfAHostedAddOnAreFound(t *testing.T) {
	h := hosts()
	h.lists[pathWorks] = []map[string]any{h.lists[pathWorks][len(h.lists[pathWorks])-1]}
	got := plays(t, h, "why", "addon", "logs", "-n", "store-021")
	assert.Contains(t, got.out, "addon-logs-deploy-hosting-0")
	assert.NotContains(t, got.out, "there is no ManifestWork")
}

// OCM's hub leaves the conditions of the hosted mode as they were when an add-on leaves that mode. They say nothing of an
// add-on without a hosting cluster.
func TestAnAddOnThatIsNotHostedHasNoTroubleWithAHostingCluster(t *testing.T) {
	h := shop()
	h.lists[pathAddOns] = append(h.lists[pathAddOns], addOn("store-020", "backup",
		condition("HostingClusterValidity", "False", "HostingClusterInvalid", "hosting cluster hub-1 is not a managed cluster", 60000),
		condition("HostingManifestApplied", "False", "ManifestWorkApplyFailed", "", 60000)))
	got := plays(t, h, "why", "addon", "backup", "-n", "store-020")
	assert.Equal(t, statusWell, got.status, "it is available, and not hosted: %s", got.out)
	assert.NotContains(t, plays(t, h, "check").out, "SPK042")
}
