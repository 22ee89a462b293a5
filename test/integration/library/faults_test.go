package library_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

// A fault of an author is told with the add-on, the cluster and the cause. What is on the cluster stays; the add-on on
// other clusters and other add-ons on that cluster go on.
//
// Shows: hub/library-faults
func TestAFaultOfAnAuthorStaysWhereItIs(t *testing.T) {
	t.Parallel()
	const applied = addonv1beta1.ManagedClusterAddOnManifestApplied
	for fault, tc := range map[string]struct {
		addOn  string
		values any
		reason string
		says   string
	}{
		"panic": {faulty, map[string]any{"fault": "panic"}, "",
			"the program of the add-on panicked at library/authors_test.go:"},
		"blocks": {faulty, map[string]any{"fault": "blocks"}, "",
			"the functions of the add-on took longer than 300ms: context deadline exceeded"},
		"nameless": {faulty, map[string]any{"fault": "nameless"}, "",
			"object 0 (ConfigMap weather/): metadata.name is required"},
		"twice": {faulty, map[string]any{"fault": "twice"}, "",
			"object 1 (ConfigMap weather/forecast): it is the same object as 0"},
		"large": {faulty, map[string]any{"fault": "large"}, "", "object 0 (ConfigMap weather/forecast): it has 409"},
		"error": {faulty, map[string]any{"fault": "error"}, "", "the forecast does not answer"},
		"type":  {faulty, map[string]any{"text": 5}, "", "value text is int64 instead of a text"},
		"list": {faulty, `["a"]`, "",
			"annotation addon.open-cluster-management.io/values of ManagedClusterAddOn fault-list/faulty"},
		"field": {files, map[string]any{"Text": "x"}, "",
			"file manifests/map.yaml, line 3 of the result: a field has no value"},
		"parse": {files, map[string]any{"Name": "forecast", "Text": "\""}, "", "file manifests/map.yaml, in the result"},
		"func": {files, map[string]any{"Name": "forecast", "Text": 5}, "",
			"file manifests/map.yaml cannot be rendered: manifests/map.yaml:4"},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			here, there := "fault-"+fault, "other-"+fault
			join(t, here)
			join(t, there)
			good := map[string]any{"text": "sunny", "Text": "sunny", "Name": "forecast"}
			bad, neighbor := install(t, here, tc.addOn, good), install(t, here, sound, good)
			other := install(t, there, tc.addOn, good)
			before := bad.deploys("sunny")
			other.deploys("sunny")
			neighbor.deploys("sunny")

			bad.set(tc.values)
			bad.has(applied, metav1.ConditionFalse, tc.reason, "dd-on "+tc.addOn+" on cluster "+here+": ", tc.says)
			change := map[string]any{"text": "rainy", "Text": "rainy", "Name": "forecast"}
			other.set(change)
			other.deploys("rainy")
			neighbor.set(change)
			neighbor.deploys("rainy")
			after, err := bad.work()
			require.NoError(t, err)
			assert.Equal(t, before.Spec, after.Spec, "the work of before stays")
			assert.Equal(t, before.UID, after.UID)

			bad.set(change)
			bad.deploys("rainy")
			bad.report(feed{})
			bad.has(applied, metav1.ConditionTrue, "")
		})
	}
}

// Shows: hub/library-faults
func TestAnAddOnThatWasNeverRenderedTellsWhy(t *testing.T) {
	t.Parallel()
	join(t, "fault-first")
	first := install(t, "fault-first", faulty, map[string]any{"fault": "panic"})
	first.has(addonv1beta1.ManagedClusterAddOnManifestApplied, metav1.ConditionFalse, "",
		"dd-on faulty on cluster fault-first: the program of the add-on panicked")
	_, err := first.work()
	require.Error(t, err)
	first.set(map[string]any{"text": "sunny"})
	first.deploys("sunny")
}

// Shows: hub/library-faults
func TestAFaultInAValuesFunctionGoesAwayByItself(t *testing.T) {
	t.Parallel()
	join(t, "fault-values")
	faulted := install(t, "fault-values", sound, map[string]any{"text": "sunny"})
	faulted.deploys("sunny")
	faulted.annotate("weather.example.com/fault", "values")
	faulted.has(addonv1beta1.ManagedClusterAddOnManifestApplied, metav1.ConditionFalse, "",
		"dd-on sound on cluster fault-values: computing Values[1]: the list of stations does not answer")
	faulted.annotate("weather.example.com/fault", "")
	faulted.annotate(names.AnnotationValues, `{"text": "rainy"}`)
	faulted.deploys("rainy")
}

// An add-on that cannot be hosted leaves the annotation to nobody: its Lease and its works would be looked for on the
// wrong cluster.
//
// Shows: hub/library-hosted
func TestAnAddOnThatCannotBeHostedSaysSo(t *testing.T) {
	t.Parallel()
	join(t, "fault-hosted")
	hosted := install(t, "fault-hosted", sound, map[string]any{"text": "sunny"})
	hosted.deploys("sunny")
	hosted.annotate(names.AnnotationHostingCluster, "somewhere")
	hosted.has(addonv1beta1.ManagedClusterAddOnRegistrationApplied, metav1.ConditionFalse, "",
		"dd-on sound on cluster fault-hosted: the add-on does not support hosted mode: remove annotation")
	hosted.deploys("sunny")
}
