package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/watch"
)

// TestAStatusFitsIntoAnObjectWhateverItSays gives every manifest of a work the longest errors and values that there
// are, made of characters that JSON makes the longest.
//
// Shows: work/status-fits
func TestAStatusFitsIntoAnObjectWhateverItSays(t *testing.T) {
	const limit = 1500 << 10 // of the API server: 1.5 MiB, of which 36 KiB are left for the metadata
	for name, c := range map[string]struct {
		manifests, spec int
	}{
		"a few manifests":           {50, 500},
		"hundreds":                  {400, 500},
		"as much as a hub takes":    {400, 1250},
		"a few that take all of it": {10, 100 << 10},
		"one":                       {1, 1000},
		"many, each as small":       {800, 120},
	} {
		t.Run(name, func(t *testing.T) {
			for _, text := range []string{"<", "é"} {
				giant := strings.Repeat(text, maxMessage/4)
				var raws []string
				results := make([]Object, c.manifests)
				work := &workv1.ManifestWork{}
				for i := range results {
					results[i] = Object{Err: errors.New(giant), ReadErr: errors.New(giant)}
					if i%2 == 0 {
						results[i] = here()
						results[i].Err = errors.New(giant)
						results[i].Feedback = &watch.Feedback{
							Err:        giant,
							Conditions: []metav1.Condition{{Type: "X", Status: "False", Reason: "ConditionRuleEvaluated", Message: giant}},
							Values: []workv1.FeedbackValue{{Name: "a", Value: workv1.FieldValue{
								Type: workv1.String, String: ptr.To(giant),
							}}},
						}
					}
					raws = append(raws, configMap(fmt.Sprintf("m-%d", i)))
					work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests,
						workv1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(`"` + strings.Repeat("x", c.spec) + `"`)}})
				}
				manifests := read(t, raws...)
				for i := range manifests {
					manifests[i].Options.Feedback = []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}}
				}
				work.Status = Conclude(work, manifests, results, epoch)
				encoded, err := json.Marshal(work)
				require.NoError(t, err)
				assert.Less(t, len(encoded), limit, "with %q", text)
				assert.Equal(t, work.Status, Conclude(work, manifests, results, epoch), "and it is stable")
				for i := range work.Status.ResourceStatus.Manifests {
					applied := find(t, work.Status.ResourceStatus.Manifests[i].Conditions, workv1.ManifestApplied)
					require.True(t, strings.HasPrefix(applied.Message, "Failed to apply manifest: "), "why stays: %s", applied.Message)
				}
			}
		})
	}
}

func TestAShortMessageStaysBesideAGiant(t *testing.T) {
	results := []Object{{Err: errors.New("short"), ReadErr: errors.New("short")}}
	raws := []string{configMap("a")}
	for i := range 100 {
		results = append(results, Object{Err: errors.New(strings.Repeat("x", maxMessage)), ReadErr: errors.New("y")})
		raws = append(raws, configMap(fmt.Sprintf("m-%d", i)))
	}
	status := Conclude(&workv1.ManifestWork{}, read(t, raws...), results, epoch)
	list := status.ResourceStatus.Manifests
	assert.Equal(t, "Failed to apply manifest: short", find(t, list[0].Conditions, workv1.ManifestApplied).Message)
	long := find(t, list[1].Conditions, workv1.ManifestApplied).Message
	assert.Greater(t, len(long), 4<<10, "the giants share the rest")
	assert.True(t, strings.HasSuffix(long, "x..."))
	assert.Equal(t, long, find(t, list[100].Conditions, workv1.ManifestApplied).Message)
}

func TestFairShare(t *testing.T) {
	for name, c := range map[string]struct {
		sizes []int
		room  int
		want  int
	}{
		"all fit":                  {[]int{1, 2, 3}, 10, maxMessage},
		"one is too long":          {[]int{1, 2, 30}, 10, 7},
		"two are":                  {[]int{20, 2, 30}, 10, 4},
		"all are":                  {[]int{20, 30}, 10, 5},
		"there is no room at all":  {[]int{20, 30}, -5, 0},
		"there is nothing to tell": {nil, 10, maxMessage},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, fairShare(c.sizes, c.room)) })
	}
}

