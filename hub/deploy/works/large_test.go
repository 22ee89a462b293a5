package works

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/intern"
)

// large is a spec whose options are too large for a cache.
func large(n int) workv1.ManifestWorkSpec {
	spec := workv1.ManifestWorkSpec{DeleteOption: &workv1.DeleteOption{
		PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan, SelectivelyOrphan: &workv1.SelectivelyOrphan{},
	}}
	for i := range n {
		name := fmt.Sprint("name-", i)
		spec.ManifestConfigs = append(spec.ManifestConfigs, workv1.ManifestConfigOption{
			ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Name: name},
		})
		spec.DeleteOption.SelectivelyOrphan.OrphaningRules = append(spec.DeleteOption.SelectivelyOrphan.OrphaningRules,
			workv1.OrphaningRule{Resource: "configmaps", Name: name})
	}
	return spec
}

// Shows: security/filled-objects
func TestOptionsThatAreTooLargeForACacheAreComparedByTheirHash(t *testing.T) {
	for sentence, tc := range map[string]struct {
		there, wanted int
		same, summed  bool
	}{
		"few":                        {10, 10, true, false},
		"few, and one more":          {10, 11, false, false},
		"many":                       {5000, 5000, true, true},
		"many, and one more":         {5000, 5001, false, true},
		"many where few are wanted":  {5000, 10, false, true},
		"few where many are wanted":  {10, 5000, false, false},
		"none":                       {0, 0, true, false},
		"none where many are wanted": {0, 5000, false, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			work, want := &workv1.ManifestWork{Spec: large(tc.there)}, large(tc.wanted)
			whole := specHash(&work.Spec)
			for range 2 { // A cache may transform the same object again.
				_, err := Trim(&intern.Table{})(work)
				require.NoError(t, err)
				assert.Equal(t, tc.summed, IsSummed(work))
				assert.Equal(t, tc.same, sameConfigs(work.Spec.ManifestConfigs, want.ManifestConfigs))
				assert.Equal(t, tc.same, sameDeletion(work.Spec.DeleteOption, want.DeleteOption))
				assert.Equal(t, whole, specHash(&work.Spec))
			}
		})
	}
}
