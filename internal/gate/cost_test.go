package gate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/policies"
)

// "Never" is most easily written as an hour of each hour. One judgement takes a second, and a plan one for each cluster.
func TestAWindowThatDeniesForEverCostsWhatOthersDo(t *testing.T) {
	cost := func(all ...policies.MaintenanceWindow) float64 {
		return testing.AllocsPerRun(1, func() { gate.New("logs", nil, all).Judge(gate.Cluster{}, "c", noon()) })
	}
	night := window("night", "Allow", "0 1 * * *", 4*time.Hour)
	usual := cost(night)
	assert.Less(t, cost(window("never", "Deny", "0 * * * *", time.Hour)), 100*usual)
	assert.Less(t, cost(night, window("freeze", "Deny", "0 0 * * *", 6*time.Hour)), 100*usual, "they never open")
}

// Clusters in the same windows and zones get the same answer at the same instant.
func TestAPlanJudgesTheSameWindowsOnce(t *testing.T) {
	cost := func(clusters int) float64 {
		all := []policies.MaintenanceWindow{window("year", "Allow", "0 1 * * *", 720*time.Hour)}
		return testing.AllocsPerRun(1, func() {
			g := gate.New("logs", nil, all)
			for range clusters {
				g.Judge(gate.Cluster{}, "c", noon())
			}
		})
	}
	assert.Less(t, cost(100), 10*cost(1))
}
