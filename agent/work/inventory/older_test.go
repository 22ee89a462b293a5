package inventory

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
)

// Shows: work/older-held
func TestOnlyAnEarlierGenerationOfTheSameWorkProvesThatTheHubIsOlder(t *testing.T) {
	for sentence, c := range map[string]struct {
		applied, work string
		generation    int64
		want          bool
	}{
		"an earlier generation":     {"u/3", "u", 2, true},
		"the same one":              {"u/3", "u", 3, false},
		"a later one":               {"u/3", "u", 4, false},
		"another work of its name":  {"u/3", "v", 1, false},
		"nothing was recorded":      {"", "u", 1, false},
		"the record cannot be read": {"u/three", "u", 1, false},
		"a record without a UID":    {"3", "u", 1, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			applied := &workv1.AppliedManifestWork{}
			setAnnotation(applied, AnnotationGeneration, c.applied)
			work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{UID: types.UID(c.work), Generation: c.generation}}
			assert.Equal(t, c.want, WentBack(applied, work))
			before := applied.DeepCopy()
			if SetGeneration(applied, work); c.want {
				assert.Equal(t, before, applied, "the proof stays until what is held is marked")
			}
		})
	}
}
