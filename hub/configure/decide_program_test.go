package configure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// Shows: hub/program-awaited
func TestAnAddOnWhoseProgramDoesNotRunSaysWhatToLookFor(t *testing.T) {
	const plain = "waiting for the manifests of the add-on to be applied"
	waits := fixture.Condition("Progressing", metav1.ConditionFalse, "WaitingForManifestApplied", fixture.Noon())
	config := fixture.Template("t")
	tests := map[string]struct {
		configs    []addonv1beta1.AddOnConfig
		conditions []metav1.Condition
		after      time.Duration
		says       string // what follows the plain message; empty for nothing
		at         bool   // whether time alone changes it
	}{
		"it has just begun":     {nil, nil, time.Hour, "", false},
		"it waits a moment":     {nil, []metav1.Condition{waits}, awaited - time.Second, "", true},
		"no program answers":    {nil, []metav1.Condition{waits}, awaited, "none has answered: see that its Deployment runs", true},
		"a program is there":    {nil, []metav1.Condition{waits, fixture.IsTrue("RegistrationApplied")}, awaited, "see in its log", true},
		"a template makes them": {[]addonv1beta1.AddOnConfig{config}, []metav1.Condition{waits}, time.Hour, "", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := facts{
				addOn: fixture.With(fixture.AddOn("c1"), test.conditions...), cma: fixture.NewCMA(test.configs), placement: -1,
				states: addonconfig.States{config: {Hash: "h", Generation: 1}}, admission: addonconfig.Admission{Granted: true},
			}
			decided, after := decide(f), f.addOn.DeepCopy()
			record(f, decided, after, addon.Progress{Now: fixture.Noon().Add(test.after)})
			condition := meta.FindStatusCondition(after.Status.Conditions, "Progressing")
			require.NotNil(t, condition)
			assert.Equal(t, "WaitingForManifestApplied", condition.Reason)
			if test.says == "" {
				assert.Equal(t, plain, condition.Message)
			} else {
				assert.Contains(t, condition.Message, plain+"; ")
				assert.Contains(t, condition.Message, test.says)
			}
			assert.Equal(t, test.at, f.programAt(decided).Equal(fixture.Noon().Add(awaited)))
		})
	}
}
