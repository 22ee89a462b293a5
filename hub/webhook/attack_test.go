package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/webhook"
)

// forged returns an add-on with an annotation of carried fields, as any user who creates add-ons can write it.
func forged(t *testing.T, version, fieldsOf, path, value, spec string) string {
	t.Helper()
	text, err := json.Marshal(fmt.Sprintf(`{%q:[{"path":%s,"value":%s}]}`, fieldsOf, path, value))
	require.NoError(t, err)
	return fmt.Sprintf(`{"apiVersion":%q,"kind":"ManagedClusterAddOn","metadata":{"name":"twisted","namespace":"cz",
		"annotations":{"addon.spokelet.io/carried-fields":%s}},"spec":%s}`, version, text, spec)
}

// Shows: security/carried-fields-of-the-type
func TestAUserCannotSetFieldsThatTheAPIServerValidatesByAnAnnotation(t *testing.T) {
	for sentence, c := range map[string]struct{ to, path, value, spec, want string }{
		"a list that is a text": {to: alpha, path: `["spec","configs"]`, value: `"boom"`, spec: `{}`, want: `{}`},
		"the same in the other direction": {
			to: beta, path: `["spec","configs"]`, value: `"boom"`, spec: `{}`, want: `{}`,
		},
		"a text with a pattern": {
			to: alpha, path: `["spec","installNamespace"]`, value: `"NOT VALID"`, spec: `{}`, want: `{}`,
		},
		"a list of the right type": {
			to: alpha, path: `["spec","configs"]`, value: `[{"group":"g","resource":"r","name":"n"}]`, spec: `{}`, want: `{}`,
		},
		"a part in another case": {to: alpha, path: `["Spec"]`, value: `"boom"`, spec: `{}`, want: `{}`},
		"a field in another case": {
			to: alpha, path: `["spec","Configs"]`, value: `"boom"`, spec: `{}`, want: `{}`,
		},
		"an element": {
			to: alpha, path: `["spec","configs","#0"]`, value: `"boom"`,
			spec: `{"configs":[{"group":"g","resource":"r","name":"n"}]}`,
			want: `{"configs":[{"group":"g","resource":"r","name":"n"}]}`,
		},
		"a field whose parent does not exist": {
			to: alpha, path: `["spec","later","deeper"]`, value: `1`, spec: `{}`, want: `{}`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			from := map[string]string{alpha: beta, beta: alpha}[c.to]
			object := forged(t, from, c.to, c.path, c.value, c.spec)
			got := converted(t, c.to, object)
			assert.JSONEq(t, c.want, specOf(t, got))
			decodesAs(t, c.to, got)
			carried := annotationsOf(t, object)["addon.spokelet.io/carried-fields"]
			assert.JSONEq(t, carried, annotationsOf(t, got)["addon.spokelet.io/carried-fields"], "nothing is lost either")
		})
	}
}

// decodesAs checks that typed clients of a version can read an object.
func decodesAs(t *testing.T, version, object string) {
	t.Helper()
	var meta metav1.TypeMeta
	require.NoError(t, json.Unmarshal([]byte(object), &meta))
	require.Equal(t, version, meta.APIVersion)
	into := map[string]any{
		alpha + "/ManagedClusterAddOn":    &addonv1alpha1.ManagedClusterAddOn{},
		beta + "/ManagedClusterAddOn":     &addonv1beta1.ManagedClusterAddOn{},
		alpha + "/ClusterManagementAddOn": &addonv1alpha1.ClusterManagementAddOn{},
		beta + "/ClusterManagementAddOn":  &addonv1beta1.ClusterManagementAddOn{},
		alpha + "/AddOnTemplate":          &map[string]any{},
		beta + "/AddOnTemplate":           &map[string]any{},
	}[version+"/"+meta.Kind]
	require.NotNil(t, into)
	require.NoError(t, json.Unmarshal([]byte(object), into))
}

