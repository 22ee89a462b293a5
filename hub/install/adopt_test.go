package install

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
)

func entry(manager, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func TestWhoInstalledAnAddOnIsReadFromItsManagedFields(t *testing.T) {
	const owner, spec = `{"f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"cma\"}":{}}}}`, `{"f:spec":{}}`
	const both = `{"f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"cma\"}":{}}},"f:spec":{"f:installNamespace":{}}}`
	tests := map[string]struct {
		entries []metav1.ManagedFieldsEntry
		change  func(*addonv1beta1.ManagedClusterAddOn)
		want    string
	}{
		"spec and owner of one manager": {entries: []metav1.ManagedFieldsEntry{entry("addon", "", both)}, want: "addon"},
		"in several entries":            {entries: []metav1.ManagedFieldsEntry{entry("addon", "", owner), entry("addon", "", spec)}, want: "addon"},
		"beside an agent's status": {
			entries: []metav1.ManagedFieldsEntry{entry("addon", "", both), entry("agent", "status", `{"f:status":{}}`)}, want: "addon",
		},
		"beside the annotation of a person": {
			entries: []metav1.ManagedFieldsEntry{entry("addon", "", both), entry("kubectl-annotate", "", `{"f:metadata":{"f:annotations":{}}}`)},
			want:    "addon",
		},
		"a person's spec and a manager's owner": {entries: []metav1.ManagedFieldsEntry{entry("kubectl-create", "", spec), entry("addon", "", owner)}},
		"a person who changed the spec":         {entries: []metav1.ManagedFieldsEntry{entry("addon", "", both), entry("kubectl-edit", "", spec)}},
		"a person who applied it with kubectl": {
			entries: []metav1.ManagedFieldsEntry{entry("kubectl-client-side-apply", "", both)},
			change: func(a *addonv1beta1.ManagedClusterAddOn) {
				a.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}"}
			},
		},
		"no entry":                                {},
		"what cannot be read":                     {entries: []metav1.ManagedFieldsEntry{entry("addon", "", `[`)}},
		"another owner":                           {entries: []metav1.ManagedFieldsEntry{entry("addon", "", both)}, change: func(a *addonv1beta1.ManagedClusterAddOn) { a.OwnerReferences[0].UID = "x" }},
		"an owner that is not the controller":     {entries: []metav1.ManagedFieldsEntry{entry("addon", "", both)}, change: func(a *addonv1beta1.ManagedClusterAddOn) { a.OwnerReferences[0].Controller = nil }},
		"our label, with which nobody has to ask": {entries: []metav1.ManagedFieldsEntry{entry("addon", "", both)}, change: func(a *addonv1beta1.ManagedClusterAddOn) { a.Labels = map[string]string{names.LabelInstalledBy: "x"} }},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			f := with(ready(true), mine)
			addon, isBeta := f.addon.(*addonv1beta1.ManagedClusterAddOn)
			require.True(t, isBeta)
			setOwner(addon, f.cma, "")
			addon.ManagedFields = test.entries
			if test.change != nil {
				test.change(addon)
			}
			for range 2 { // A cache may do so.
				_, err := TrimAddOn(addon)
				require.NoError(t, err)
			}
			delete(addon.Annotations, corev1.LastAppliedConfigAnnotation) // The cache drops it afterwards.
			assert.Equal(t, test.want, installedBy(addon))
			assert.LessOrEqual(t, len(addon.ManagedFields), 1, "the cache keeps no more than it needs")
		})
	}
}

// byOCM is an add-on that another add-on manager installed for a placement.
func byOCM(f *facts) {
	mine(f)
	setOwner(f.addon, f.cma, "")
	f.addon.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "addon"}})
}

func TestAnAddOnThatAnotherManagerInstalledIsTakenOver(t *testing.T) {
	p := decide(with(ready(true), byOCM))
	require.NotNil(t, p.update)
	assert.Equal(t, names.InstalledByPlacement, p.update.GetLabels()[names.LabelInstalledBy])

	f := with(ready(false), byOCM)
	assert.Nil(t, decide(f).update, "no placement says that it is there for one")
	r := decideRemovals(removalOf(f, decided("p").known()))
	assert.Empty(t, r.remove)
	require.Len(t, r.kept, 1)
	assert.Contains(t, r.kept[0], "installed by addon before this hub manager")

	p = decide(with(ready(true), mine, func(f *facts) { setOwner(f.addon, f.cma, "") }))
	assert.Nil(t, p.update, "a person made it")
}
