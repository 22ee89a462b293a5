package configure

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/gate"
)

// A template may have changed a moment ago, and no pass have looked at it.
func TestWhetherAnAddOnHasWhatItIsToHave(t *testing.T) {
	for sentence, tc := range map[string]struct {
		has    string
		change func(*selected)
		want   bool
	}{
		"it has the configuration":       {"default", nil, true},
		"the specs name another one now": {"low", nil, false},
		"it has none yet":                {"", nil, false},
		"of what does not exist nothing is known": {"low", func(s *selected) {
			s.addOn.Spec.Configs = []addonv1beta1.AddOnConfig{fixture.DeploymentConfig("missing")}
		}, true},
		"nor without its definition": {"low", func(s *selected) { s.addOn.Name = "other" }, true},
	} {
		s := newSelected(t, tc.has, nil)
		if tc.change != nil {
			tc.change(s)
		}
		has, err := s.c.Has(t.Context(), s.addOn)
		require.NoError(t, err, sentence)
		assert.Equal(t, tc.want, has, sentence)
	}
}

func TestWhatDegradedSaysOfDependencies(t *testing.T) {
	said := func(reason string) []metav1.Condition {
		return []metav1.Condition{{Type: "Degraded", Status: metav1.ConditionTrue, Reason: reason, Message: "before"}}
	}
	required := metav1.Condition{Reason: gate.ReasonRequiredDependency, Message: "the add-on depends on add-on network"}
	for sentence, tc := range map[string]struct {
		f    facts
		had  []metav1.Condition
		want string
	}{
		"nothing while all are satisfied":           {facts{}, nil, ""},
		"what is not satisfied":                     {facts{degraded: required}, nil, "RequiredDependencyNotSatisfied"},
		"what is not satisfied now":                 {facts{degraded: required}, said(gate.ReasonDependency), "RequiredDependencyNotSatisfied"},
		"nothing any more":                          {facts{}, said(gate.ReasonDependency), ""},
		"what it did while the policy is not known": {facts{undecoded: "bad"}, said(gate.ReasonDependency), "DependencyNotSatisfied"},
		"what an agent says stays":                  {facts{degraded: required}, said("DiskFull"), "DiskFull"},
		"also while all are satisfied":              {facts{}, said("DiskFull"), "DiskFull"},
	} {
		tc.f.addOn = fixture.AddOn("c1")
		tc.f.noteDependencies(&tc.had, fixture.Noon())
		found := meta.FindStatusCondition(tc.had, "Degraded")
		if tc.want == "" {
			assert.Nil(t, found, sentence)
		} else if assert.NotNil(t, found, sentence) {
			assert.Equal(t, tc.want, found.Reason, sentence)
		}
	}
}
