package issue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Who may write the Secret of an add-on makes a pair with its subject that is valid for a thousand years, or begins in a
// hundred. It cuts the add-on off until it is replaced, and the condition says that it was rotated.
//
// Shows: security/forged-tokens
func TestAForgedCertificateThatLastsForEverIsReplaced(t *testing.T) {
	for sentence, begins := range map[string]time.Time{
		"it began an hour ago":         noon.Add(-time.Hour),
		"it begins in a hundred years": noon.AddDate(100, 0, 0),
	} {
		t.Run(sentence, func(t *testing.T) {
			w, forger := newWorld(t), newSigner(t)
			w.user = "agent"
			w.forge(forger.pair(t, wanted, begins, noon.AddDate(1000, 0, 0)))
			for range 12 {
				w.refresh()
				_, err := w.pass()
				require.NoError(t, err)
				w.approve()
				w.now = w.now.AddDate(0, 1, 0)
			}
			assert.NotEmpty(t, w.created, "nobody signs certificates for a thousand years")
		})
	}
}
