package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/names"
)

// messageRow is what a row of docs/operations/messages.md looks like to why. Those that no command can see have none of it.
type messageRow struct {
	hurt func(s *shopOfOCM)
	ask  func(s *shopOfOCM) Chain
	code causes.Code
	// unseen says why no command names it; empty for all others.
	unseen string
}

// onAddOnRows are the rows about add-ons on clusters.
func onAddOnRows() map[string]messageRow {
	ask := (*shopOfOCM).ofAddOn
	rotated := func(reason, text string) func(s *shopOfOCM) {
		return func(s *shopOfOCM) { s.onAddOn(names.ConditionCertificateRotated, no, reason, text) }
	}
	ready := func(text string) func(s *shopOfOCM) {
		return func(s *shopOfOCM) { s.onAddOn(names.ConditionWorkloadsReady, no, "WorkloadNotReady", text) }
	}
	hosting := func(reason, text string) func(s *shopOfOCM) {
		return func(s *shopOfOCM) {
			s.addOn.Metadata.Annotations = map[string]string{names.AnnotationInstallMode: "Hosted"}
			s.onAddOn("HostingClusterValidity", no, reason, text)
		}
	}
	rendering := func(text string) func(s *shopOfOCM) {
		return func(s *shopOfOCM) { s.onAddOn("ManifestApplied", no, "ManifestWorkApplyFailed", text) }
	}
	deleting := func(reason, text string) func(s *shopOfOCM) {
		return func(s *shopOfOCM) {
			at := condition("", yes, "", "").LastTransitionTime
			s.addOn.Metadata.DeletionTimestamp = &at
			s.onAddOn(names.ConditionAddOnDeleting, no, reason, text)
		}
	}
	return map[string]messageRow{
		"the hub refused the certificate request": {rotated("CertificateRequestRefused", "refused: IdentityMismatch"), ask, causes.RequestRefused, ""},
		"the request was denied":                  {rotated("ClientCertificateUpdateFailed", "the csr x was denied"), ask, causes.RequestRefused, ""},
		"the request waits for a person":          {rotated("CertificateRequestPending", "waits for a person"), ask, causes.RequestWaits, ""},
		"it is approved, and the CA of the custom signer is missing or may not be read": {
			rotated("CertificateRequestRefused", "refused: CAUnavailable"), ask, causes.RequestRefused, "",
		},
		"it is approved, and nobody signs it": {rotated("CertificateRequestNotSigned", "nobody signs"), ask, causes.RequestNotSigned, ""},
		"a pod of a workload is not ready: no node takes it, a volume cannot be mounted, a Secret or ConfigMap is missing, " +
			"an image cannot be pulled, a container crashes": {ready("Deployment a/b is not ready. Pod a/c: x"), ask, causes.WorkloadNotReady, ""},
		"a workload cannot create pods":                                     {ready("Deployment a/b cannot create pods: quota"), ask, causes.WorkloadNotReady, ""},
		"the hosting cluster does not exist, or the hub does not accept it": {hosting("HostingClusterInvalid", "does not exist"), ask, causes.HostingInvalid, ""},
		"no hosting cluster is found for an add-on that asks for one": {
			hosting("HostingClusterAutoDiscoveryPending", "no cluster claims it"), ask, causes.HostingInvalid, "",
		},
		"the agent of the cluster runs on another hosting cluster":      {hosting("HostingClusterMismatch", "claims another"), ask, causes.HostingInvalid, ""},
		"the hosting cluster does not host the add-ons of this cluster": {hosting("NotConsented", "does not list it"), ask, causes.HostingInvalid, ""},
		"its AddOnTemplate has a variable without a value":              {rendering("variable X has no value"), ask, causes.NotRendered, ""},
		"a value does not fit the field of the template":                {rendering("spec.replicas: not a number"), ask, causes.NotRendered, ""},
		"it is deleted, and its pre-delete hook has not run to its end, or it is unknown whether it has one": {
			deleting("WaitingForHook", "The pre-delete hook runs"), ask, causes.DeletionWaits, "",
		},
		"it is deleted, and add-ons on its cluster depend on it": {
			deleting("WaitingForDependents", "The add-on goes after those on its cluster"), ask, causes.DeletionWaits, "",
		},
		"the same, where the hub manager does not read policies, or one cannot be decoded": {
			deleting("WaitingForDependents", "and the hub manager reads no AddOnPolicies"), ask, causes.DeletionWaits, "",
		},
		"it is deleted, and another add-on manager's finalizers are on it": {
			deleting("ForeignFinalizers", "The add-on waits for its finalizers"), ask, causes.DeletionWaits, "",
		},
		"its AddOnTemplate asks for another way to tell health than was rolled out": {
			unseen: "nothing is wrong: the end of ManifestApplied=True says what counts from the next rollout on",
		},
	}
}

