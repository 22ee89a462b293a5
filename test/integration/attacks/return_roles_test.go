package attacks_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/test/suite"
)

// The template asks for another role in place of the one that reads Secrets, as in TestAnAgentKeepsNoRoleThatItsTemplateReplaced,
// and the agent of one cluster says nothing of the new works until its progressDeadline is over. A return is the former content
// with its roles: that is what onFailure Undo asks for, and Stop does not.
//
// Shows: security/return-roles
func TestAnAgentThatFailsGetsARoleBackOnlyByAReturn(t *testing.T) {
	for _, action := range []policies.Action{policies.ActionStop, policies.ActionUndo} {
		t.Run(string(action), func(t *testing.T) {
			addOn := "returns" + strings.ToLower(string(action))
			bad, good := addOn+"-evil", addOn+"-honest"
			joins(t, addOn, bad, good)
			policy := policyOf(addOn)
			policy.Spec.OnFailure = &policies.OnFailure{Action: action}
			require.NoError(t, shared.admin.Create(t.Context(), policy))
			paced(t, addOn+"place", addOn)
			defineAccess(t, addOn)
			require.NoError(t, shared.plane.Apply(t.Context(), bytes.ReplaceAll([]byte(harmlessFile), []byte("ADDON"), []byte(addOn))))
			rollsOut(t, addOn)
			require.NoError(t, change(&addonv1alpha1.ClusterManagementAddOn{ObjectMeta: in("", addOn)},
				`{"spec":{"installStrategy":{"type":"Placements","placements":[{"name":"paced","namespace":"`+addOn+`place",`+
					`"rolloutStrategy":{"type":"Progressive","progressive":{"maxConcurrency":"100%","maxFailures":"100%",`+
					`"progressDeadline":"5s"}}}]}}}`)(t.Context(), shared.admin))
			for _, cluster := range []string{bad, good} {
				suite.Eventually(t, func() error { return applied(t.Context(), cluster, addOn, "True") })
			}
			evil, honest := credentialOf(t, bad, addOn), credentialOf(t, good, addOn)
			reads(t, evil, bad, addOn+"-shared")
			reads(t, honest, good, addOn+"-shared")
			suite.Eventually(t, func() error {
				err := shared.admin.Get(t.Context(), client.ObjectKeyFromObject(policy), policy)
				if err == nil && (len(policy.Status.Placements) != 1 || len(policy.Status.Placements[0].Completed) != 1) {
					err = fmt.Errorf("the content has not completed: %+v", policy.Status)
				}
				return err
			})
			require.NoError(t, change(&addonv1alpha1.AddOnTemplate{ObjectMeta: in("", addOn)},
				`{"spec":{"agentSpec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"second",`+
					`"namespace":"default"}}]}},"registration":[{"type":"KubeClient","kubeClient":{"hubPermissions":[{"type":"CurrentCluster",`+
					`"currentCluster":{"clusterRoleName":"`+addOn+`-harmless"}},{"type":"SingleNamespace","singleNamespace":{"namespace":"`+
					addOn+`-shared","roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"`+addOn+
					`-harmless"}}}]}}]}}`)(t.Context(), shared.admin))
			readsNothing(t, honest, good, addOn+"-shared")
			suite.Eventually(t, func() error { return applied(t.Context(), good, addOn, "True") })
			suite.Eventually(t, func() error {
				own := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in(bad, addOn)}
				err := shared.admin.Get(t.Context(), client.ObjectKeyFromObject(own), own)
				if err == nil && !meta.IsStatusConditionTrue(own.Status.Conditions, names.ConditionRolloutFailed) {
					err = fmt.Errorf("it has not failed: %v", own.Status.Conditions)
				}
				return err
			})
			if action == policies.ActionUndo {
				reads(t, evil, bad, addOn+"-shared")
			} else {
				readsNothing(t, evil, bad, addOn+"-shared")
			}
			err := honest.List(t.Context(), &corev1.SecretList{}, client.InNamespace(addOn+"-shared"))
			require.True(t, apierrors.IsForbidden(err), "nobody else gets it back: %v", err)
		})
	}
}
