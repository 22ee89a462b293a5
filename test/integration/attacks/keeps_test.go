package attacks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// The agent says that it uses tokens and never which user it is. Its add-on has a certificate.
//
// Shows: hub/taken-whatever-the-agent-writes
func TestAnAgentKeepsNoRoleThatItsTemplateGaveUp(t *testing.T) {
	const addOn, bad, good = "givenup", "givenup-evil", "givenup-honest"
	defineAccess(t, addOn, bad, good)
	evil, honest := credentialOf(t, bad, addOn), credentialOf(t, good, addOn)
	reads(t, evil, bad, addOn+"-shared")
	reads(t, honest, good, addOn+"-shared")
	suite.Eventually(t, func() error {
		own := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in(bad, addOn)}
		return changeStatus(own, `{"status":{"kubeClientDriver":"token"}}`)(t.Context(), shared.clients[who("the agent of "+bad)])
	})
	suite.Eventually(t, func() error {
		var own addonv1alpha1.ManagedClusterAddOn
		if err := shared.admin.Get(t.Context(), client.ObjectKey{Namespace: bad, Name: addOn}, &own); err != nil {
			return err
		}
		if !meta.IsStatusConditionFalse(own.Status.Conditions, addonv1alpha1.ManagedClusterAddOnRegistrationApplied) {
			return fmt.Errorf("its permissions do not wait: %v", own.Status.Conditions)
		}
		return nil
	})
	givesUp(t, addOn)
	readsNothing(t, honest, addOn+"-shared")
	readsNothing(t, evil, addOn+"-shared")
}

// The agent writes the status of its cluster all the time, which has more claims than the cache keeps.
//
// Shows: hub/taken-whatever-the-agent-writes
func TestAnAgentKeepsNoRoleByWritingItsCluster(t *testing.T) {
	const addOn, bad, good = "written", "written-evil", "written-honest"
	defineAccess(t, addOn, bad, good)
	evil, honest := credentialOf(t, bad, addOn), credentialOf(t, good, addOn)
	reads(t, evil, bad, addOn+"-shared")
	reads(t, honest, good, addOn+"-shared")
	stop := report(t, bad)
	givesUp(t, addOn)
	readsNothing(t, honest, addOn+"-shared")
	readsNothing(t, evil, addOn+"-shared")
	stop()
}

// In a rollout, the agent writes the status of its add-on all the time.
//
// Shows: hub/taken-whatever-the-agent-writes
func TestAnAgentKeepsNoRoleByWritingItsAddOn(t *testing.T) {
	const addOn, bad, good = "flooded", "flooded-evil", "flooded-honest"
	joins(t, addOn, bad, good)
	paced(t, addOn+"place", addOn)
	defineAccess(t, addOn)
	rollsOut(t, addOn)
	evil, honest := credentialOf(t, bad, addOn), credentialOf(t, good, addOn)
	reads(t, evil, bad, addOn+"-shared")
	reads(t, honest, good, addOn+"-shared")
	stop := writesAddOn(t, bad, addOn)
	givesUp(t, addOn)
	readsNothing(t, honest, addOn+"-shared")
	readsNothing(t, evil, addOn+"-shared")
	stop()
}

// What runs on a hosting cluster for the cluster of the attacker is taken away while it writes the status of its own.
//
// Shows: hub/taken-whatever-the-agent-writes
func TestAnAgentKeepsNothingOnAnotherClusterByWritingItsOwn(t *testing.T) {
	require.NoError(t, shared.plane.Apply(t.Context(), []byte(movedFile)))
	const host = "moved-host"
	require.NoError(t, shared.join(t.Context(), host, "the agent of moved-host"))
	require.NoError(t, change(newCluster(host), `{"metadata":{"annotations":{"`+annotationHosts+`":"*"}}}`)(t.Context(), shared.admin))
	work := func(cluster string) error {
		key := client.ObjectKey{Namespace: host, Name: "addon-moved-deploy-hosting-" + cluster + "-0"}
		return shared.admin.Get(t.Context(), key, &workv1.ManifestWork{})
	}
	for _, cluster := range []string{"moved-evil", "moved-honest"} {
		require.NoError(t, shared.join(t.Context(), cluster, who("the agent of "+cluster)))
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: withAnnotation(in(cluster, "moved"), annotationHost, host)}
		suite.Eventually(t, func() error {
			return client.IgnoreAlreadyExists(shared.admin.Create(t.Context(), addOn.DeepCopy()))
		})
		suite.Eventually(t, func() error { return work(cluster) })
	}
	stop := report(t, "moved-evil")
	// The object is not for the host any more.
	require.NoError(t, change(&addonv1alpha1.AddOnTemplate{ObjectMeta: in("", "moved")},
		`{"spec":{"agentSpec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap",`+
			`"metadata":{"name":"stays","namespace":"default"}}]}}}}`)(t.Context(), shared.admin))
	for _, cluster := range []string{"moved-honest", "moved-evil"} {
		suite.Eventually(t, suite.True("the work for "+cluster+" goes", func() bool { return apierrors.IsNotFound(work(cluster)) }))
	}
	stop()
}

