package fleet

import (
	"encoding/json"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/internal/intern"
)

// Texts that are the same have one place in the memory, and are what they were.
func TestATextOfManyObjectsIsKeptOnce(t *testing.T) {
	const raw = `{"metadata": {"name": "logs", "namespace": "store"}, "status": {"namespace": "logs", "conditions": [
{"type": "Available", "status": "True", "reason": "Fine", "message": "it works"}], "configReferences": [
{"resource": "addontemplates", "desiredConfig": {"name": "v1", "specHash": "1"}}]}}`
	texts := &intern.Table{}
	var all [2]AddOn
	for i := range all {
		require.NoError(t, json.Unmarshal([]byte(raw), &all[i]))
		all[i].share(texts)
	}
	var plain AddOn
	require.NoError(t, json.Unmarshal([]byte(raw), &plain))
	assert.Equal(t, plain, all[0])
	assert.Equal(t, plain, all[1])
	first, second := all[0].Status.Conditions[0].Message, all[1].Status.Conditions[0].Message
	assert.Same(t, unsafe.StringData(first), unsafe.StringData(second))
}
