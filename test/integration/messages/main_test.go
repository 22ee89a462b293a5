// Package messages_test runs the hub manager and an agent, with the rights that manifests/ ships, against one control plane
// that is hub and managed cluster, lets things go wrong, and reads on the ManagedClusterAddOn and on the
// ClusterManagementAddOn what is wrong and what to do. docs/operations/messages.md lists the messages.
package messages_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// home is the name of the cluster.
const home = "home"

// plane is the hub and the managed cluster.
var plane *suite.Plane

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		plane = suite.Start(t, sandbox.Options{Name: "messages"},
			manifests.CRDs(), manifests.Hub(), manifests.SpokeCRDs(), manifests.Klusterlet())
		suite.StartHub(t, plane)
		suite.RunAgent(t, suite.ConfigureAgent(t, plane, plane, home, names.NamespaceAgent))
		suite.Admit(t, plane, home)
	})
}

// says waits until a condition of a ManagedClusterAddOn has a status and a reason, and its message all the texts.
func says(t *testing.T, addOn, kind string, status metav1.ConditionStatus, reason string, texts ...string) {
	t.Helper()
	saysOn(t, home, addOn, kind, status, reason, texts...)
}

// saysOn is says for another cluster.
func saysOn(
	t *testing.T, cluster, addOn, kind string, status metav1.ConditionStatus, reason string, texts ...string,
) {
	t.Helper()
	var message string
	suite.Eventually(t, func() error {
		found, err := plane.AddOns.GetAddOn(t.Context(), types.NamespacedName{Namespace: cluster, Name: addOn})
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(found.Status.Conditions, kind)
		if err := matches(c, status, reason, texts...); err != nil {
			return fmt.Errorf("%w; all conditions: %v", err, found.Status.Conditions)
		}
		message = c.Message
		return nil
	})
	t.Logf("%s: %s: %s", kind, reason, message)
}
