package work_test

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/test/suite"
)

// As many works as the agent has workers compare a large object with itself, a hundred thousand times each.
//
// Shows: work/rule-cost
func TestRulesThatCompareALargeObjectHoldUpNoOtherWork(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	data := map[string]string{}
	for i := range 20_000 {
		data[fmt.Sprintf("key%d", i)] = "a"
	}
	e.create(e.configMap("large", data))
	e.start()
	expression := "object == object"
	for i := range 5 {
		expression = fmt.Sprintf("[0,1,2,3,4,5,6,7,8,9].all(x%d, %s)", i, expression)
	}
	for i := range 10 {
		w := e.work(fmt.Sprintf("large%d", i), e.configMap("large", nil))
		w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
			ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Name: "large", Namespace: e.cluster},
			UpdateStrategy:     &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReadOnly},
			ConditionRules: []workv1.ConditionRule{{
				Condition: "X", Type: workv1.CelConditionExpressionsType, CelExpressions: []string{expression},
			}},
		}}
		e.create(w)
	}
	e.create(e.work("small", e.configMap("small", map[string]string{"a": "1"})))
	suite.Eventually(t, func() error {
		if !e.get(&corev1.ConfigMap{}, e.cluster, "small") {
			return errors.New("the small work is not applied")
		}
		return nil
	})
}
