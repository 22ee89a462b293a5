package hub

import (
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/internal/version"
)

func TestTheFirstLineOfTheLogHasTheVersion(t *testing.T) {
	var log []string
	ctx := logr.NewContext(t.Context(), funcr.New(func(_, args string) { log = append(log, args) }, funcr.Options{}))
	c := DefaultConfig()
	c.Kubeconfig = filepath.Join(t.TempDir(), "absent")
	require.ErrorContains(t, Run(ctx, c), "absent")
	assert.Contains(t, log[0], `"msg"="starting" "component"="hub-manager" "version"="`+version.String()+`"`)
}
