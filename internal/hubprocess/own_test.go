package hubprocess

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/names"
)

// TestWhatWeWriteOurselvesIsKept: an add-on may have 256 configurations, of which its works have the hashes.
func TestWhatWeWriteOurselvesIsKept(t *testing.T) {
	for _, configs := range []int{10, 50, 90, 100, 256} {
		t.Run(fmt.Sprint(configs), func(t *testing.T) {
			hashes := map[string]string{}
			for i := range configs {
				hashes[fmt.Sprintf("addondeploymentconfigs.addon.open-cluster-management.io/open-cluster-management/config-%03d", i)] =
					fmt.Sprintf("%064d", i)
			}
			raw, err := json.Marshal(hashes)
			require.NoError(t, err)
			work := &workv1.ManifestWork{}
			work.Annotations = map[string]string{
				names.AnnotationConfigSpecHash: string(raw), names.AnnotationRenderedFrom: `{"inputs":"x"}`,
			}
			_, err = Annotated(func(in any) (any, error) { return in, nil })(work)
			require.NoError(t, err)
			assert.Contains(t, work.Annotations, names.AnnotationConfigSpecHash)
			assert.Contains(t, work.Annotations, names.AnnotationRenderedFrom)
		})
	}
}
