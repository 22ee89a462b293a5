package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

// Mark returns the condition with which our placement says that it has decided: for which generation of the Placement,
// and what all of its PlacementDecisions say.
func Mark(generation int64, pages []*clusterv1beta1.PlacementDecision) metav1.Condition {
	return metav1.Condition{
		Type: names.ConditionDecided, Status: metav1.ConditionTrue, ObservedGeneration: generation, Reason: "Decided",
		Message: contentOf(pages),
	}
}

// IsDecided reports whether PlacementDecisions are those of which our placement said last that it decided them.
func IsDecided(placement *clusterv1beta1.Placement, pages []*clusterv1beta1.PlacementDecision) bool {
	mark := markOf(placement)
	return mark != nil && mark.Message == contentOf(pages)
}

// contentOf identifies what PlacementDecisions say: their names, their decision groups, and their clusters.
func contentOf(pages []*clusterv1beta1.PlacementDecision) string {
	h, clusters := sha256.New(), 0
	for _, page := range slices.SortedFunc(slices.Values(pages), byName) {
		group, index := page.Labels[names.LabelDecisionGroupName], page.Labels[names.LabelDecisionGroupIndex]
		fmt.Fprintf(h, "%s %q %q\n", page.Name, group, index)
		for _, decision := range page.Status.Decisions {
			fmt.Fprintln(h, decision.ClusterName)
		}
		clusters += len(page.Status.Decisions)
	}
	const length = 8
	return fmt.Sprintf("the PlacementDecisions are complete: %d clusters on %d pages, sum %s", clusters, len(pages),
		hex.EncodeToString(h.Sum(nil)[:length]))
}

func byName(a, b *clusterv1beta1.PlacementDecision) int { return strings.Compare(a.Name, b.Name) }
