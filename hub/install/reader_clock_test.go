package install

import (
	"testing"
	"time"
)

// As TestAClusterThatIsChangedBackAMomentBeforeItsAddOnGoes, where the clock of the API server and ours differ.
func TestAClusterThatIsChangedBackByAnotherClock(t *testing.T) {
	for sentence, skew := range map[string]time.Duration{
		"the clock of the API server is 5 seconds behind ours":    -5 * time.Second,
		"the clock of the API server is 15 seconds behind ours":   -15 * time.Second,
		"the clock of the API server is 15 seconds ahead of ours": 15 * time.Second,
	} {
		t.Run(sentence, func(t *testing.T) {
			changedBack(t, nil, map[string]string{"maintenance": "false"}, skew)
		})
	}
}
