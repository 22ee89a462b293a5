package webhook

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// workOf is a work of manifests.
func workOf(manifests ...string) *workv1.ManifestWork {
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "w"}}
	for _, one := range manifests {
		w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests,
			workv1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(one)}})
	}
	return w
}

const (
	mapA = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":"a"}}`
	mapB = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":"b"}}`
)

// Shows: work/manifests-checked
func TestWrongManifests(t *testing.T) {
	for name, c := range map[string]struct {
		work  *workv1.ManifestWork
		limit int
		want  []string
	}{
		"two objects":  {work: workOf(mapA, mapB)},
		"no manifests": {work: workOf(), want: []string{"manifests should not be empty"}},
		"one object twice": {work: workOf(mapA, mapB, mapA), want: []string{
			"duplicate manifest for resource n/a with resource type v1.ConfigMap",
		}},
		"the same name of another kind": {work: workOf(mapA, strings.Replace(mapA, "ConfigMap", "Secret", 1))},
		"no name": {work: workOf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n"}}`), want: []string{
			"spec.workload.manifests[0] has no metadata.name",
		}},
		"a name to be made up": {
			work: workOf(mapA, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"n"}}`),
			want: []string{"spec.workload.manifests[1] has metadata.generateName, which is not supported: set metadata.name"},
		},
		"no kind": {
			work: workOf(`{"apiVersion":"v1","metadata":{"name":"n"}}`),
			want: []string{"spec.workload.manifests[0] needs apiVersion and kind"},
		},
		"too large": {
			work: workOf(mapA), limit: 10,
			want: []string{"the size of manifests is 80 bytes which exceeds the 10 limit"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.limit == 0 {
				c.limit = DefaultManifestLimit
			}
			assert.Equal(t, c.want, wrongManifests(c.work, c.limit))
		})
	}
	wrong := wrongManifests(workOf(`[]`), DefaultManifestLimit)
	require.Len(t, wrong, 1)
	assert.Contains(t, wrong[0], "spec.workload.manifests[0] cannot be decoded")
}

func TestWorksAreChecked(t *testing.T) {
	request := func(work *workv1.ManifestWork) admission.Request {
		r := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create}}
		r.Object.Raw, _ = json.Marshal(work)
		return r
	}
	for sentence, c := range map[string]struct {
		request admission.Request
		limit   int
		says    string
	}{
		"a good work":            {request: request(workOf(mapA))},
		"a work without content": {request: request(workOf()), says: "manifests should not be empty"},
		"a work over the limit":  {request: request(workOf(mapA)), limit: 10, says: "exceeds the 10 limit"},
		"all that is wrong":      {request: request(workOf(mapA, mapA)), limit: 10, says: "v1.ConfigMap; the size"},
		"what is no ManifestWork": {
			request: admission.Request{}, says: "decoding the ManifestWork",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			response := (&Works{Limit: c.limit}).Check(t.Context(), c.request)
			assert.Equal(t, c.says == "", response.Allowed)
			if c.says != "" {
				assert.Equal(t, int32(http.StatusBadRequest), response.Result.Code)
				assert.Contains(t, response.Result.Message, c.says)
			}
		})
	}
}
