package undecodable_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/test/sandbox"
)

// The plugin reads every hub that speaks the APIs of OCM. With the definitions of OCM, an agent writes a time into the
// status of its own cluster that Go does not decode; a person on call must still see what is wrong with all others.
func TestThePluginGoesOnWithAllOtherClusters(t *testing.T) {
	bad := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "plugin-bad"}}
	other := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "plugin-waits"}}
	for _, c := range []*clusterv1.ManagedCluster{bad, other} {
		require.NoError(t, theirs.Client.Create(t.Context(), c))
		defer func() { require.NoError(t, theirs.Client.Delete(t.Context(), c)) }()
	}
	// An agent may write the status of its own cluster.
	require.NoError(t, patchStatus(raw("cluster.open-cluster-management.io/v1", "ManagedCluster", "", bad.Name, nil),
		`{"status":{"conditions":[{"type":"Any","status":"True","reason":"Any","message":"",`+
			`"lastTransitionTime":"2026-01-02t03:04:05z"}]}}`)(t.Context(), theirs.Client))
	root, err := sandbox.ModuleRoot()
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), "kubectl-spokelet")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = filepath.Join(root, "cmd", "kubectl-spokelet")
	require.NoError(t, build.Run())
	config := theirs.WriteKubeconfig(t, theirs.Admin(), t.TempDir(), "admin")
	var said bytes.Buffer
	check := exec.CommandContext(t.Context(), program, "check", "--kubeconfig", config)
	check.Env = append(os.Environ(), "HOME="+t.TempDir())
	check.Stdout, check.Stderr = &said, &said
	require.Error(t, check.Run(), "a cluster waits")
	assert.Contains(t, said.String(), "cluster/plugin-waits")
}
