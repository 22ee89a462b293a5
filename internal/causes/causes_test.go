package causes

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// at is when the conditions of the tests began, in minutes after some hour.
func at(minute int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 11, 1, 8, minute, 0, 0, time.UTC))
}

func cond(kind, status, reason string, minute int) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, LastTransitionTime: at(minute), Message: "because",
	}
}

func TestTheFirstCauseOfAnAddOn(t *testing.T) {
	available := cond("Available", "True", "ManagedClusterAddOnLeaseUpdated", 0)
	for sentence, tc := range map[string]struct {
		of    AddOn
		code  Code
		said  string
		since int
	}{
		"one that works has none": {of: AddOn{Conditions: []metav1.Condition{available, cond("Progressing", "False", "Completed", 1)}}},
		"what is wrong earlier in the chain comes first, and since when anything is": {
			of: AddOn{Conditions: []metav1.Condition{
				cond("Available", "False", "ProbeUnavailable", 1), cond("ManifestApplied", "False", "AddonManifestAppliedFailed", 3),
				cond("RegistrationApplied", "False", "SetPermissionFailed", 2),
			}},
			code: RegistrationFailed, said: "RegistrationApplied", since: 1,
		},
		"the work that a cluster did not apply is told from one that cannot be rendered": {
			of:   AddOn{Conditions: []metav1.Condition{cond("ManifestApplied", "False", "AddonManifestAppliedFailed", 3)}},
			code: NotApplied, said: "ManifestApplied", since: 3,
		},
		"one that cannot be rendered": {
			of:   AddOn{Conditions: []metav1.Condition{cond("ManifestApplied", "False", "ManifestWorkApplyFailed", 3)}},
			code: NotRendered, said: "ManifestApplied", since: 3,
		},
		"a request that waits for a person": {
			of:   AddOn{Conditions: []metav1.Condition{cond("ClusterCertificateRotated", "False", "CertificateRequestPending", 3)}},
			code: RequestWaits, said: "ClusterCertificateRotated", since: 3,
		},
		"a request that nobody signs": {
			of:   AddOn{Conditions: []metav1.Condition{cond("ClusterCertificateRotated", "False", "CertificateRequestNotSigned", 3)}},
			code: RequestNotSigned, said: "ClusterCertificateRotated", since: 3,
		},
		"a request that is refused, also by a hub of OCM": {
			of:   AddOn{Conditions: []metav1.Condition{cond("ClusterCertificateRotated", "False", "ClientCertificateUpdateFailed", 3)}},
			code: RequestRefused, said: "ClusterCertificateRotated", since: 3,
		},
		"a pod that is not ready comes before the probe that fails by it": {
			of: AddOn{Conditions: []metav1.Condition{
				cond("Available", "False", "ProbeUnavailable", 1), cond("addon.spokelet.io/WorkloadsReady", "False", "WorkloadNotReady", 2),
			}},
			code: WorkloadNotReady, said: "addon.spokelet.io/WorkloadsReady", since: 1,
		},
		"a silent cluster is not the fault of the add-on": {
			of:   AddOn{Conditions: []metav1.Condition{cond("Available", "Unknown", "ManagedClusterLeaseUpdateStopped", 4)}},
			code: ClusterSilent, said: "Available", since: 4,
		},
		"a rollout that counts it as failed is told while all else is well": {
			of:   AddOn{Conditions: []metav1.Condition{available, cond("addon.spokelet.io/RolloutFailed", "True", "TimedOut", 5)}},
			code: RolloutFailed, said: "addon.spokelet.io/RolloutFailed", since: 5,
		},
		"manifests that nobody made are awaited": {
			of: AddOn{Conditions: []metav1.Condition{
				cond("Available", "Unknown", "WorkNotFound", 1), cond("Progressing", "False", "WaitingForManifestApplied", 2),
			}},
			code: ManifestsAwaited, said: "Progressing", since: 2,
		},
		"a lease that was never renewed": {
			of:   AddOn{Conditions: []metav1.Condition{cond("Available", "Unknown", "ManagedClusterAddOnLeaseNotFound", 6)}},
			code: LeaseMissing, said: "Available", since: 6,
		},
		"a lease that stopped": {
			of:   AddOn{Conditions: []metav1.Condition{cond("Available", "False", "ManagedClusterAddOnLeaseUpdateStopped", 6)}},
			code: LeaseStopped, said: "Available", since: 6,
		},
		"without any condition nobody looks after it": {code: AddOnUnmanaged},
		"with others but none about its health, that is not known": {
			of:   AddOn{Conditions: []metav1.Condition{cond("RegistrationApplied", "True", "SetPermissionApplied", 1)}},
			code: HealthUnknown,
		},
		"a reason that nobody knows is not guessed": {
			of:   AddOn{Conditions: []metav1.Condition{cond("Available", "False", "OfTomorrow", 6)}},
			code: HealthUnknown, said: "Available", since: 6,
		},
		"a deletion that a hook holds": {
			of: AddOn{Deleting: true, Conditions: []metav1.Condition{
				available, cond("addon.spokelet.io/Deleting", "False", "HookFailed", 7),
			}},
			code: HookFailed, said: "addon.spokelet.io/Deleting", since: 7,
		},
		"a deletion that waits, by a hub of OCM": {
			of: AddOn{Deleting: true, Conditions: []metav1.Condition{
				cond("HookManifestCompleted", "False", "HookManifestIsNotCompleted", 7),
			}},
			code: DeletionWaits, said: "HookManifestCompleted", since: 7,
		},
		"what a silent cluster said last does not explain why it is silent": {
			of: AddOn{Conditions: []metav1.Condition{
				cond("addon.spokelet.io/WorkloadsReady", "False", "WorkloadNotReady", 1),
				cond("Available", "Unknown", "ManagedClusterLeaseUpdateStopped", 4),
			}},
			code: ClusterSilent, said: "Available", since: 4,
		},
		"what the hub refuses comes before that its cluster is silent": {
			of: AddOn{Conditions: []metav1.Condition{
				cond("RegistrationApplied", "False", "SetPermissionFailed", 1),
				cond("Available", "Unknown", "ManagedClusterLeaseUpdateStopped", 4),
			}},
			code: RegistrationFailed, said: "RegistrationApplied", since: 1,
		},
		"a hook of a deletion does not end on a silent cluster": {
			of: AddOn{Deleting: true, Conditions: []metav1.Condition{
				cond("addon.spokelet.io/Deleting", "False", "WaitingForHook", 5),
				cond("Available", "Unknown", "ManagedClusterLeaseUpdateStopped", 4),
			}},
			code: ClusterSilent, said: "Available", since: 4,
		},
		"a finalizer of another program does not wait for a silent cluster": {
			of: AddOn{Deleting: true, Conditions: []metav1.Condition{
				cond("addon.spokelet.io/Deleting", "False", "ForeignFinalizers", 5),
				cond("Available", "Unknown", "ManagedClusterLeaseUpdateStopped", 4),
			}},
			code: DeletionWaits, said: "addon.spokelet.io/Deleting", since: 5,
		},
		"what the hub said of a silent cluster is over when that is back": {
			of: AddOn{ClusterAlive: true, Conditions: []metav1.Condition{
				cond("Available", "Unknown", "ManagedClusterLeaseUpdateStopped", 4),
			}},
			code: HealthUnknown, said: "Available", since: 4,
		},
		"a configuration that is not supported, by a hub of OCM": {
			of:   AddOn{Conditions: []metav1.Condition{available, cond("Progressing", "False", "ConfigurationUnsupported", 3)}},
			code: ConfigurationKept, said: "Progressing", since: 3,
		},
		"conditions of the hosted mode say nothing of an add-on that left it": {
			of: AddOn{Conditions: []metav1.Condition{
				available, cond("HostingClusterValidity", "False", "HostingClusterInvalid", 1),
				cond("HostingManifestApplied", "False", "ManifestWorkApplyFailed", 1),
			}},
		},
		"a hosting cluster that cannot host": {
			of: AddOn{Hosted: true, Conditions: []metav1.Condition{
				available, cond("HostingClusterValidity", "False", "HostingClusterInvalid", 1),
			}},
			code: HostingInvalid, said: "HostingClusterValidity", since: 1,
		},
		"a deletion of which nothing is said": {of: AddOn{Deleting: true, Conditions: []metav1.Condition{available}}, code: DeletionWaits},
	} {
		t.Run(sentence, func(t *testing.T) {
			judge(t, OfAddOn(tc.of), tc.code, tc.said, tc.since)
		})
	}
}