// From the time of condition Progressing count the deadlines and soaks of a rollout, and so the turn of all others.
//
// Shows: hub/agents-clocks
func TestAnAgentDatesNoProgress(t *testing.T) {
	const bad = "paced-evil"
	joins(t, "held", bad)
	paced(t, "paced", "held")
	for what, conditions := range map[string]func([]metav1.Condition) []metav1.Condition{
		"dated the progress of its add-on": func(all []metav1.Condition) []metav1.Condition {
			meta.FindStatusCondition(all, "Progressing").LastTransitionTime = metav1.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
			return all
		},
		"says that its cluster failed": func(all []metav1.Condition) []metav1.Condition {
			return append(all, metav1.Condition{
				Type: names.ConditionRolloutFailed, Status: metav1.ConditionTrue, Reason: "Forged", Message: "[]",
				LastTransitionTime: metav1.Now(),
			})
		},
	} {
		suite.Eventually(t, func() error {
			err := reports(t.Context(), bad, "paced", conditions)
			if err == nil {
				t.Fatal("the agent " + what)
			}
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "may not change condition Progressing") {
				return err
			}
			return nil
		})
	}
}

// report gives a cluster more claims than the cache of the hub manager keeps, and has its agent write a capacity as fast
// as six writers can, until the returned function is called.
func report(t *testing.T, name string) (stop func()) {
	t.Helper()
	agent := shared.clients[who("the agent of "+name)]
	claims := make([]clusterv1.ManagedClusterClaim, 23)
	for i := range claims {
		claims[i] = clusterv1.ManagedClusterClaim{Name: fmt.Sprintf("c%03d", i), Value: strings.Repeat("日", 1000)}
	}
	raw, err := json.Marshal(map[string]any{"status": map[string]any{"clusterClaims": claims}})
	require.NoError(t, err)
	require.NoError(t, changeStatus(newCluster(name), string(raw))(t.Context(), agent))
	return floods(t, 6, func(ctx context.Context, n int64) error {
		return changeStatus(newCluster(name), fmt.Sprintf(`{"status":{"capacity":{"x":"%d"}}}`, n))(ctx, agent)
	})
}

// floods has some writers write all the time until the returned function is called. It returns when they have begun.
func floods(t *testing.T, writers int, write func(ctx context.Context, n int64) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var all sync.WaitGroup
	var answered, sent atomic.Int64
	for range writers {
		all.Go(func() {
			for ctx.Err() == nil {
				if write(ctx, sent.Add(1)) == nil {
					answered.Add(1)
				}
			}
		})
	}
	stop = func() { cancel(); all.Wait() }
	t.Cleanup(stop)
	suite.Eventually(t, suite.True("the agent to have written", func() bool { return answered.Load() >= 20 }))
	return stop
}

// givesUp has a template give up the role in the shared namespace; it keeps that in the namespace of the cluster.
func givesUp(t *testing.T, addOn string) {
	t.Helper()
	template := &addonv1alpha1.AddOnTemplate{ObjectMeta: in("", addOn)}
	require.NoError(t, change(template, `{"spec":{"registration":[{"type":"KubeClient","kubeClient":{"hubPermissions":[`+
		`{"type":"CurrentCluster","currentCluster":{"clusterRoleName":"`+addOn+`-secrets"}}]}}]}}`)(t.Context(), shared.admin))
}

