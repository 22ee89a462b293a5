package measure

import (
	"bytes"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestProcessor(t *testing.T) {
	const fields = " S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0"
	for name, tc := range map[string]struct {
		stat string
		want time.Duration
		fail bool
	}{
		"a plain name":        {stat: "7 (etcd)" + fields, want: 2 * time.Second},
		"a name with blanks":  {stat: "7 (a b)" + fields, want: 2 * time.Second},
		"a name with a paren": {stat: "7 (a) b)" + fields, want: 2 * time.Second},
		"too short":           {stat: "7 (etcd) S 1 2", fail: true},
		"no name":             {stat: "7", fail: true},
		"no number":           {stat: "7 (etcd) S 1 2 3 4 5 6 7 8 9 10 x 50", fail: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseProcessor(tc.stat)
			assert.Equal(t, tc.fail, err != nil, "%v", err)
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestPeak(t *testing.T) {
	got, err := parsePeak("Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n")
	require.NoError(t, err)
	assert.InDelta(t, 2*Mebibyte, got, 0)
	_, err = parsePeak("Name:\tx\n")
	require.Error(t, err)
}

func TestOwnProcess(t *testing.T) {
	require.NoError(t, ResetPeak(os.Getpid()))
	peak, err := Peak(os.Getpid())
	require.NoError(t, err)
	assert.Positive(t, peak)
	_, err = Processor(os.Getpid())
	require.NoError(t, err)
}

func TestTable(t *testing.T) {
	table := Table{Log: io.Discard}
	table.Time("slow", 2*time.Second, time.Second)
	table.Time("free", 2*time.Second, 0)
	table.Number("requests", 6.94, 1, "", 7)
	table.Number("memory", 65.2, 0, " MiB", 64)
	table.Number("lines", 3, 0, "", 0)
	var out bytes.Buffer
	require.NoError(t, Write(&out, table.Figures))
	assert.Equal(t, "figure    measured  budget  \n"+
		"slow      2s        1s      missed\n"+
		"free      2s                \n"+
		"requests  6.9       7       \n"+
		"memory    65 MiB    64 MiB  missed\n"+
		"lines     3                 \n", out.String())
}

func TestPercentile(t *testing.T) {
	took := []time.Duration{3, 1, 2, 4}
	assert.Equal(t, time.Duration(3), Percentile(took, 0.5))
	assert.Equal(t, time.Duration(4), Percentile(took, 0.99))
	assert.Zero(t, Percentile(nil, 0.5))
}