// told is a condition with a message.
func told(c metav1.Condition, text string) metav1.Condition {
	c.Message = text
	return c
}

func TestAnAddOnThatWaitsForItsTurnIsWellAsLongAsItWorks(t *testing.T) {
	const ocm = "Configurations updated and not configured yet"
	available := cond("Available", "True", "ProbeAvailable", 1)
	kept := cond("Configured", "False", "ConfigurationsNotConfigured", 2)
	for sentence, tc := range map[string]struct {
		of   []metav1.Condition
		code Code
		said string
	}{
		"it works, says OCM's hub": {of: []metav1.Condition{available, told(kept, ocm)}},
		"it works, says ours":      {of: []metav1.Condition{available, told(kept, ocm+": "+WaitsForTurn+"maxConcurrency is 1")}},
		"it has none yet":          {of: []metav1.Condition{told(kept, ocm)}, code: ConfigurationKept, said: "Configured"},
		"it does not work, by itself": {
			of:   []metav1.Condition{cond("Available", "False", "ManagedClusterAddOnLeaseUpdateStopped", 2), told(kept, ocm)},
			code: LeaseStopped, said: "Available",
		},
		"it keeps its configuration for another reason": {
			of: []metav1.Condition{available, told(kept, ocm+": AddOnTemplate a does not exist")}, code: ConfigurationKept, said: "Configured",
		},
	} {
		t.Run(sentence, func(t *testing.T) { judge(t, OfAddOn(AddOn{Conditions: tc.of}), tc.code, tc.said, 2) })
	}
}

