package placement

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/internal/decode"
)

func TestAClusterThatCannotBeDecodedKeepsItsPlace(t *testing.T) {
	const platform = "platform.open-cluster-management.io"
	unknown := &clusterv1.ManagedCluster{}
	unknown.Name = "unknown"
	decode.Mark(unknown, "a number is too large")
	leaving := unknown.DeepCopy()
	leaving.Name, leaving.DeletionTimestamp = "leaving", new(metav1.NewTime(noon()))
	for sentence, tc := range map[string]struct {
		current    []string
		number     *int32
		predicates []clusterv1beta1.ClusterPredicate
		want       []string
	}{
		"it is not selected again": {want: []string{"a", "b", "c"}},
		"it stays selected":        {current: []string{"unknown"}, want: []string{"a", "b", "c", "unknown"}},
		"nobody takes its place":   {current: []string{"unknown"}, number: new(int32(1)), want: []string{"unknown"}},
		"it stays though its claims cannot be seen": {
			current: []string{"unknown"}, want: []string{"c", "unknown"},
			predicates: []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: claimed(by(platform, "In", "GCP"))}},
		},
		"one that is being deleted leaves": {current: []string{"leaving"}, want: []string{"a", "b", "c"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			spec := clusterv1beta1.PlacementSpec{NumberOfClusters: tc.number, Predicates: tc.predicates}
			in := interest{rules: parse(spec, new(memory).compile), scope: everywhere()}
			require.NoError(t, in.rules.misconfigured)
			f := facts{
				now: noon(), placement: &clusterv1beta1.Placement{Spec: spec},
				clusters: append(everyCluster(), unknown, leaving),
			}
			current := map[string]bool{}
			for _, name := range tc.current {
				current[name] = true
			}
			got, err := selectClusters(f, in, current)
			require.NoError(t, err)
			assert.ElementsMatch(t, tc.want, got.names)
		})
	}
}
