package fleet

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReadSamplesUntilALineThatIsCutShort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "samples")
	text := `{"at":"2026-11-26T12:00:00Z","program":"hub manager","pid":7,"figures":{"memory":41,"open files":3}}` + "\n"
	require.NoError(t, os.WriteFile(path, []byte(text+text[:20]), 0o600))
	samples, err := ReadSamples(path)
	require.NoError(t, err)
	assert.Equal(t, []Sample{{
		At: time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC), Program: "hub manager", PID: 7,
		Figures: map[Figure]float64{Memory: 41, OpenFiles: 3},
	}}, samples)
	require.NoError(t, os.WriteFile(path, []byte(text+"{\n"), 0o600))
	_, err = ReadSamples(path)
	require.ErrorContains(t, err, "sample 2 of "+path)
}

func TestFiguresOfMetrics(t *testing.T) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(`# TYPE requests gauge
requests{verb="WATCH",resource="pods"} 3
requests{verb="CONNECT",resource="pods"} 5
requests{verb="WATCH",resource="nodes"} 4
# TYPE bytes gauge
bytes 8
`))
	require.NoError(t, err)
	assert.Equal(t, map[Figure]float64{Watches: 7}, figureOf(Watches, families["requests"], nil, "verb", "WATCH"))
	assert.Equal(t, map[Figure]float64{Stored: 8}, figureOf(Stored, families["bytes"], nil, "", ""))
	assert.Empty(t, figureOf(Stored, families["others"], nil, "", ""), "what a program does not tell is left out")
	assert.Empty(t, figureOf(Stored, nil, errors.New("it is away"), "", ""))
}
