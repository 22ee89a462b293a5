package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fakeDocker writes its arguments into a file, and knows two networks of which one has two containers.
const fakeDocker = `#!/bin/sh
echo "$@" >>"$CALLS"
case "$1 $2" in
"network ls") echo n1; echo n2 ;;
"ps --all") case "$*" in *network=n1*) echo c1; echo c2 ;; esac ;;
esac
`

// TestCleaningAsksForWhatIsOursOnly: the engine selects by the label of the network and by the beginning of the names.
func TestCleaningAsksForWhatIsOursOnly(t *testing.T) {
	dir := t.TempDir()
	bin, work, calls := filepath.Join(dir, "bin"), filepath.Join(dir, "work"), filepath.Join(dir, "calls")
	ours := filepath.Join(work, "run", "spokelet-e2e-1-hub.kubeconfig")
	theirs := filepath.Join(work, "run", "other.kubeconfig")
	require.NoError(t, os.MkdirAll(filepath.Dir(ours), 0o755))
	require.NoError(t, os.MkdirAll(bin, 0o755))
	for file, mode := range map[string]os.FileMode{filepath.Join(bin, "docker"): 0o755, ours: 0o600, theirs: 0o600} {
		require.NoError(t, os.WriteFile(file, []byte(fakeDocker), mode))
	}
	clean := exec.CommandContext(t.Context(), "./clean.sh", work)
	clean.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "CALLS="+calls)
	output, err := clean.CombinedOutput()
	require.NoError(t, err, string(output))

	made, err := os.ReadFile(calls)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"version",
		"network ls --quiet --filter label=io.spokelet.e2e.owner=" + work,
		"ps --all --quiet --filter network=n1 --filter name=^/?spokelet-e2e-",
		"rm --force --volumes c1", "rm --force --volumes c2", "network rm n1",
		"ps --all --quiet --filter network=n2 --filter name=^/?spokelet-e2e-",
		"network rm n2",
	}, strings.Split(strings.TrimSpace(string(made)), "\n"))
	assert.NoFileExists(t, ours)
	assert.FileExists(t, theirs)
}