// pacedFile is an add-on that goes to one cluster after the other.
const pacedFile = `
apiVersion: v1
kind: Namespace
metadata: {name: ADDON}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: global, namespace: ADDON}
spec: {clusterSet: global}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: paced, namespace: ADDON}
spec:
  tolerations:
  - {key: cluster.open-cluster-management.io/unreachable, operator: Exists}
  predicates:
  - requiredClusterSelector: {labelSelector: {matchLabels: {paced: LABEL}}}
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata: {name: ADDON}
spec:
  addonName: ADDON
  agentSpec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: ADDON, namespace: default}}]}}
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata:
  name: ADDON
  annotations: {addon.open-cluster-management.io/lifecycle: addon-manager}
spec:
  installStrategy:
    type: Placements
    placements:
    - name: paced
      namespace: ADDON
      rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 1, maxFailures: "100%", progressDeadline: 10m}}
  supportedConfigs:
  - {group: addon.open-cluster-management.io, resource: addontemplates, defaultConfig: {name: ADDON}}
`

// paced defines an add-on for the clusters with a label, one after the other.
func paced(t *testing.T, addOn, label string) {
	t.Helper()
	file := bytes.ReplaceAll([]byte(pacedFile), []byte("ADDON"), []byte(addOn))
	file = bytes.ReplaceAll(file, []byte("LABEL"), []byte(label))
	require.NoError(t, shared.plane.Apply(t.Context(), file))
}

// joins lets clusters join, and labels them.
func joins(t *testing.T, label string, clusters ...string) {
	t.Helper()
	for _, cluster := range clusters {
		require.NoError(t, shared.join(t.Context(), cluster, who("the agent of "+cluster)))
		require.NoError(t, change(newCluster(cluster), `{"metadata":{"labels":{"paced":"`+label+`"}}}`)(t.Context(), shared.admin))
	}
}

// rollsOut has a placement install an add-on, in a rollout to all its clusters at once.
func rollsOut(t *testing.T, addOn string) {
	t.Helper()
	require.NoError(t, change(&addonv1alpha1.ClusterManagementAddOn{ObjectMeta: in("", addOn)},
		`{"metadata":{"annotations":{"addon.open-cluster-management.io/lifecycle":"addon-manager"}},"spec":{"installStrategy":{`+
			`"type":"Placements","placements":[{"name":"paced","namespace":"`+addOn+`place","rolloutStrategy":{"type":"Progressive",`+
			`"progressive":{"maxConcurrency":"100%","maxFailures":"100%"}}}]}}}`)(t.Context(), shared.admin))
}

// reports has an agent write conditions into the status of an add-on of its cluster, which makes progress.
func reports(
	ctx context.Context, cluster, addOn string, change func([]metav1.Condition) []metav1.Condition,
) error {
	agent := shared.clients[who("the agent of "+cluster)]
	var own addonv1alpha1.ManagedClusterAddOn
	if err := agent.Get(ctx, client.ObjectKey{Namespace: cluster, Name: addOn}, &own); err != nil {
		return err
	}
	conditions := own.Status.Conditions
	if meta.FindStatusCondition(conditions, "Progressing") == nil || len(own.Status.ConfigReferences) == 0 {
		return fmt.Errorf("not yet: %v", conditions)
	}
	own.Status.Conditions = change(conditions)
	return agent.Status().Update(ctx, &own)
}

// writesAddOn has an agent write the status of its add-on as fast as three writers can, until the returned function is
// called.
func writesAddOn(t *testing.T, cluster, addOn string) (stop func()) {
	t.Helper()
	return floods(t, 3, func(ctx context.Context, n int64) error {
		own := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in(cluster, addOn)}
		described := fmt.Sprintf(`{"status":{"addOnMeta":{"description":"%d"}}}`, n)
		return changeStatus(own, described)(ctx, shared.clients[who("the agent of "+cluster)])
	})
}

const movedFile = `
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata: {name: moved}
spec:
  addonName: moved
  agentSpec:
    workload:
      manifests:
      - {apiVersion: v1, kind: ConfigMap, metadata: {name: stays, namespace: default}}
      - apiVersion: v1
        kind: ConfigMap
        metadata: {name: there, namespace: default, annotations: {addon.open-cluster-management.io/hosted-manifest-location: hosting}}
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata:
  name: moved
  annotations: {addon.open-cluster-management.io/lifecycle: addon-manager}
spec:
  installStrategy: {type: Manual}
  supportedConfigs:
  - {group: addon.open-cluster-management.io, resource: addontemplates, defaultConfig: {name: moved}}
`
