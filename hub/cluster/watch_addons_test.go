package cluster

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A program that judged an add-on before it saw that the cluster is silent replaced the reason of Unknown, and nobody
// looked again: the add-on waited for its manifests while its agent was gone.
func TestTheHealthOfAnAddOnIsLookedAtWhenTheReasonOfUnknownChanges(t *testing.T) {
	addOn := func(status metav1.ConditionStatus, reason string) *addonv1alpha1.ManagedClusterAddOn {
		o := &addonv1alpha1.ManagedClusterAddOn{}
		o.Status.Conditions = []metav1.Condition{{Type: "Available", Status: status, Reason: reason}}
		return o
	}
	none, looked, more := &addonv1alpha1.ManagedClusterAddOn{}, &addonv1alpha1.ManagedClusterAddOn{},
		&addonv1alpha1.ManagedClusterAddOn{}
	looked.Status.Conditions = []metav1.Condition{{Type: "Progressing", Status: metav1.ConditionTrue}}
	more.Status.Conditions = append(slices.Clone(looked.Status.Conditions), metav1.Condition{Type: "ManifestApplied"})
	silent := addOn(metav1.ConditionUnknown, reasonSilent)
	waits := addOn(metav1.ConditionUnknown, "WorkNotApplied")
	for name, tc := range map[string]struct {
		before, after *addonv1alpha1.ManagedClusterAddOn
		want          bool
	}{
		"it gets one":                   {none, addOn(metav1.ConditionTrue, "A"), true},
		"another status":                {addOn(metav1.ConditionTrue, "A"), addOn(metav1.ConditionFalse, "A"), true},
		"another reason":                {addOn(metav1.ConditionTrue, "A"), addOn(metav1.ConditionTrue, "B"), false},
		"another reason of Unknown":     {silent, waits, true},
		"the silence again":             {waits, silent, false},
		"the same reason of Unknown":    {silent, silent, false},
		"nothing of it is known so far": {none, none, false},
		"its first condition":           {none, looked, true},
		"its second condition":          {looked, more, false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, addonChanges().Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}))
		})
	}
	var after []time.Duration
	r := &Reconciler{}
	r.ofAddOn().Update(t.Context(), event.UpdateEvent{ObjectOld: silent, ObjectNew: waits}, delays{after: &after})
	assert.Equal(t, []time.Duration{overwriteDelay}, after, "two that do not agree write seldom")
}

// delays is a queue of which only the delays are known.
type delays struct {
	queue

	after *[]time.Duration
}

func (d delays) AddAfter(_ ctrlreconcile.Request, delay time.Duration) {
	*d.after = append(*d.after, delay)
}