func TestTextIsMeasuredAsItIsWritten(t *testing.T) {
	for _, text := range []string{"", "plain", `"quoted" \ `, "<a>&", "é€😀", "\x00\n\x7f", "\u2028", "\xff"} {
		encoded, err := json.Marshal(text)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, encodedSize(text), len(encoded)-len(`""`), "%q", text)
		for limit := 3; limit <= encodedSize(text); limit++ {
			assert.LessOrEqual(t, encodedSize(cutEncoded(text, limit)), limit, "%q", text)
		}
	}
}

func TestTheWorkQuotesItsFirstCause(t *testing.T) {
	broken := Object{Err: errors.New("quota exceeded"), Presence: manifest.Absent}
	unread := Object{Err: errors.New("no right"), ReadErr: errors.New("secrets is forbidden")}
	const undecodable = `{"kind":`
	for name, c := range map[string]struct {
		raws               []string
		results            []Object
		applied, available string
	}{
		"all is well": {
			[]string{configMap("a")}, []Object{here()}, "Apply manifest work complete", "All resources are available",
		},
		"one that could not be made": {
			[]string{configMap("a"), configMap("b")}, []Object{here(), broken},
			"Failed to apply manifest work: 1 of 2 manifests failed to apply: manifest 1 (ConfigMap ns/b): " +
				"Failed to apply manifest: quota exceeded",
			"1 of 2 resources are not available: manifest 1 (ConfigMap ns/b): Failed to apply manifest: quota exceeded",
		},
		"several, of which the first is quoted": {
			[]string{configMap("a"), configMap("b"), configMap("c")}, []Object{here(), unread, broken},
			"Failed to apply manifest work: 2 of 3 manifests failed to apply: manifest 1 (ConfigMap ns/b): " +
				"Failed to apply manifest: no right",
			"1 of 3 resources are not available: manifest 2 (ConfigMap ns/c): Failed to apply manifest: quota exceeded",
		},
		"one that could not be read": {
			[]string{configMap("a")}, []Object{unread},
			"Failed to apply manifest work: 1 of 1 manifests failed to apply: manifest 0 (ConfigMap ns/a): " +
				"Failed to apply manifest: no right",
			"1 of 1 resources have unknown status: manifest 0 (ConfigMap ns/a): Failed to fetch resource: secrets is forbidden",
		},
		"one that is only read and not there": {
			[]string{configMap("a")}, []Object{{Presence: manifest.Absent}}, "Apply manifest work complete",
			"1 of 1 resources are not available: manifest 0 (ConfigMap ns/a): Resource is not available",
		},
		"one that cannot be decoded": {
			[]string{undecodable}, []Object{{Err: errors.New("bad JSON"), ReadErr: errors.New("bad JSON")}},
			"Failed to apply manifest work: 1 of 1 manifests failed to apply: manifest 0: Failed to apply manifest: bad JSON",
			"1 of 1 resources have unknown status: manifest 0: Resource meta is incomplete",
		},
	} {
		t.Run(name, func(t *testing.T) {
			status := Conclude(&workv1.ManifestWork{}, read(t, c.raws...), c.results, epoch)
			assert.Equal(t, c.applied, find(t, status.Conditions, workv1.WorkApplied).Message)
			assert.Equal(t, c.available, find(t, status.Conditions, workv1.WorkAvailable).Message)
		})
	}
	long := Object{Err: errors.New(strings.Repeat("x", maxMessage))}
	status := Conclude(&workv1.ManifestWork{}, read(t, configMap("a")), []Object{long}, epoch)
	assert.Less(t, len(find(t, status.Conditions, workv1.WorkApplied).Message), 2*maxCause)
	var none []metav1.Condition
	assert.Empty(t, firstWith([]workv1.ManifestCondition{{Conditions: none}}, workv1.ManifestApplied, metav1.ConditionFalse))
}
