package plugin_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// outcome holds what a command wrote, and its exit status.
type outcome struct {
	out, errs string
	status    int
}

// run runs a command line as it would be typed, with a home of its own.
func run(t *testing.T, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	command := exec.CommandContext(t.Context(), world.program, args...)
	command.Env = append(os.Environ(), "HOME="+t.TempDir(), "COLUMNS=120", "LANG=C.UTF-8", "KUBECONFIG=")
	command.Stdout, command.Stderr = &out, &errs
	err := command.Run()
	var ended *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &ended)
	}
	return outcome{out.String(), errs.String(), command.ProcessState.ExitCode()}
}

// unavailable waits until the hub says of an add-on why it does not work.
func unavailable(t *testing.T) {
	t.Helper()
	suite.Eventually(t, func() error {
		got := run(t, "--kubeconfig", world.viewer, "why", "addon", "hello", "-n", near)
		if !strings.Contains(got.out, "SPK054") && !strings.Contains(got.out, "SPK052") {
			return fmt.Errorf("the hub does not say it yet: %s%s", got.out, got.errs)
		}
		return nil
	})
}

func TestTheRoleOfTheHubIsEnoughForAllCommands(t *testing.T) {
	unavailable(t)
	bundle := filepath.Join(t.TempDir(), "x.tgz")
	for _, tc := range []struct {
		status int
		args   string
	}{
		{1, "check"}, {1, "tree"}, {0, "get clusters"}, {0, "get addons -A"}, {0, "get works -A"}, {0, "version"}, {0, "get windows"},
		{1, "why addon hello -n " + near}, {0, "why cluster " + near}, {1, "why cluster " + far},
		{0, "why work addon-hello-deploy-0 -n " + near}, {0, "events -A"}, {0, "events addon hello -n " + near},
		{0, "events cluster " + near}, {1, "logs hub"}, {0, "bundle -f " + bundle}, {1, "tree --from " + bundle},
		{0, "events -A --from " + bundle},
	} {
		got := run(t, append([]string{"--kubeconfig", world.viewer}, strings.Fields(tc.args)...)...)
		assert.Equal(t, tc.status, got.status, "%s\n%s%s", tc.args, got.out, got.errs)
		assert.NotContains(t, got.out, "may not be read", tc.args)
		assert.NotContains(t, got.out, "SPK010", tc.args)
	}
}

func TestOnlyTheClusterShowsThatAnImageCannotBePulled(t *testing.T) {
	unavailable(t)
	why := []string{"--kubeconfig", world.viewer, "why", "addon", "hello", "-n", near, "--spoke-kubeconfig"}
	got := run(t, append(why, world.looker)...)
	assert.Equal(t, 1, got.status, got.errs)
	assert.Contains(t, got.out, "first cause: a workload is not ready  [SPK052]")
	assert.Contains(t, got.out, "image registry.local/hello:9 of container")
	assert.Contains(t, got.out, "in AppliedManifestWork of addon-hello-deploy-0")
	assert.Equal(t, 2, strings.Count(got.out, "may not be read"), "the two Secrets: %s", got.out)
	assert.Contains(t, got.out, "resources: [secrets], resourceNames: [hub-kubeconfig-secret], verbs: [list]}")
	got = run(t, append(why, world.admin)...)
	assert.Contains(t, got.out, "hub-kubeconfig-secret is there")
	assert.NotContains(t, got.out, "may not be read")
}

func TestAnObjectLeadsToWhoWantedIt(t *testing.T) {
	unavailable(t)
	trace := []string{"--kubeconfig", world.admin, "--hub-kubeconfig", world.viewer, "--cluster", near, "trace"}
	got := run(t, append(trace, "deploy/hello-agent", "-n", names.NamespaceAgentAddon)...)
	assert.Equal(t, 0, got.status, "%s%s", got.out, got.errs)
	for _, line := range []string{
		"was applied for add-on hello of cluster " + near, "ManifestWork " + near + "/addon-hello-deploy-0", "AddOnTemplate hello",
		"AddOnDeploymentConfig open-cluster-management-addons/hello", "selects cluster " + near + " in PlacementDecision",
		"ClusterManagementAddOn hello", "written by work-agent", "written by spokelet-hub",
	} {
		assert.Contains(t, got.out, line)
	}
	got = run(t, append(trace, "configmap/kube-root-ca.crt", "-n", "default")...)
	assert.Equal(t, 1, got.status, got.errs)
	assert.Contains(t, got.out, "[SPK074]")
}

func TestAPersonWithOneNamespaceSeesThatAndIsToldTheRest(t *testing.T) {
	unavailable(t)
	for _, tc := range []struct {
		status int
		args   string
		says   []string
		lacks  string
	}{
		{1, "why addon hello -n " + near, []string{"first cause", "managedclusters.cluster.open-cluster-management.io may not"}, ""},
		{0, "get addons -n " + near, []string{"hello"}, ""},
		{0, "get works -n " + near, []string{"addon-hello-deploy-0"}, ""},
		{0, "events addon hello -n " + near, []string{"events in namespace default may not be read"}, ""},
		{1, "check --cluster " + near, []string{"addon/hello", "managedclusters.cluster.open-cluster-management.io may not"}, ""},
		{3, "get works -n " + far, nil, "addon-hello-deploy-0"},
		{3, "why addon hello -n " + far, nil, "first cause"},
		{3, "check", nil, ""},
		{3, "why cluster " + near, nil, ""},
		{3, "logs hub", nil, ""},
	} {
		got := run(t, append([]string{"--kubeconfig", world.narrow}, strings.Fields(tc.args)...)...)
		assert.Equal(t, tc.status, got.status, "%s\n%s%s", tc.args, got.out, got.errs)
		for _, text := range tc.says {
			assert.Contains(t, got.out, text, tc.args)
		}
		if tc.lacks != "" {
			assert.NotContains(t, got.out, tc.lacks, tc.args)
		}
		if tc.status == 3 {
			assert.Contains(t, got.errs, "add the rule", tc.args)
		}
	}
}

// pipe keeps what a program writes while it runs.
type pipe struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

// Write implements io.Writer.
func (p *pipe) Write(part []byte) (int, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.text.Write(part)
}

func (p *pipe) says(text string) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if strings.Contains(p.text.String(), text) {
		return nil
	}
	return errors.New("it does not say it yet: " + p.text.String())
}

func TestEventsAreShownAsTheyHappen(t *testing.T) {
	var out pipe
	command := exec.CommandContext(t.Context(), world.program, "--kubeconfig", world.viewer, "events", "-n", near, "-w")
	command.Stdout, command.Stderr = &out, &out
	require.NoError(t, command.Start())
	suite.Eventually(t, func() error { return out.says("REASON, OBJECT, MESSAGE") })
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: near, Name: suite.UniqueName("played")}, Reason: "Played", Type: "Warning",
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "work.open-cluster-management.io/v1", Kind: "ManifestWork", Namespace: near, Name: "addon-hello-deploy-0",
		},
		Message: "as a \x1b[31mtest\nwants it", Source: corev1.EventSource{Component: "test"},
	}
	require.NoError(t, world.hub.Client.Create(t.Context(), event))
	suite.Eventually(t, func() error { return out.says("Played  manifestwork/addon-hello-deploy-0 in " + near) })
	suite.Eventually(t, func() error { return out.says(`as a \u001b[31mtest wants it`) })
	require.NoError(t, command.Process.Signal(syscall.SIGTERM))
	require.NoError(t, command.Wait(), "an end that a person asks for is none")
}
