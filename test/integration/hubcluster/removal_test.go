package hubcluster_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// longerThanQuiet is longer than decisions must be quiet.
const longerThanQuiet = 5 * time.Second

// Shows: hub/removal-matrix
func TestAnUnreachableClusterKeepsItsAddOn(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"reach-a", "reach-b"} {
		createLabelled(t, name, map[string]string{"reach": "yes"})
	}
	createPlacement(t, "reach", nil, predicate(map[string]string{"reach": "yes"}))
	createAddon(t, "reach", nil, "reach")
	expectInstalled(t, "reach", "reach-a", "reach-b")
	before := getAddon(t, "reach-b", "reach").UID
	setAvailable(t, plane.Client, "reach-b", metav1.ConditionUnknown)
	expectSelected(t, "reach", "reach-a")
	suite.Eventually(t, func() error { return told(t, "reach", "their clusters are not available") })
	suite.Consistently(t, longerThanQuiet, func() error { return installed(t, "reach", "reach-a", "reach-b") })
	setAvailable(t, plane.Client, "reach-b", metav1.ConditionTrue)
	expectSelected(t, "reach", "reach-a", "reach-b")
	suite.Consistently(t, longerThanQuiet, func() error { return installed(t, "reach", "reach-a", "reach-b") })
	assert.Equal(t, before, getAddon(t, "reach-b", "reach").UID)
}

