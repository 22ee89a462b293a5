package feedback

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheCostOfAnExpressionIsSubtractedFromTheBudget(t *testing.T) {
	cel := newCEL()
	const expression = "[1, 2, 3].all(x, x > 0)"
	budget := int64(MaxManifestCost)
	met, err := cel.condition(t.Context(), expression, nil, &budget)
	require.NoError(t, err)
	assert.True(t, met)
	cost := MaxManifestCost - budget
	assert.Positive(t, cost)

	budget = cost
	_, err = cel.condition(t.Context(), expression, nil, &budget)
	require.NoError(t, err, "a budget that just suffices")
	assert.Zero(t, budget)
	_, err = cel.condition(t.Context(), "true", nil, &budget)
	require.ErrorIs(t, err, errBudget, "nothing is evaluated without a budget")
	assert.Zero(t, budget)
	budget = cost - 1
	_, err = cel.condition(t.Context(), expression, nil, &budget)
	require.ErrorIs(t, err, errBudget)

	_, spent := New(false, 0).Conditions(t.Context(), object(t, configMap), nil)
	assert.Zero(t, spent)
	rules := []string{expression, expression}
	_, spent = New(false, 0).Conditions(t.Context(), object(t, configMap), append(celRules(rules...), celRule("A", "nonsense(")))
	assert.Equal(t, 2*cost, spent)
}
