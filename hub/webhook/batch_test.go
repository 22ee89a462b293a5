package webhook_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/hub/webhook"
)

// page returns as many add-ons as an API server converts for one page of a list.
func page() []string {
	const size = 500
	objects := make([]string, 0, size)
	for i := range size {
		objects = append(objects, strings.Replace(addOnAlpha, `"name":"hello"`, fmt.Sprintf(`"name":"a%d"`, i), 1))
	}
	return objects
}

func TestOneObjectOfAnotherDefinitionFailsNoList(t *testing.T) {
	objects := page()
	objects[250] = strings.NewReplacer(`"installNamespace":"ns"`, `"installNamespace":{"later":1},"later":{"n":2}`,
		`"desiredConfig":null`, `"later":[1]`).Replace(objects[250])
	answer := webhook.Convert(review(beta, objects...))
	require.Equal(t, metav1.StatusSuccess, answer.Response.Result.Status, answer.Response.Result.Message)
	require.Len(t, answer.Response.ConvertedObjects, len(objects))
	for i, object := range answer.Response.ConvertedObjects {
		assert.Contains(t, string(object.Raw), fmt.Sprintf(`"name":"a%d"`, i), "the order is kept")
		assert.Equal(t, i == 250, strings.Contains(string(object.Raw), "carried-fields"), i)
	}
	back := converted(t, alpha, string(answer.Response.ConvertedObjects[250].Raw))
	assert.JSONEq(t, `{"later":{"n":2}}`, specOf(t, back))
	assert.Contains(t, back, `\"path\":[\"spec\",\"installNamespace\"]`, "what this type knows as a text waits")
	assert.Contains(t, back, `"later":[1]`)
}

func TestAnObjectThatNoDefinitionAllowsIsNamedInTheRefusalOfItsList(t *testing.T) {
	objects := page()
	objects[250] = strings.Replace(objects[250], `"spec":{"installNamespace":"ns"}`, `"spec":[]`, 1)
	answer := webhook.Convert(review(beta, objects...))
	assert.Equal(t, metav1.StatusFailure, answer.Response.Result.Status)
	assert.Equal(t, "1 of 500 objects cannot be converted to "+beta+
		": object 250 (ManagedClusterAddOn c1/a250): its spec is no object", answer.Response.Result.Message)
	assert.Empty(t, answer.Response.ConvertedObjects)
}

// BenchmarkConvertPage measures the conversion of one page of a list: with a null in every object, without, and with a
// field of a newer definition in every object.
func BenchmarkConvertPage(b *testing.B) {
	plain, usual, newer := page(), page(), page()
	for i := range newer {
		usual[i] = strings.NewReplacer(`"desiredConfig":null`, `"desiredConfig":{"name":"t","specHash":"h"}`,
			`"uid":"u1"`, `"uid":"u1","creationTimestamp":"2026-03-01T12:00:00Z"`).Replace(usual[i])
		newer[i] = strings.Replace(newer[i], `"installNamespace":"ns"`, `"installNamespace":"ns","later":true`, 1)
	}
	for name, objects := range map[string][]string{"plain": plain, "usual": usual, "newer": newer} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			request := review(beta, objects...)
			for b.Loop() {
				if answer := webhook.Convert(request); answer.Response.Result.Status != metav1.StatusSuccess {
					b.Fatal(answer.Response.Result.Message)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(len(objects)), "µs/object")
		})
	}
}
