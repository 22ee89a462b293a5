package messages_test

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

//go:embed testdata/definitions.yaml
var definitions []byte

// define creates one of the definitions of testdata: an AddOnTemplate and its ClusterManagementAddOn. They go with the
// test.
func define(t *testing.T, name string) {
	t.Helper()
	for _, document := range bytes.Split(definitions, []byte("\n---\n")) {
		if !bytes.Contains(document, []byte("# "+name+"\n")) {
			continue
		}
		require.NoError(t, plane.Apply(t.Context(), document))
	}
}

// install creates a ManagedClusterAddOn on the cluster; it goes with the test.
func install(t *testing.T, name string, annotations map[string]string) {
	t.Helper()
	installOn(t, home, name, annotations)
}

// installOn is install on another cluster.
func installOn(t *testing.T, cluster, name string, annotations map[string]string) {
	t.Helper()
	require.NoError(t, plane.AddOns.CreateAddOn(t.Context(), &addonv1beta1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name, Annotations: annotations},
	}))
}

// request waits for the certificate request of an add-on, and returns it.
func request(t *testing.T, addOn string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	var list certificatesv1.CertificateSigningRequestList
	suite.Eventually(t, func() error {
		err := plane.Client.List(t.Context(), &list,
			client.MatchingLabels{names.LabelClusterName: home, names.LabelAddonName: addOn})
		if err == nil && len(list.Items) == 0 {
			return fmt.Errorf("add-on %s asks for nothing yet", addOn)
		}
		return err
	})
	return &list.Items[0]
}

// matches says in what a condition is not as it should be.
func matches(c *metav1.Condition, status metav1.ConditionStatus, reason string, texts ...string) error {
	switch {
	case c == nil:
		return fmt.Errorf("there is no condition, and it must be %s", reason)
	case c.Status != status || c.Reason != reason:
		return fmt.Errorf("it is %s, %s: %s, and must be %s, %s", c.Status, c.Reason, c.Message, status, reason)
	}
	for _, text := range texts {
		if !strings.Contains(c.Message, text) {
			return fmt.Errorf("%q is not in %q", text, c.Message)
		}
	}
	return nil
}
