package reconcile

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTimesThatNoAPIServerTakesAreWrittenAsOnesThatItTakes(t *testing.T) {
	for read, written := range map[string]string{
		"9999-12-31T23:59:59-23:59": latestTime, "0000-01-01T00:00:00+23:59": earliestTime, "9000-01-01T00:00:00Z": latestTime,
		"0999-12-31T23:59:59Z": earliestTime, "1000-01-01T00:00:00Z": "1000-01-01T00:00:00Z",
		"2026-01-02T03:04:05+01:00": "2026-01-02T02:04:05Z", "8999-12-31T23:59:59Z": "8999-12-31T23:59:59Z",
	} {
		var c metav1.Condition
		require.NoError(t, json.Unmarshal([]byte(`{"lastTransitionTime": "`+read+`"}`), &c))
		c.Message = `"lastTransitionTime":"9999-12-31T23:59:59Z"`
		raw, err := json.Marshal([]metav1.Condition{c})
		require.NoError(t, err)
		var again []metav1.Condition
		require.NoError(t, json.Unmarshal(writable(raw), &again), read)
		assert.Equal(t, written, again[0].LastTransitionTime.UTC().Format(time.RFC3339), read)
		assert.Equal(t, c.Message, again[0].Message, "a message is not a time")
	}
}
