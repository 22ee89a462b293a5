package deploy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/internal/names"
)

// Shows: hub/hosting-cluster-judged
func TestTheHostingClusterIsJudged(t *testing.T) {
	accepted := &clusterv1.ManagedCluster{Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}}
	deleting := accepted.DeepCopy()
	now := metav1.Now()
	deleting.DeletionTimestamp = &now
	for name, tc := range map[string]struct {
		annotation string
		host       *clusterv1.ManagedCluster
		status     metav1.ConditionStatus // empty: there is no condition
		says       []string
	}{
		"no hosting cluster is named": {},
		"it does not exist": {annotation: "host", status: metav1.ConditionFalse, says: []string{
			`There is no ManagedCluster "host"`, names.AnnotationHostingCluster, "Correct the annotation, or register that cluster."}},
		"it is not accepted": {annotation: "host", host: &clusterv1.ManagedCluster{}, status: metav1.ConditionFalse,
			says: []string{"The hub does not accept cluster host", "Set spec.hubAcceptsClient of the ManagedCluster to true"}},
		"it is on its way out": {annotation: "host", host: deleting, status: metav1.ConditionFalse,
			says: []string{"is being deleted. Name another one."}},
		"it is good": {annotation: "host", host: accepted, status: metav1.ConditionTrue, says: []string{"host"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts{host: tc.host, addOn: &addonv1beta1.ManagedClusterAddOn{}}
			if tc.annotation != "" {
				f.addOn.Annotations = map[string]string{names.AnnotationHostingCluster: tc.annotation}
			}
			conditions := []metav1.Condition{{Type: "HostingClusterValidity", Status: metav1.ConditionFalse}}
			var set *metav1.Condition
			concludeHost(f, &conditions, func(c metav1.Condition) { set = &c })
			if tc.status == "" {
				assert.Nil(t, set)
				assert.Empty(t, conditions, "the condition goes with the annotation")
				return
			}
			require.NotNil(t, set)
			assert.Equal(t, "HostingClusterValidity", set.Type)
			assert.Equal(t, tc.status, set.Status)
			want := "HostingClusterInvalid"
			if tc.status == metav1.ConditionTrue {
				want = "HostingClusterValid"
			}
			assert.Equal(t, want, set.Reason)
			for _, text := range tc.says {
				assert.Contains(t, set.Message, text)
			}
		})
	}
}