func TestARolloutThatStoppedIsToldFromOneThatGoesOn(t *testing.T) {
	on := cond("Progressing", "True", "Progressing", 1)
	assert.Nil(t, Stopped(nil))
	assert.Nil(t, Stopped([]metav1.Condition{told(on, "selected clusters 3. configured addons 1/3 progressing..., 1 failed 0 timeout.")}))
	assert.NotNil(t, Stopped([]metav1.Condition{told(on, "selected clusters 3. "+HasStopped+"1 of 3 clusters")}))
	assert.NotNil(t, Stopped([]metav1.Condition{cond("Progressing", "False", "Failed", 1)}))
}

// judge compares a cause with its code, the type of its condition and the minute in which it began.
func judge(t *testing.T, got *Cause, code Code, said string, since int) {
	t.Helper()
	if code == "" {
		assert.Nil(t, got)
		return
	}
	require.NotNil(t, got)
	assert.Equal(t, code, got.Code)
	if said == "" {
		assert.Nil(t, got.Condition)
		assert.True(t, got.Since.IsZero())
		return
	}
	require.NotNil(t, got.Condition)
	assert.Equal(t, said, got.Condition.Type)
	assert.Equal(t, at(since).Time, got.Since)
}

func TestTheFirstCauseOfACluster(t *testing.T) {
	joined := cond("ManagedClusterJoined", "True", "ManagedClusterJoined", 0)
	available := cond("ManagedClusterConditionAvailable", "True", "ManagedClusterAvailable", 1)
	for sentence, tc := range map[string]struct {
		of                 []metav1.Condition
		denied, isDeleting bool
		code               Code
		said               string
		since              int
	}{
		"one that serves has none":              {of: []metav1.Condition{joined, available}},
		"one that waits to be accepted":         {denied: true, code: ClusterNotAccepted},
		"one that never joined":                 {code: ClusterNotJoined},
		"one that joined just now has none yet": {of: []metav1.Condition{joined}},
		"one that the hub denied": {
			of: []metav1.Condition{joined, available, cond("HubAcceptedManagedCluster", "False", "HubClusterAdminDenied", 4)}, denied: true,
			code: ClusterDenied, said: "HubAcceptedManagedCluster", since: 4,
		},
		"one whose namespace belongs to others": {
			of: []metav1.Condition{cond("cluster.spokelet.io/NamespaceReady", "False", "NamespaceOfOthers", 2)}, denied: true,
			code: NamespaceOfOthers, said: "cluster.spokelet.io/NamespaceReady", since: 2,
		},
		"silence comes before what the agent said last": {
			of: []metav1.Condition{
				joined, cond("ClusterCertificateRotated", "False", "ClientCertificateUpdateFailed", 1),
				cond("ManagedClusterConditionAvailable", "Unknown", "ManagedClusterLeaseUpdateStopped", 3),
			},
			code: ClusterSilent, said: "ManagedClusterConditionAvailable", since: 3,
		},
		"its API server is down": {
			of:   []metav1.Condition{joined, cond("ManagedClusterConditionAvailable", "False", "ManagedClusterKubeAPIServerUnavailable", 3)},
			code: ClusterUnavailable, said: "ManagedClusterConditionAvailable", since: 3,
		},
		"its certificate cannot be renewed": {
			of:   []metav1.Condition{joined, available, cond("ClusterCertificateRotated", "False", "ClientCertificateUpdateFailed", 5)},
			code: CertificateLate, said: "ClusterCertificateRotated", since: 5,
		},
		"the hub lost works": {
			of:   []metav1.Condition{joined, available, cond("work.spokelet.io/WorksPresent", "False", "WorksMissing", 5)},
			code: WorksMissing, said: "work.spokelet.io/WorksPresent", since: 5,
		},
		"clocks that differ": {
			of:   []metav1.Condition{joined, available, cond("ManagedClusterConditionClockSynced", "False", "ManagedClusterClockOutOfSync", 5)},
			code: ClocksDiffer, said: "ManagedClusterConditionClockSynced", since: 5,
		},
		"a deletion that waits": {
			of: []metav1.Condition{joined, cond("Deleting", "False", "ResourceRemaining", 9)}, isDeleting: true,
			code: ClusterDeletion, said: "Deleting", since: 9,
		},
		"a deletion of which nothing is left waits for finalizers of others": {
			of: []metav1.Condition{joined, cond("Deleting", "True", "NoResource", 9)}, isDeleting: true, code: ClusterDeletion,
		},
		"one that was accepted and is not any more, before the condition says so": {
			of:     []metav1.Condition{joined, available, cond("HubAcceptedManagedCluster", "True", "HubClusterAdminAccepted", 4)},
			denied: true, code: ClusterDenied,
		},
		"one whose access cannot be set up": {
			of:   []metav1.Condition{cond("HubAcceptedManagedCluster", "False", "Error", 4)},
			code: AccessFailed, said: "HubAcceptedManagedCluster", since: 4,
		},
		"a deletion of which nothing is said waits, as that of an add-on": {
			of: []metav1.Condition{joined, available}, isDeleting: true, code: ClusterDeletion,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			of := Cluster{Conditions: tc.of, Accepted: !tc.denied, Deleting: tc.isDeleting}
			judge(t, OfCluster(of), tc.code, tc.said, tc.since)
		})
	}
}

