package dashboard

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheFilesAreThoseThatAreGenerated(t *testing.T) {
	files, err := Files()
	require.NoError(t, err)
	assert.Len(t, files, 4)
	for name, content := range files {
		found, err := os.ReadFile(filepath.Join("..", "dashboards", name))
		require.NoError(t, err, "go run ./manifests/gen/dashboards")
		assert.Equal(t, string(content), string(found), "%s: go run ./manifests/gen/dashboards", name)
	}
	found, err := filepath.Glob("../dashboards/*.json")
	require.NoError(t, err)
	assert.Len(t, found, len(files), "no file is left of a dashboard that does not exist any more")
}

// kubectl apply keeps a copy of an object in an annotation, and annotations have 256 KiB together.
func TestAFileFitsIntoAConfigMapThatIsApplied(t *testing.T) {
	files, err := Files()
	require.NoError(t, err)
	for name, content := range files {
		quoted, err := json.Marshal(string(content))
		require.NoError(t, err)
		assert.Less(t, len(quoted), 200<<10, name)
	}
}

// The test module reads dashboards with the same types.
func TestADocumentSurvivesItsFile(t *testing.T) {
	files, err := Files()
	require.NoError(t, err)
	for name, content := range files {
		var read Document
		require.NoError(t, json.Unmarshal(content, &read), name)
		again, err := json.Marshal(read)
		require.NoError(t, err)
		assert.JSONEq(t, string(content), string(again), name)
	}
}

func TestPanelsFlowLikeText(t *testing.T) {
	b := board{rows: []row{
		{"first", []panel{{kind: stat}, {kind: table, width: 20, height: 4}, {kind: stat, width: 12}}},
		{"second", []panel{{kind: timeSeries}}},
	}}
	var places []GridPos
	for _, p := range b.document().Panels {
		places = append(places, p.GridPos)
	}
	assert.Equal(t, []GridPos{
		{H: 1, W: 24}, {H: 4, W: 4, Y: 1}, {H: 4, W: 20, X: 4, Y: 1}, {H: 4, W: 12, Y: 5},
		{H: 1, W: 24, Y: 9}, {H: 8, W: 8, Y: 10},
	}, places)
}

func TestTheLabelsOfTheVariablesAreSelected(t *testing.T) {
	b := board{selects: `job=~"$job"`}
	p := b.panel(panel{kind: table, columns: []column{{title: "a", expr: `x{@,y="z"}`}}}, 7, GridPos{})
	require.Len(t, p.Targets, 1)
	assert.Equal(t, `x{job=~"$job",y="z"}`, p.Targets[0].Expr)
	assert.True(t, p.Targets[0].Instant, "a table has the last values alone")
}

func TestCodesHaveWordsAndLinks(t *testing.T) {
	var silent Override
	for _, o := range nameCodes(ofClusters()) {
		if o.Matcher.Options == "SPK031" {
			silent = o
		}
	}
	assert.Equal(t, Property{"displayName", "SPK031 the heartbeat of a cluster stopped"}, silent.Properties[0])
	assert.Equal(t, Property{"links", []Link{{
		Title: "What to do about SPK031", URL: "${docs}/operations/messages.md#spk031", TargetBlank: true,
	}}}, silent.Properties[2])
	assert.Equal(t, "SPK052 a workload is not ready", wordCodes(ofAddOns()).Options["SPK052"].Text)
}