// loseLabel takes the label, of the name of an add-on, from its clusters: all at once, and when nothing happens to them
// any more. What is dropped, or judged, before the others is not more than the limit, and goes.
func loseLabel(t *testing.T, addon string, clusters []string) {
	t.Helper()
	suite.Quiet(t, 2*time.Second, func() int {
		last := 0
		for _, name := range clusters {
			for _, o := range []client.Object{getCluster(t, name), getAddon(t, name, addon)} {
				version, err := strconv.Atoi(o.GetResourceVersion())
				require.NoError(t, err)
				last = max(last, version)
			}
		}
		return last
	})
	var lose errgroup.Group
	for _, name := range clusters {
		cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		lose.Go(func() error {
			no := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:"no"}}}`, addon))
			return plane.Client.Patch(t.Context(), cluster, no)
		})
	}
	require.NoError(t, lose.Wait())
}

// Shows: hub/removal-limit, hub/removal-matrix
func TestLabelsThatManyClustersLoseUninstallNothingUntilSomebodyConfirms(t *testing.T) {
	t.Parallel()
	var all []string
	for i := range 12 {
		name := fmt.Sprintf("limit-%02d", i)
		createLabelled(t, name, map[string]string{"limit": "yes"})
		all = append(all, name)
	}
	createPlacement(t, "limit", nil, predicate(map[string]string{"limit": "yes"}))
	createAddon(t, "limit", nil, "limit")
	expectInstalled(t, "limit", all...)
	cma := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "limit"}}
	annotation := func(key string) string {
		require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKeyFromObject(cma), cma))
		return cma.Annotations[key]
	}
	suite.Eventually(t, func() error { return equal(true, annotation(names.AnnotationRemovalState) != "") })

	loseLabel(t, "limit", all)
	expectSelected(t, "limit")
	suite.Eventually(t, func() error {
		return begins(annotation(names.AnnotationRemovalHeld), "placements stopped selecting 12 clusters")
	})
	suite.Eventually(t, func() error { return told(t, "limit", "Placements stopped selecting 12 clusters") })
	suite.Consistently(t, time.Second, func() error { return installed(t, "limit", all...) })

	// One is selected again.
	patch(t, getCluster(t, all[0]), `{"metadata":{"labels":{"limit":"yes"}}}`)
	suite.Eventually(t, func() error {
		return begins(annotation(names.AnnotationRemovalHeld), "placements stopped selecting 11 clusters")
	})
	_, value, _ := strings.Cut(annotation(names.AnnotationRemovalHeld), names.AnnotationConfirmRemoval+"=")
	value, _, _ = strings.Cut(value, " ")
	patch(t, cma, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, names.AnnotationConfirmRemoval, value))
	expectInstalled(t, "limit", all[0])
	suite.Eventually(t, func() error {
		return errors.Join(equal("", annotation(names.AnnotationRemovalHeld)), equal("", annotation(names.AnnotationConfirmRemoval)))
	})

	// What a person edits is explained.
	for _, name := range all {
		patch(t, getCluster(t, name), `{"metadata":{"labels":{"limit":"yes"}}}`)
	}
	expectInstalled(t, "limit", all...)
	patch(t, getPlacement(t, "limit"), `{"spec":{"numberOfClusters":0}}`)
	expectInstalled(t, "limit")
}

// begins returns an error unless a text begins as it should.
func begins(text, with string) error {
	if strings.HasPrefix(text, with) {
		return nil
	}
	return fmt.Errorf("it begins with %q, and is %q", with, text)
}

// Shows: hub/removal-matrix
func TestAnAddOnGoesWithItsManagedCluster(t *testing.T) {
	t.Parallel()
	createLabelled(t, "gone-a", map[string]string{"gone": "yes"})
	createLabelled(t, "gone-b", map[string]string{"gone": "yes"})
	createPlacement(t, "gone", nil, predicate(map[string]string{"gone": "yes"}))
	createAddon(t, "gone", nil, "gone")
	expectInstalled(t, "gone", "gone-a", "gone-b")
	require.NoError(t, plane.Client.Delete(t.Context(), getCluster(t, "gone-a")))
	expectInstalled(t, "gone", "gone-b")
}

// Shows: hub/removal-matrix
func TestAnAddOnGoesWithItsDefinition(t *testing.T) {
	t.Parallel()
	createLabelled(t, "whole", map[string]string{"whole": "yes"})
	createPlacement(t, "whole", nil, predicate(map[string]string{"whole": "yes"}))
	createAddon(t, "whole", nil, "whole")
	expectInstalled(t, "whole", "whole")
	owner := metav1.GetControllerOf(getAddon(t, "whole", "whole"))
	require.NotNil(t, owner, "by which the garbage collector of Kubernetes deletes it")
	cma := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "whole"}}
	require.NoError(t, plane.Client.Delete(t.Context(), cma))
	// The garbage collector learns of new kinds every 30 seconds.
	expectInstalled(t, "whole")
	suite.Consistently(t, time.Second, func() error { return installed(t, "whole") })
}

// Shows: hub/annotations-in-step
func TestAnnotationsOfAClusterReachExactlyItsAddOns(t *testing.T) {
	t.Parallel()
	createLabelled(t, "step-a", map[string]string{"step": "yes"})
	createLabelled(t, "step-b", map[string]string{"step": "yes"})
	createPlacement(t, "step", nil, predicate(map[string]string{"step": "yes"}))
	createAddon(t, "step", nil, "step")
	createAddon(t, "step-by-hand", nil)
	createMine(t, "step-a", "step-by-hand")
	expectInstalled(t, "step", "step-a", "step-b")
	values := func(cluster, addon string) string {
		return getAddon(t, cluster, addon).Annotations[names.AnnotationValues]
	}
	for _, value := range []string{"one", "two"} {
		patch(t, getCluster(t, "step-a"), fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, names.AnnotationValues, value))
		suite.Eventually(t, func() error { return equal(value, values("step-a", "step")) })
	}
	patch(t, getAddon(t, "step-a", "step"), fmt.Sprintf(`{"metadata":{"annotations":{%q:"mine"}}}`, names.AnnotationValues))
	suite.Eventually(t, func() error { return equal("two", values("step-a", "step")) })
	assert.Empty(t, values("step-b", "step"))
	assert.Empty(t, values("step-a", "step-by-hand"), "people install it")
	patch(t, getCluster(t, "step-a"), fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, names.AnnotationValues))
	suite.Eventually(t, func() error { return equal("", values("step-a", "step")) })
}
