package measure

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const smaps = `00400000-01710000 r-xp 00000000 fe:00 10682599                           /usr/bin/spokelet
Rss:               14908 kB
Anonymous:             8 kB
01710000-02a9e000 r--p 01310000 fe:00 10682599                           /usr/bin/spokelet
Rss:               15288 kB
Anonymous:             0 kB
02a9e000-02b39000 rw-p 0269e000 fe:00 10682599                           /usr/bin/spokelet
Rss:                 620 kB
Anonymous:           148 kB
02b39000-04b87000 rw-p 00000000 00:00 0
Rss:                 156 kB
Anonymous:           156 kB
7ffc0e5f2000-7ffc0e5f4000 r-xp 00000000 00:00 0                          [vdso]
Rss:                   4 kB
Anonymous:             0 kB
`

func TestFootprint(t *testing.T) {
	const kibibyte = 1024
	resident, err := parseFootprint(strings.NewReader(smaps))
	require.NoError(t, err)
	assert.Equal(t, Footprint{
		Anonymous: (8 + 148 + 156 + 4) * kibibyte, Text: 14900 * kibibyte, Tables: 15288 * kibibyte, Data: 472 * kibibyte,
	}, resident)
	assert.InDelta(t, (14908+15288+620+156+4)*kibibyte, resident.Resident(), 0)
	assert.Equal(t, "30.2 MiB (anonymous 0.3, text 14.6, tables 14.9, data 0.5)", resident.String())

	_, err = parseFootprint(strings.NewReader("00-01 r-xp 0 0 0 /x\nRss: many kB\n"))
	assert.ErrorContains(t, err, `"Rss: many kB"`)
}
