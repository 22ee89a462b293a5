package deploy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/names"
)

// Shows: hub/registrations-merged
func TestTheNamespaceOfAnAgent(t *testing.T) {
	const annotated = names.AnnotationInstallNamespace
	for sentence, tc := range map[string]struct {
		definition string
		annotation string
		setupErr   error
		refused    error
		want       string
	}{
		"by default":                        {want: "open-cluster-management-agent-addon"},
		"that of the add-on object":         {annotation: "own", want: "own"},
		"that of the definition":            {definition: "stated", want: "stated"},
		"the definition wins":               {definition: "stated", annotation: "own", want: "stated"},
		"not while the definition waits":    {setupErr: &addon.NotReadyError{Message: "m"}, annotation: "own", want: "before"},
		"not while the definition is wrong": {setupErr: &addon.InvalidError{Message: "m"}, annotation: "own", want: "before"},
		"also while roles are refused":      {refused: &addon.InvalidError{Message: "m"}, definition: "stated", want: "stated"},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := factsOf()
			f.addOn.Status.Namespace = "before"
			if tc.annotation != "" {
				f.addOn.Annotations = map[string]string{annotated: tc.annotation}
			}
			f.setup.Namespace, f.setupErr, f.refused = tc.definition, tc.setupErr, tc.refused
			assert.Equal(t, tc.want, conclude(f, decide(f), results{}).Status.Namespace)
		})
	}
}

// TestAPassWritesItsOwnFieldsOnly has a status in which others wrote, too.
func TestAPassWritesItsOwnFieldsOnly(t *testing.T) {
	f := factsOf(agentDeployment())
	f.registrations = []addonv1beta1.RegistrationConfig{kube("", "u", "g")}
	others := addonv1beta1.ManagedClusterAddOnStatus{
		ConfigReferences: []addonv1beta1.ConfigReference{{ConfigGroupResource: addonv1beta1.ConfigGroupResource{Resource: "r"}}},
		RelatedObjects:   []addonv1beta1.ObjectReference{{Name: "o"}},
		AddOnMeta:        addonv1beta1.AddOnMeta{DisplayName: "d"},
	}
	for _, kind := range []string{
		"Configured", "Progressing", "ClusterCertificateRotated", "TokenInfrastructureReady", "TokenRefreshed",
		names.ConditionWorkloadsReady, "example.com/Own",
	} {
		others.Conditions = append(others.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionFalse, Reason: "R", Message: kind, LastTransitionTime: metav1.Unix(1, 0),
		})
	}
	f.addOn.Status = *others.DeepCopy()
	before := f.addOn.DeepCopy()
	after := conclude(f, decide(f), results{works: make([]error, 1)})
	assert.Equal(t, before, f.addOn, "the facts are not changed")
	assert.Equal(t, others.ConfigReferences, after.Status.ConfigReferences)
	assert.Equal(t, others.RelatedObjects, after.Status.RelatedObjects)
	assert.Equal(t, others.AddOnMeta, after.Status.AddOnMeta)
	for _, condition := range others.Conditions {
		got := meta.FindStatusCondition(after.Status.Conditions, condition.Type)
		require.NotNil(t, got, condition.Type)
		assert.Equal(t, condition, *got)
	}

	// No matter who wrote in between, a later pass that finds the same changes nothing, whatever the order of the answer.
	f.about.SupportedConfigs = []addonv1beta1.ConfigGroupResource{{Group: "b", Resource: "r"}, {Group: "a", Resource: "r"}}
	first := conclude(f, decide(f), results{works: make([]error, 1)})
	f.addOn, f.now = first, f.now.Add(time.Hour)
	f.about.SupportedConfigs = []addonv1beta1.ConfigGroupResource{{Group: "a", Resource: "r"}, {Group: "b", Resource: "r"}}
	assert.Equal(t, first.Status, conclude(f, decide(f), results{works: make([]error, 1)}).Status)
}