// ofRolloutRows are the rows about rollouts and placements.
func ofRolloutRows() map[string]messageRow {
	ask := (*shopOfOCM).ofAddOn
	empty := func(s *shopOfOCM) {
		s.addOn, s.decisions[0].Status.Decisions = nil, nil
	}
	waits := func(text string) func(s *shopOfOCM) {
		return func(s *shopOfOCM) {
			s.onAddOn("Configured", no, "ConfigurationsNotConfigured", causes.NotConfigured+": "+text)
			without(&s.addOn.Status.Conditions, "Available")
			s.work = nil
		}
	}
	says := func(kind, reason, text string) func(s *shopOfOCM) {
		return func(s *shopOfOCM) {
			empty(s)
			s.placements[0].Status.Conditions = append(s.placements[0].Status.Conditions, condition(kind, no, reason, text))
		}
	}
	return map[string]messageRow{
		"clusters are stuck": {func(s *shopOfOCM) {
			s.onAddOn(names.ConditionWorkloadsReady, no, "WorkloadNotReady", "Deployment a/b is not ready")
		}, ask, causes.WorkloadNotReady, ""},
		"a placement selects nothing": {empty, ask, causes.PlacementEmpty, ""},
		"the reasons why it selects nothing: no set is bound, the bound sets are others or empty, the spec asks for what is " +
			"not supported, nobody decides it": {func(s *shopOfOCM) { s.addOn, s.decisions = nil, nil }, ask, causes.PlacementEmpty, ""},
		"more clusters failed or timed out than `maxFailures` tolerates": {func(s *shopOfOCM) {
			waits(causes.WaitsForTurn + "maxFailures is 0")(s)
			s.definition.Status.InstallProgressions = []fleet.Progression{{PlacementRef: s.definition.Spec.InstallStrategy.Placements[0]}}
			s.definition.Status.InstallProgressions[0].Conditions = append(s.definition.Status.InstallProgressions[0].Conditions,
				condition("Progressing", yes, "Progressing", causes.HasStopped+"2 of 3 clusters failed"))
		}, ask, causes.RolloutStopped, ""},
		"a field of the `rolloutStrategy` cannot be used": {waits("maxFailures: not a percentage"), ask, causes.ConfigurationKept, ""},
		"the program of an add-on without an AddOnTemplate does not run": {func(s *shopOfOCM) {
			without(&s.addOn.Status.Conditions, "ManifestApplied", "Available")
			s.onAddOn("Progressing", no, "WaitingForManifestApplied", "")
			s.work = nil
		}, ask, causes.ManifestsAwaited, ""},
		"a cluster waits for others": {waits(causes.WaitsForTurn + "maxConcurrency is 1"), ask, causes.ConfigurationKept, ""},
		"`mandatoryDecisionGroups` names a group that no cluster is in": {
			unseen: "nothing waits for it: the message of the placement tells that the name is of no group",
		},
		"a placement does not exist": {func(s *shopOfOCM) {
			s.addOn, s.placements, s.decisions = nil, nil, nil
		}, ask, causes.PlacementMissing, ""},
		"no cluster set is bound to its namespace": {
			says("PlacementSatisfied", "NoManagedClusterSetBindings", "No ManagedClusterSet is bound"), ask, causes.PlacementEmpty, "",
		},
		"the sets that it asks for are not bound": {says("PlacementSatisfied", "NoIntersection", "None of the sets is bound"), ask, causes.PlacementEmpty, ""},
		"no bound set has clusters that an earlier version selected": {
			unseen: "nothing is wrong with them: they stay selected, and the condition says what to bind",
		},
		"nobody may bind the set": {unseen: "the API server refuses the write of the person who asks for it"},
	}
}

