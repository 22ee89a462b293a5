package deploy_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/names"
)

// renderedBy returns the version that a work says it was rendered by.
func renderedBy(t *testing.T, work *workv1.ManifestWork) string {
	t.Helper()
	var record works.Rendered
	require.NoError(t, json.Unmarshal([]byte(work.Annotations[names.AnnotationRenderedFrom]), &record))
	return record.By
}

// It stops the hub manager that the tests share, so it runs alone.
//
// Shows: hub/upgrade-writes-nothing
func TestAnUpgradeOfTheHubManagerWritesNoWork(t *testing.T) {
	f := install(t, "upgraded")
	f.report(t, 1)
	f.atRest(t)
	before := f.work(t, nil)
	former := renderedBy(t, before)
	require.NotEmpty(t, former)
	writes := f.writes(t)

	program.Stop()
	rendererVersion.Store("v9.9.9")
	program.Start()
	f.annotate(t, "touched", "yes")
	f.atRest(t)
	f.annotate(t, "touched", "again")
	f.atRest(t)
	assert.Equal(t, writes, f.writes(t), "a new version that renders the same writes nothing")
	assert.Equal(t, before.ResourceVersion, f.work(t, nil).ResourceVersion)

	f.apply(t, `value: "2"`, `value: "3"`)
	after := f.work(t, func(w *workv1.ManifestWork) bool { return w.Generation > before.Generation })
	assert.Equal(t, "v9.9.9", renderedBy(t, after))
	assert.NotEqual(t, "v9.9.9", former)
}
