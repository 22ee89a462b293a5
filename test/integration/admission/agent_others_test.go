package admission_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/suite"
)

// What others wrote does not count against the agent (manifests/hub/policies/agents.yaml): an administrator has the
// values of add-ons in an annotation, which may be larger than all that an agent may write.
func TestAnAgentMayChangeItsOwnBesideWhatAnAdministratorWrote(t *testing.T) {
	t.Parallel()
	for sentence, tc := range map[string]struct {
		name  string
		admin func(*clusterv1.ManagedCluster)
		own   func(*clusterv1.ManagedCluster)
	}{
		"its annotation and addresses beside values of nine kilobytes": {
			"agent-values",
			func(c *clusterv1.ManagedCluster) {
				c.Annotations["addon.open-cluster-management.io/values"] = `{"x":"` + strings.Repeat("x", 9000) + `"}`
			},
			func(c *clusterv1.ManagedCluster) { // as the agent of OCM does, in one write
				c.Annotations["agent.open-cluster-management.io/version"] = "2"
				c.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: "https://new:6443"}}
			},
		},
		"its annotation beside forty of an administrator": {
			"agent-many",
			func(c *clusterv1.ManagedCluster) {
				for n := range 40 {
					c.Annotations[fmt.Sprintf("example.com/a%d", n)] = "x"
				}
			},
			func(c *clusterv1.ManagedCluster) { c.Annotations["agent.open-cluster-management.io/version"] = "2" },
		},
		"its addresses beside forty labels that were there before the policy": {
			"agent-labels",
			func(c *clusterv1.ManagedCluster) {
				for n := range 40 {
					c.Labels[fmt.Sprintf("agent.open-cluster-management.io/l%d", n)] = "x"
				}
			},
			func(c *clusterv1.ManagedCluster) {
				c.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: "https://new:6443"}}
			},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			accepted(t, tc.name)
			becomes(t, tc.name, func(c *clusterv1.ManagedCluster) bool { return c.Labels[setLabel] != "" && len(c.Annotations) > 0 })
			own := agent(t, tc.name)
			require.NoError(t, change(t, plane.Client, tc.name, tc.admin))
			assert.NoError(t, change(t, own, tc.name, tc.own))
		})
	}
}

// The manager of an add-on reports three long errors, of Helm for instance. The agent goes on reporting its health.
func TestAnAgentReportsBesideLongMessagesOfAManager(t *testing.T) {
	t.Parallel()
	const name = "agent-reports"
	accepted(t, name)
	own := agent(t, name)
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "long"}}
	require.NoError(t, plane.Client.Create(t.Context(), addOn))
	suite.Eventually(t, func() error { // the hub manager may write it, too
		if err := plane.Client.Get(t.Context(), client.ObjectKeyFromObject(addOn), addOn); err != nil {
			return err
		}
		for n := range 3 {
			meta.SetStatusCondition(&addOn.Status.Conditions, metav1.Condition{
				Type: fmt.Sprintf("Long%d", n), Status: metav1.ConditionFalse, Reason: "Error", Message: strings.Repeat("x", 25000),
			})
		}
		return plane.Client.Status().Update(t.Context(), addOn)
	})
	suite.Eventually(t, func() error {
		if err := plane.Client.Get(t.Context(), client.ObjectKeyFromObject(addOn), addOn); err != nil {
			return err
		}
		meta.SetStatusCondition(&addOn.Status.Conditions, metav1.Condition{
			Type: "Available", Status: metav1.ConditionTrue, Reason: "Lease", Message: "well",
		})
		return own.Status().Update(t.Context(), addOn)
	})
}