// configs returns the given number of configs, with a further part in each.
func configs(n int, part string) string {
	all := make([]string, 0, n)
	for i := range n {
		all = append(all, fmt.Sprintf(`{"group":"g","resource":"r","name":"n%d"%s}`, i, part))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// addOnWith returns an add-on with a spec and a status.
func addOnWith(version, annotation, spec, status string) string {
	text, _ := json.Marshal(annotation)
	return fmt.Sprintf(`{"apiVersion":%q,"kind":"ManagedClusterAddOn","metadata":{"name":"a","namespace":"c",
		"annotations":{"addon.spokelet.io/carried-fields":%s}},"spec":%s,"status":%s}`, version, text, spec, status)
}

// carrying returns an annotation with as many fields, each in an element of a list.
func carrying(n int) string {
	fields := make([]string, 0, n)
	for i := range n {
		fields = append(fields, fmt.Sprintf(`{"path":["spec","configs","#%016x","l%d"],"value":1}`, i, i))
	}
	return fmt.Sprintf(`{%q:[%s]}`, alpha, strings.Join(fields, ","))
}

// cost returns how many pieces of memory a conversion asks for, which does not depend on the speed of a machine.
func cost(t *testing.T, to, object string) float64 {
	t.Helper()
	request := review(to, object)
	return testing.AllocsPerRun(1, func() {
		require.Equal(t, metav1.StatusSuccess, webhook.Convert(request).Response.Result.Status)
	})
}

// Shows: security/conversion-linear
func TestAUserCannotMakeAConversionTakeMoreThanItsSize(t *testing.T) {
	registrations := func(n int) string {
		one := `{"type":"kubeClient","kubeClient":{"driver":"csr","later":1}}`
		return `{"registrations":[` + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + `]}`
	}
	for sentence, c := range map[string]struct {
		to     string
		object func(n int) string
	}{
		"fields that the type does not know, in the elements of a list": {beta, func(n int) string {
			return addOnWith(alpha, "", `{"configs":`+configs(n, `,"later":1`)+`}`, `{}`)
		}},
		"the same of a status": {alpha, func(n int) string { return addOnWith(beta, "", `{}`, registrations(n)) }},
		"carried fields over a long list": {alpha, func(n int) string {
			return addOnWith(beta, carrying(100), `{"configs":`+configs(n, "")+`}`, `{}`)
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			once, twice := cost(t, c.to, c.object(4000)), cost(t, c.to, c.object(8000))
			assert.Less(t, twice/once, 2.5, "%v for 4000, %v for 8000", once, twice)
			assert.Less(t, twice/8000, 200.0, "for each element")
		})
	}
	t.Run("an annotation beyond its bounds is not read", func(t *testing.T) {
		text := carrying(4500)
		object := addOnWith(beta, text, `{"configs":`+configs(12000, "")+`}`, `{}`)
		got := converted(t, alpha, object)
		assert.Equal(t, text, annotationsOf(t, got)["addon.spokelet.io/carried-fields"])
	})
}

func TestAnAnnotationCarriesWhatFitsAndTheListIsAnswered(t *testing.T) {
	object := addOnWith(alpha, "", `{"configs":`+configs(8000, `,"later":1`)+`}`, `{}`)
	got := converted(t, beta, object)
	carried := annotationsOf(t, got)["addon.spokelet.io/carried-fields"]
	assert.LessOrEqual(t, len(carried), 16384)
	assert.Greater(t, strings.Count(carried, "later"), 100)
	back := converted(t, alpha, got)
	assert.Equal(t, strings.Count(carried, "later"), strings.Count(specOf(t, back), "later"))
	assert.Empty(t, annotationsOf(t, back))
}

// TestAConversionNeverExceedsTheAnnotationsOfAnObject: the API server would refuse the whole list.
//
// Shows: security/annotations-full
func TestAUserCannotFailListsByAnnotationsThatLeaveNoRoom(t *testing.T) {
	object := fmt.Sprintf(`{"apiVersion":%q,"kind":"ManagedClusterAddOn","metadata":{"name":"a","namespace":"c",
		"annotations":{"big":%q}},"spec":{"installNamespace":"somewhere","later":1}}`, alpha, strings.Repeat("x", 262141))
	got := annotationsOf(t, converted(t, beta, object))
	assert.Len(t, got, 1)
	assert.Contains(t, got, "big")
}

// served has the handler answer a body, and returns the code, the answer, and the bytes that were allocated meanwhile.
func served(ctx context.Context, t *testing.T, handler http.Handler, body string) (int, string, uint64) {
	t.Helper()
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, webhook.Path, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	handler.ServeHTTP(recorder, request)
	runtime.ReadMemStats(&after)
	answer, err := io.ReadAll(recorder.Result().Body)
	require.NoError(t, err)
	return recorder.Code, string(answer), after.TotalAlloc - before.TotalAlloc
}

// posted encodes a review of conversions to v1beta1.
func posted(t *testing.T, objects ...string) string {
	t.Helper()
	raw, err := json.Marshal(review(beta, objects...))
	require.NoError(t, err)
	return string(raw)
}

// Shows: security/conversion-bombs
func TestAPodCannotExhaustTheHubManagerByAReview(t *testing.T) {
	const mega = 1 << 20
	many := func(size int) string { return strings.TrimSuffix(strings.Repeat("{},", size/3), ",") }
	for sentence, c := range map[string]struct {
		body func() string
		code int
		says string
		most uint64
	}{
		"27 MB of small unknown objects": {
			body: func() string { return posted(t, addOnWith(alpha, "", `{}`, `{"later":[`+many(27*mega)+`]}`)) },
			code: http.StatusRequestEntityTooLarge, says: "larger than", most: 64 * mega,
		},
		"3 MB of small unknown objects": {
			body: func() string { return posted(t, addOnWith(alpha, "", `{}`, `{"later":[`+many(3*mega)+`]}`)) },
			code: http.StatusOK, says: "consists of more than 200000 objects", most: 64 * mega,
		},
		"3 MB of small known objects": {
			body: func() string {
				return posted(t, addOnWith(alpha, "", `{}`, `{"registrations":[`+many(3*mega)+`]}`))
			},
			code: http.StatusOK, says: "consists of more than 200000 objects", most: 64 * mega,
		},
		"27 MB of objects that are nothing": {
			body: func() string {
				return strings.Replace(posted(t, "1"), `"objects":[1]`, `"objects":[`+many(27*mega)+`]`, 1)
			},
			code: http.StatusOK, says: "and 991 more", most: 16 * mega,
		},
		"80 KB with 2,000 unknown fields": {
			body: func() string {
				return posted(t, addOnWith(alpha, "", `{"configs":`+configs(2000, `,"l":1`)+`}`, `{}`))
			},
			code: http.StatusOK, says: "carried-fields", most: 16 * mega,
		},
		"1.6 MB with unknown fields": {
			body: func() string {
				return posted(t, addOnWith(alpha, "", `{"configs":`+configs(36000, `,"l":1`)+`}`, `{}`))
			},
			code: http.StatusOK, says: "carried-fields", most: 300 * mega,
		},
		"33 MB": {
			body: func() string { return `"` + strings.Repeat("x", 33*mega) + `"` },
			code: http.StatusRequestEntityTooLarge, says: "larger than", most: mega,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			code, answer, allocated := served(t.Context(), t, webhook.Handler(logr.Discard()), c.body())
			assert.Equal(t, c.code, code, "%.300s", answer)
			assert.Contains(t, answer, c.says)
			assert.Less(t, allocated, c.most)
			t.Logf("allocated %d MB", allocated/mega)
		})
	}
}

func TestAConversionEndsWithItsClient(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	handler := webhook.Handler(logr.Discard())
	_, answer, _ := served(ctx, t, handler, posted(t, addOnAlpha))
	assert.Empty(t, answer)
	code, answer, _ := served(t.Context(), t, handler, posted(t, addOnAlpha))
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, answer, "kubeClient", "nothing of the former is in the way")
}

// TestALargeListIsAnswered converts as many add-ons in one review as an API server has for the clusters of a fleet.
func TestALargeListIsAnswered(t *testing.T) {
	const n = 30000
	objects := make([]string, n)
	for i := range objects {
		objects[i] = addOnAlpha
	}
	body := posted(t, objects...)
	code, answer, _ := served(t.Context(), t, webhook.Handler(logr.Discard()), body)
	require.Equal(t, http.StatusOK, code)
	got := &apiextensionsv1.ConversionReview{}
	require.NoError(t, json.Unmarshal([]byte(answer), got))
	assert.Equal(t, metav1.StatusSuccess, got.Response.Result.Status, got.Response.Result.Message)
	assert.Len(t, got.Response.ConvertedObjects, n)
	t.Logf("%d MB", len(body)>>20)
}