// The agent of a cluster writes conditions of its add-ons. One without a time hides nothing about the others.
func TestAConditionWithoutATimeDoesNotSaySinceWhen(t *testing.T) {
	timed := cond("RegistrationApplied", "False", "SetPermissionFailed", 2)
	for _, zero := range []string{"Configured", "ManifestApplied"} { // before and after it in the chain
		untimed := cond(zero, "False", "Any", 0)
		untimed.LastTransitionTime = metav1.Time{}
		_, since := FirstFalse([]metav1.Condition{timed, untimed}, BlockingConditions())
		assert.Equal(t, at(2).Time, since, zero)
	}
}

// Where no hub manager runs, the Lease says that a cluster is silent. The clock of the reader may differ.
func TestAnOldHeartbeatIsSilence(t *testing.T) {
	joined := cond("ManagedClusterJoined", "True", "ManagedClusterJoined", 0)
	available := cond("ManagedClusterConditionAvailable", "True", "ManagedClusterAvailable", 1)
	for sentence, tc := range map[string]struct {
		minutes, seconds int
		unknown, silent  bool
	}{
		"after less than ten durations it is not told": {minutes: 10},
		"after ten it is":                       {minutes: 11, silent: true},
		"a cluster may have longer ones":        {minutes: 11, seconds: 120},
		"where nothing is known it is not told": {minutes: 600, unknown: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			of := Cluster{
				Conditions: []metav1.Condition{joined, available}, Accepted: true, Grace: 5 * time.Duration(max(tc.seconds, 60)) * time.Second,
				Heartbeat: at(0).Time, Now: at(tc.minutes).Time,
			}
			if tc.unknown {
				of.Heartbeat = time.Time{}
			}
			got := OfCluster(of)
			if !tc.silent {
				assert.Nil(t, got)
				return
			}
			assert.Equal(t, &Cause{Code: ClusterSilent, Since: at(0).Time}, got)
		})
	}
}

