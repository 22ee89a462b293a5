package hubcluster_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// twoTenants creates an add-on that lists Placement p of two users, in namespaces name-a and name-b. The set of the
// second has the returned clusters, on which the add-on is; that of the first has none.
func twoTenants(t *testing.T, name string, clusters int) (all []string) {
	t.Helper()
	for _, tenant := range []string{name + "-a", name + "-b"} {
		require.NoError(t, plane.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant}}))
		eventuallyCreate(t, plane.Client, &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: tenant}})
		bindSet(t, tenant, tenant)
		createPlacement(t, "p", nil, predicate(map[string]string{name: "yes"}),
			func(p *clusterv1beta1.Placement) { p.Namespace = tenant })
	}
	for i := range clusters {
		all = append(all, fmt.Sprintf("%s-%02d", name, i))
		createLabelled(t, all[i], map[string]string{clusterv1beta2.ClusterSetLabel: name + "-b", name: "yes"})
	}
	createAddon(t, name, nil, name+"-b/p", name+"-a/p")
	expectInstalled(t, name, all...)
	suite.Eventually(t, func() error { return equal(true, annotationOf(t, name, names.AnnotationRemovalState) != "") })
	return all
}

func annotationOf(t *testing.T, addon, key string) string {
	t.Helper()
	var cma addonv1alpha1.ClusterManagementAddOn
	require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKey{Name: addon}, &cma))
	return cma.Annotations[key]
}

func placementOf(namespace string) *clusterv1beta1.Placement {
	return &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p"}}
}

// A user without any cluster edits a Placement. Then the clusters of another lose their label.
//
// Shows: hub/removal-limit
func TestAnEditOfOneUserExplainsNothingThatAnotherLoses(t *testing.T) {
	t.Parallel()
	all := twoTenants(t, "lift", 12)
	patch(t, placementOf("lift-a"), `{"spec":{"numberOfClusters":7}}`)
	suite.Eventually(t, func() error {
		return equal(true, strings.Contains(annotationOf(t, "lift", names.AnnotationRemovalState), `"edits":{`))
	})
	loseLabel(t, "lift", all)
	suite.Eventually(t, func() error {
		return begins(annotationOf(t, "lift", names.AnnotationRemovalHeld), "placements stopped selecting 12 clusters")
	})
	suite.Consistently(t, longerThanQuiet, func() error { return installed(t, "lift", all...) })
}

// A user without any cluster has a Placement with a typing error. Another user uninstalls the add-on.
//
// Shows: hub/tenants-apart
func TestAPlacementOfOneUserHoldsUpNothingThatAnotherRemoves(t *testing.T) {
	t.Parallel()
	all := twoTenants(t, "frozen", 1)
	patch(t, placementOf("frozen-a"), `{"spec":{"predicates":[{"requiredClusterSelector":{"celSelector":
		{"celExpressions":["no such thing"]}}}]}}`)
	suite.Eventually(t, func() error {
		p := placementOf("frozen-a")
		if err := plane.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		return equal(true, strings.Contains(fmt.Sprint(p.Status.Conditions), "does not compile"))
	})
	suite.Consistently(t, longerThanQuiet, func() error { return installed(t, "frozen", all...) })
	patch(t, placementOf("frozen-b"), `{"spec":{"numberOfClusters":0}}`)
	expectInstalled(t, "frozen")
}
