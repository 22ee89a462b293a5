package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheMemoryOfAContainerIsItsYoungestFigure(t *testing.T) {
	const text = `# TYPE container_memory_working_set_bytes gauge
container_memory_working_set_bytes{container="",namespace="ours",pod="a"} 9e+06 2000
container_memory_working_set_bytes{container="POD",namespace="ours",pod="a"} 1 2000
container_memory_working_set_bytes{container="agent",id="new",namespace="ours",pod="a"} 3e+06 2000
container_memory_working_set_bytes{container="agent",id="old",namespace="ours",pod="a"} 2e+06 1000
container_memory_working_set_bytes{container="other",namespace="theirs",pod="b"} 5 2000
# TYPE container_memory_rss gauge
container_memory_rss{container="agent",id="new",namespace="ours",pod="a"} 1e+06 2000
`
	all, err := parseMemory([]byte(text), []string{"ours"})
	require.NoError(t, err)
	assert.Equal(t, []Memory{
		{Namespace: "ours", Pod: "a", Container: "agent", WorkingSet: 3_000_000, RSS: 1_000_000, Measured: 2000},
	}, all)

	_, err = parseMemory([]byte("<html>"), []string{"ours"})
	require.ErrorContains(t, err, "figures of a kubelet")
}

func TestADiffNamesWhatIsMoreLessOrDifferent(t *testing.T) {
	before := Snapshot{"configmaps a/same": "1", "configmaps a/gone": "1", "configmaps a/changed": "1"}
	require.NoError(t, before.Diff(before))
	err := before.Diff(Snapshot{"configmaps a/same": "1", "configmaps a/changed": "2", "secrets a/new": "1"})
	require.EqualError(t, err, "configmaps a/changed is different\nsecrets a/new is left\nconfigmaps a/gone is gone")
}