// otherRows are the rows about works and about the agent itself.
func otherRows() map[string]messageRow {
	return map[string]messageRow{
		"manifests could not be applied": {func(s *shopOfOCM) {
			s.onWork("Applied", "AppliedManifestWorkFailed", "Failed to apply manifest work", "a quota refuses it")
		}, (*shopOfOCM).ofWork, causes.WorkNotApplied, ""},
		"the request for the cluster's own credential waits for a person, was refused or denied, or is not signed": {func(s *shopOfOCM) {
			without(&s.cluster.Status.Conditions, "ManagedClusterJoined", "ManagedClusterConditionAvailable")
			s.requests = []fleet.Request{s.request()}
		}, (*shopOfOCM).ofCluster, causes.RequestPending, ""},
		"the managed cluster of an agent on a hosting cluster cannot be used": {func(s *shopOfOCM) {
			s.onCluster("ManagedClusterConditionAvailable", no, "ManagedClusterKubeAPIServerUnavailable", "cannot be used since ...")
		}, (*shopOfOCM).ofCluster, causes.ClusterUnavailable, ""},
		"the agent gets no token of the ServiceAccount under which it applies works (`--work-service-account`)": {func(s *shopOfOCM) {
			s.onWork("Applied", "AppliedManifestWorkFailed", "", "there is no new token for works since ...")
		}, (*shopOfOCM).ofWork, causes.WorkNotApplied, ""},
		"the hub stopped answering": {func(s *shopOfOCM) {
			s.onCluster("ManagedClusterConditionAvailable", unknown, "ManagedClusterLeaseUpdateStopped", "stopped updating its lease")
		}, (*shopOfOCM).ofCluster, causes.ClusterSilent, ""},
	}
}

// Each row of the page has a cause that why names, or a reason why there is none to name.
func TestWhyNamesTheCauseOfEachRowOfThePage(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "operations", "messages.md"))
	require.NoError(t, err)
	page, _, found := strings.Cut(string(raw), "\n## Codes of kubectl spokelet\n")
	require.True(t, found)
	rows := map[string]bool{}
	for line := range strings.Lines(page) {
		cells := strings.Split(line, "|")
		if len(cells) > 3 && !strings.HasPrefix(cells[1], "-") && strings.TrimSpace(cells[1]) != "what is wrong" {
			rows[strings.TrimSpace(cells[1])] = true
		}
	}
	known := map[string]messageRow{}
	for _, some := range []map[string]messageRow{onAddOnRows(), ofRolloutRows(), otherRows()} {
		for sentence, row := range some {
			known[sentence] = row
			assert.True(t, rows[sentence], "the page has no row %q any more", sentence)
		}
	}
	for sentence := range rows {
		t.Run(sentence, func(t *testing.T) {
			row, is := known[sentence]
			require.True(t, is, "what does why name for this row?")
			if row.unseen != "" {
				return
			}
			s := newShopOfOCM(t)
			row.hurt(s)
			got := row.ask(s)
			require.NotNil(t, got.Problem)
			assert.Equal(t, row.code, got.Problem.Code, got.Problem.Message)
		})
	}
}
