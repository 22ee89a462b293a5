package agent

import (
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/internal/version"
)

func TestTheFirstLineOfTheLogHasTheVersion(t *testing.T) {
	var log lines
	config := DefaultConfig()
	config.Kubeconfig = filepath.Join(t.TempDir(), "absent")
	require.ErrorContains(t, Run(logr.NewContext(t.Context(), log.logger(0)), config), "absent")
	assert.Contains(t, log.take()[0], `"msg"="starting" "component"="agent" "version"="`+version.String()+`"`)
}
