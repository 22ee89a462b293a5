package work_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// secretText and secretNumber are what the Secrets of the test keep.
	secretText   = "marker-of-a-secret"
	secretNumber = 48151623
)

// oddSecrets are Secrets with the marker in each field that holds what a user keeps there, in each form. Values of other
// fields, such as a name or a label, are quoted by the API server when it refuses them.
func (e *env) oddSecrets() []any {
	fields := [][]string{
		{"data"}, {"data", "k"}, {"stringData"}, {"stringData", "k"}, {"immutable"}, {"odd"}, {"odd", "k"},
		{"metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"},
	}
	encoded := base64.StdEncoding.EncodeToString([]byte(secretText))
	forms := []any{
		secretText, encoded, secretNumber, []any{secretText}, []any{secretNumber}, map[string]any{"k": secretText},
		map[string]any{"k": secretNumber}, map[string]any{"k": []any{encoded}}, map[string]any{"k": map[string]any{"k": encoded}},
	}
	var list []any
	for _, field := range fields {
		for _, form := range forms {
			object := map[string]any{
				"apiVersion": "v1", "kind": "Secret",
				"metadata": map[string]any{"namespace": e.cluster, "name": fmt.Sprintf("s-%d", len(list))},
			}
			if _, isText := form.(string); field[0] == "metadata" && !isText {
				continue // the API server of the hub takes no such metadata
			}
			require.NoError(e, unstructured.SetNestedField(object, jsonValue(form), field...))
			list = append(list, object)
		}
	}
	for _, kind := range []string{"kubernetes.io/tls", "kubernetes.io/dockerconfigjson", "kubernetes.io/basic-auth"} {
		list = append(list, map[string]any{
			"apiVersion": "v1", "kind": "Secret", "type": kind, "stringData": map[string]any{".dockerconfigjson": secretText},
			"metadata": map[string]any{"namespace": e.cluster, "name": fmt.Sprintf("s-%d", len(list))},
		})
	}
	return list
}

// jsonValue is a value with the types of a decoded object.
func jsonValue(value any) any {
	raw, _ := json.Marshal(map[string]any{"v": value})
	object := &unstructured.Unstructured{}
	_ = object.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"X",` + string(raw[1:])))
	return object.Object["v"]
}

// TestTheValuesOfASecretAreNotTold applies Secrets of every form, new ones and ones that exist, and then reads all that
// the agent tells about them.
//
// Shows: work/secrets-untold
func TestTheValuesOfASecretAreNotTold(t *testing.T) {
	t.Parallel()
	for sentence, strategy := range map[string]workv1.UpdateStrategy{
		"Update":          {Type: workv1.UpdateStrategyTypeUpdate},
		"CreateOnly":      {Type: workv1.UpdateStrategyTypeCreateOnly},
		"ServerSideApply": {Type: workv1.UpdateStrategyTypeServerSideApply},
		"ServerSideApply with ignoreFields": {
			Type: workv1.UpdateStrategyTypeServerSideApply,
			ServerSideApply: &workv1.ServerSideApplyConfig{IgnoreFields: []workv1.IgnoreField{{
				Condition: workv1.IgnoreFieldsConditionOnSpokeChange, JQPathExpressions: []string{".data.k.x"},
			}}},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.settings.events, e.settings.metrics = true, prometheus.NewRegistry()
			w := e.work("w")
			w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
				ResourceIdentifier: workv1.ResourceIdentifier{Resource: "secrets", Namespace: e.cluster, Name: "*"},
				UpdateStrategy:     &strategy,
			}}
			var good []any
			odd := e.oddSecrets()
			for i := range odd {
				good = append(good, &corev1.Secret{
					TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
					ObjectMeta: metav1.ObjectMeta{Namespace: e.cluster, Name: fmt.Sprintf("s-%d", i)},
					Data:       map[string][]byte{"k": []byte(secretText + " of before")},
				})
			}
			a := e.start()
			w.Spec.Workload.Manifests = e.manifests(odd...)
			e.create(w)
			e.is(w, workv1.WorkApplied, metav1.ConditionFalse)
			e.untold(a)
			e.edit(w, func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = e.manifests(good...) })
			if sentence != "ServerSideApply with ignoreFields" {
				e.settled(w)
			}
			e.edit(w, func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = e.manifests(odd...) })
			if strategy.Type != workv1.UpdateStrategyTypeCreateOnly {
				e.is(w, workv1.WorkApplied, metav1.ConditionFalse)
			}
			e.quiet(a)
			e.untold(a)
		})
	}
}

// untold checks that nothing which the agent tells has a value of a Secret.
func (e *env) untold(a *agent) {
	e.Helper()
	told := map[string]string{"the log": a.log.String()}
	var works workv1.ManifestWorkList
	require.NoError(e, e.List(e.Context(), &works, client.InNamespace(e.cluster)))
	for i := range works.Items {
		status, err := json.MarshalIndent(works.Items[i].Status, "", " ")
		require.NoError(e, err)
		told["the status of "+works.Items[i].Name] = string(status)
	}
	var events eventsv1.EventList
	require.NoError(e, e.List(e.Context(), &events, client.InNamespace(e.cluster)))
	for i := range events.Items {
		told["event "+events.Items[i].Name] = events.Items[i].Note
	}
	applied, err := json.Marshal(e.applied())
	require.NoError(e, err)
	told["the AppliedManifestWork"] = string(applied)
	families, err := e.settings.metrics.Gather()
	require.NoError(e, err)
	for _, family := range families {
		told["metric "+family.GetName()] = family.String()
	}
	for where, text := range told {
		for _, value := range []string{secretText, fmt.Sprint(secretNumber), base64.StdEncoding.EncodeToString([]byte(secretText))} {
			for line := range strings.SplitSeq(text, "\n") {
				assert.NotContains(e, line, value, where)
			}
		}
	}
}
