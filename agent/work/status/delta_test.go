package status

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
)

// reported is a work with a status of so many manifests, of 200 bytes or more each.
func reported(manifests int) *workv1.ManifestWork {
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "w", UID: "u", ResourceVersion: "7"}}
	w.Status.Conditions = []metav1.Condition{{Type: "Applied", Status: "True", Reason: "r"}}
	for i := range manifests {
		w.Status.ResourceStatus.Manifests = append(w.Status.ResourceStatus.Manifests, workv1.ManifestCondition{
			ResourceMeta: workv1.ManifestResourceMeta{Ordinal: int32(i), Name: fmt.Sprint("m", i)},
			Conditions:   []metav1.Condition{{Type: "Applied", Message: strings.Repeat("x", 200)}},
		})
	}
	return w
}

// Shows: work/status-delta
func TestOnlyWhatChangedOfALargeStatusIsSent(t *testing.T) {
	for sentence, test := range map[string]struct {
		manifests int
		change    func(*workv1.ManifestWorkStatus)
		patched   bool
		small     bool
	}{
		"one of a hundred manifests": {100, func(s *workv1.ManifestWorkStatus) {
			s.ResourceStatus.Manifests[41].Conditions[0].Status = "False"
		}, true, true},
		"the conditions of the work": {100, func(s *workv1.ManifestWorkStatus) { s.Conditions[0].Status = "False" }, true, true},
		"a small status is not patched": {5, func(s *workv1.ManifestWorkStatus) {
			s.ResourceStatus.Manifests[1].Conditions[0].Status = "False"
		}, false, false},
		"of a status that changed as a whole, the whole": {100, func(s *workv1.ManifestWorkStatus) {
			for i := range s.ResourceStatus.Manifests {
				s.ResourceStatus.Manifests[i].Conditions[0].Status = "False"
			}
		}, true, false},
		"of a status with other manifests, the whole": {100, func(s *workv1.ManifestWorkStatus) {
			s.ResourceStatus.Manifests = s.ResourceStatus.Manifests[1:]
		}, true, false},
		"of a first status, the whole": {0, func(s *workv1.ManifestWorkStatus) { *s = reported(100).Status }, true, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			work := reported(test.manifests)
			after := work.DeepCopy()
			test.change(&after.Status)
			raw, err := Patch(work, &after.Status)
			require.NoError(t, err)
			require.Equal(t, test.patched, raw != nil)
			if raw == nil {
				return
			}
			whole, err := json.Marshal(after)
			require.NoError(t, err)
			assert.Equal(t, test.small, 4*len(raw) < len(whole))
			before, err := json.Marshal(work)
			require.NoError(t, err)
			patch, err := jsonpatch.DecodePatch(raw)
			require.NoError(t, err)
			patched, err := patch.Apply(before)
			require.NoError(t, err)
			assert.JSONEq(t, string(whole), string(patched))
		})
	}
}
