package hubprocess

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
)

// TestWhatWeWriteOurselvesIsKept: an add-on may have 256 configurations, of which its works have the hashes.
func TestWhatWeWriteOurselvesIsKept(t *testing.T) {
	longest := strings.Repeat("n", 63) + "/" + strings.Repeat("c", 250)
	kind := strings.Repeat("p", 63) + "." + strings.Repeat("g", 189)
	for _, configs := range []int{10, 100, 256} {
		t.Run(fmt.Sprint(configs), func(t *testing.T) {
			hashes := map[string]string{}
			for i := range configs {
				key := fmt.Sprintf("%s/%s%03d", kind, longest, i)
				hashes[key] = fmt.Sprintf("%064d", i)
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

// TestAKeyDoesNotTakeTheRoomOfAnother: a tenant filled an annotation that the hub manager writes on another kind, so that
// it missed what it had written, and wrote it again in each pass.
func TestAKeyDoesNotTakeTheRoomOfAnother(t *testing.T) {
	for _, filled := range []string{names.AnnotationRenderedFrom, names.AnnotationConfigSpecHash, "example.com/a"} {
		for _, o := range []client.Object{&clusterv1beta1.PlacementDecision{}, &workv1.ManifestWork{}} {
			t.Run(fmt.Sprintf("%s of %T", filled, o), func(t *testing.T) {
				o.SetAnnotations(map[string]string{
					filled: strings.Repeat("y", 200<<10), names.AnnotationStickyPages: "true", names.AnnotationAddonUID: "u",
				})
				_, err := Annotated(func(in any) (any, error) { return in, nil })(o)
				require.NoError(t, err)
				assert.Equal(t, map[string]string{names.AnnotationStickyPages: "true", names.AnnotationAddonUID: "u"},
					o.GetAnnotations())
			})
		}
	}
}
