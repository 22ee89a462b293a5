package authors_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// module is the path of the main module.
const module = "github.com/spokelet/spokelet"

// sample is a sample add-on that was built.
type sample struct {
	// name is the name of the add-on.
	name string
	// program runs on the hub, and agent on managed clusters.
	program, agent string
	// folder is the folder in the repository.
	folder string
}

// build builds a sample as a user with another repository does: only go.mod names where ours is.
func build(t suite.T, name string) sample {
	t.Helper()
	root, err := sandbox.ModuleRoot()
	require.NoError(t, err)
	s := sample{name: name, folder: filepath.Join(root, "test", "samples", name)}
	copied, out := filepath.Join(t.TempDir(), name), t.TempDir()
	require.NoError(t, os.CopyFS(copied, os.DirFS(s.folder)))
	goIn(t, copied, "mod", "edit", "-replace="+module+"="+root,
		"-replace="+module+"/hub/addon/helm="+filepath.Join(root, "hub", "addon", "helm"))
	s.program, s.agent = filepath.Join(out, name), filepath.Join(out, "agent")
	goIn(t, copied, "build", "-ldflags", "-X main.version=v1", "-o", s.program, ".")
	goIn(t, copied, "build", "-o", s.agent, "./agent")
	return s
}

// goIn runs a command of Go in a folder.
func goIn(t suite.T, folder string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir = folder
	out, err := command.CombinedOutput()
	require.NoError(t, err, "go %v: %s", args, out)
}

// install installs the add-on on the hub as its page says: its files, the rights that it prints, and its program.
func (s sample) install(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.folder, "hub", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if filepath.Base(file) != "90-manager.yaml" { // There is no kubelet.
			require.NoError(t, plane.Apply(t.Context(), text), file)
		}
	}
	namespace, account := s.name+"-central", s.name+"-manager"
	rights, err := exec.CommandContext(t.Context(), s.program, "rbac", "--namespace="+namespace).Output()
	require.NoError(t, err)
	require.NoError(t, plane.Apply(t.Context(), rights))
	kubeconfig := plane.WriteKubeconfig(t, plane.AccountConfig(t, namespace, account), t.TempDir(), account)
	start(t, &sandbox.Process{Name: account, Path: s.program, Args: []string{
		"--kubeconfig=" + kubeconfig, "--namespace=" + namespace, "--health-probe-bind-address=0",
	}})
}

// start runs a process until it is stopped or the test ends. A test that failed shows its log.
func start(t *testing.T, process *sandbox.Process) (stop func()) {
	t.Helper()
	process.LogPath = filepath.Join(t.TempDir(), "log")
	require.NoError(t, process.Start())
	stop = sync.OnceFunc(func() {
		const grace = 10 * time.Second
		if err := process.Exited(); err != nil {
			t.Errorf("it ended by itself: %v", err)
		}
		process.Stop(grace)
	})
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("the log of %s:\n%s", process.Name, process.Log())
		}
	})
	return stop
}

// pod returns the process that a pod on a cluster would be: a program with the arguments of the first container, and
// the files of its Secrets. Its kubeconfig is that of the ServiceAccount, unless the arguments name one.
func pod(t *testing.T, cluster, namespace, program string, spec corev1.PodSpec) *sandbox.Process {
	t.Helper()
	own, container := clusters[cluster], spec.Containers[0]
	paths := map[string]string{}
	for _, volume := range spec.Volumes {
		secret := get(t, cluster, namespace, volume.Secret.SecretName, &corev1.Secret{})
		paths[volume.Name] = t.TempDir()
		for name, data := range secret.Data {
			require.NoError(t, os.WriteFile(filepath.Join(paths[volume.Name], name), data, 0o600))
		}
	}
	replacements := []string{":8080", "127.0.0.1:0"}
	for _, mount := range container.VolumeMounts {
		replacements = append(replacements, mount.MountPath, paths[mount.Name])
	}
	process := &sandbox.Process{Name: container.Name + " on " + cluster, Path: program}
	named := false
	for _, argument := range container.Args {
		process.Args = append(process.Args, strings.NewReplacer(replacements...).Replace(argument))
		named = named || strings.HasPrefix(argument, "--kubeconfig=")
	}
	if !named && spec.ServiceAccountName != "" {
		identity := own.AccountConfig(t, namespace, spec.ServiceAccountName)
		process.Args = append(process.Args, "--kubeconfig="+own.WriteKubeconfig(t, identity, t.TempDir(), "own"))
	}
	return process
}

// runToEnd runs the process of a Job, which must succeed.
func runToEnd(t *testing.T, process *sandbox.Process) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), process.Path, process.Args...).CombinedOutput()
	require.NoError(t, err, "%s: %s", process.Name, out)
}

// managedKubeconfig stores the kubeconfig of a managed cluster for an agent that another one hosts, as a person does.
func managedKubeconfig(t *testing.T, managed, hosting, namespace, name string, identity *rest.Config) {
	t.Helper()
	data, err := clusters[managed].Kubeconfig(identity)
	require.NoError(t, err)
	secret := &corev1.Secret{Data: map[string][]byte{"kubeconfig": data}}
	secret.Namespace, secret.Name = namespace, name
	require.NoError(t, clusters[hosting].Client.Create(t.Context(), secret))
}