func TestWhatOfAClusterExplainsItsAddOns(t *testing.T) {
	hook := cond("HookManifestCompleted", "False", "HookManifestIsNotCompleted", 1)
	for sentence, tc := range map[string]struct {
		cluster, addOn *Cause
		explains       bool
	}{
		"one that is well explains nothing":                       {nil, &Cause{Code: LeaseStopped}, false},
		"an add-on that is well needs no explanation":             {&Cause{Code: ClusterSilent}, nil, false},
		"one that is not in explains all":                         {&Cause{Code: ClusterDenied}, &Cause{Code: RegistrationFailed}, true},
		"a silent one explains what it does":                      {&Cause{Code: ClusterSilent}, &Cause{Code: WorkloadNotReady}, true},
		"a silent one does not explain what the hub does":         {&Cause{Code: ClusterSilent}, &Cause{Code: AddOnUnmanaged}, false},
		"one without its API server explains a lease":             {&Cause{Code: ClusterUnavailable}, &Cause{Code: LeaseStopped}, true},
		"a silent one explains a hook that does not end":          {&Cause{Code: ClusterSilent}, &Cause{Code: DeletionWaits, Condition: &hook}, true},
		"a silent one does not explain finalizers of others":      {&Cause{Code: ClusterSilent}, &Cause{Code: DeletionWaits}, false},
		"a wrong clock explains nothing":                          {&Cause{Code: ClocksDiffer}, &Cause{Code: AddOnUnmanaged}, false},
		"one that leaves waits for the hook, and not it for that": {&Cause{Code: ClusterDeletion}, &Cause{Code: HookFailed}, false},
		"one that leaves explains the rest":                       {&Cause{Code: ClusterDeletion}, &Cause{Code: LeaseStopped}, true},
	} {
		t.Run(sentence, func(t *testing.T) { assert.Equal(t, tc.explains, Explains(tc.cluster, tc.addOn)) })
	}
	assert.True(t, (&Cause{Code: ClusterSilent}).CutOff())
	assert.False(t, (&Cause{Code: ClusterDeletion}).CutOff())
	var none *Cause
	assert.False(t, none.CutOff())
}

func TestHowFarAnAddOnIs(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "as " + kind + " says"}
	}
	complete := condition("Progressing", metav1.ConditionFalse, addonv1beta1.ProgressingReasonCompleted)
	moving := condition("Progressing", metav1.ConditionTrue, addonv1beta1.ProgressingReasonProgressing)
	late := condition("Progressing", metav1.ConditionFalse, addonv1beta1.ProgressingReasonFailed)
	failed := condition("addon.spokelet.io/RolloutFailed", metav1.ConditionTrue, "TimedOut")
	notFailed := condition("addon.spokelet.io/RolloutFailed", metav1.ConditionFalse, "Succeeded")
	waits := condition("Configured", metav1.ConditionFalse, "NotConfigured")
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		differs    bool
		stage      Stage
		text       string
	}{
		"no hub manager has seen it":             {nil, false, StageWaiting, "no hub manager says how far it is"},
		"it has what it is to have":              {[]metav1.Condition{complete}, false, StageComplete, ""},
		"it has what it was to have":             {[]metav1.Condition{complete}, true, StageWaiting, "it is to have another configuration, and the hub manager does not say yet that it moves"},
		"it moves":                               {[]metav1.Condition{moving}, true, StageMoving, "as Progressing says"},
		"it waits for others":                    {[]metav1.Condition{moving, waits}, true, StageWaiting, "as Configured says"},
		"it failed":                              {[]metav1.Condition{late}, true, StageFailed, "as Progressing says"},
		"its rollout counts it as failed":        {[]metav1.Condition{complete, waits, failed}, false, StageFailed, "as addon.spokelet.io/RolloutFailed says"},
		"its rollout does not count it any more": {[]metav1.Condition{moving, notFailed}, true, StageMoving, "as Progressing says"},
	} {
		t.Run(name, func(t *testing.T) {
			stage, text := StageOf(tc.conditions, tc.differs)
			assert.Equal(t, tc.stage, stage)
			assert.Equal(t, tc.text, text)
		})
	}
}
