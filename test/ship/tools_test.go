package ship_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/test/suite"
)

// programs is the folder with the programs that the pages use and those of our images, once they are built.
var programs string

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) { programs = t.TempDir() })
}

// tools returns the folder, with the programs in it.
func tools(t *testing.T) string {
	t.Helper()
	for name, source := range map[string]string{
		"kubectl": "./kubectl", "helm": "helm.sh/helm/v3/cmd/helm",
		"spokelet":     "github.com/spokelet/spokelet/cmd/spokelet",
		"spokelet-hub": "github.com/spokelet/spokelet/cmd/spokelet-hub",
	} {
		path := filepath.Join(programs, name)
		if _, err := os.Stat(path); err == nil {
			continue
		}
		output, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, source).CombinedOutput()
		require.NoError(t, err, "%s", output)
	}
	return programs
}

// notYet returns an error with a text; nil for none.
func notYet(text, where string) error {
	if text == "" {
		return nil
	}
	return errors.New(where + ":\n" + text)
}
