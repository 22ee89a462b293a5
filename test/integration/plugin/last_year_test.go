package plugin_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/suite"
)

// An instant in the last hours of the year 9999 west of Greenwich is one of the year 10000 in UTC, which an API server
// takes, and writes as a text that Go does not read. An agent has its own Lease and Events in its own namespace, whose
// definitions are those of Kubernetes; nothing of it may hide the rest of the fleet. Our definitions of clusters and
// add-ons refuse such an instant (test/integration/attacks).
func TestAnInstantOfAnAgentHidesNoOtherCluster(t *testing.T) {
	const last = "9999-12-31T23:59:59-23:59"
	agent := world.hub.As(t, "system:open-cluster-management:"+far+":a",
		"system:open-cluster-management:"+far, "system:open-cluster-management:managed-clusters")
	object := func(version, kind, namespace, name string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetAPIVersion(version)
		o.SetKind(kind)
		o.SetNamespace(namespace)
		o.SetName(name)
		return o
	}
	for sentence, tc := range map[string]struct {
		write func() error
		args  string
	}{
		"its Lease": {func() error {
			o := object("coordination.k8s.io/v1", "Lease", far, "managed-cluster-lease")
			if err := agent.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
			if err := unstructured.SetNestedField(o.Object, strings.Replace(last, "59-", "59.000000-", 1), "spec", "renewTime"); err != nil {
				return err
			}
			return agent.Update(t.Context(), o)
		}, "get clusters -o wide"},
		"an Event": {func() error {
			o := object("v1", "Event", far, "x")
			o.Object["involvedObject"] = map[string]any{
				"apiVersion": "addon.open-cluster-management.io/v1beta1", "kind": "ManagedClusterAddOn", "namespace": far, "name": "x",
			}
			o.Object["lastTimestamp"], o.Object["firstTimestamp"] = last, last
			o.Object["reason"], o.Object["type"] = "Any", "Normal"
			return agent.Create(t.Context(), o)
		}, "events -A"},
	} {
		t.Run(sentence, func(t *testing.T) {
			suite.Eventually(t, tc.write) // The hub manager gives the rights first.
			got := run(t, append([]string{"--kubeconfig", world.viewer}, strings.Fields(tc.args)...)...)
			assert.NotContains(t, []int{2, 3}, got.status, "%s: %s", tc.args, got.errs)
			assert.Contains(t, got.out, near, "%s: %s", tc.args, got.errs)
		})
	}
	require.NotEmpty(t, world.program)
}
