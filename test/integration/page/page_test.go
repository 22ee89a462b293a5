package page_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// The page has files, which are paragraphs that begin with a name, each with a block, and commands, which are blocks
// that are marked sh.
var (
	fileOnPage = regexp.MustCompile(
		"(?m)^`([^`\\n]+)`[^\\n]*\\n(?:[^\\n`]+\\n)*\\n```(?:go|yaml)\\n((?:[^`\\n].*\\n|\\n)*)```\\n")
	commandsOnPage = regexp.MustCompile("(?m)^```sh\\n((?:[^`\\n].*\\n)*)```\\n")
)

// shell runs the commands of the page in a folder. It knows no others than those that the page has.
type shell struct {
	*testing.T
	// dir is the folder, and root that of this repository.
	dir, root string
}

// Shows: hub/library-page
func TestThePageForAuthorsLeadsToAnAddOnOnBothClusters(t *testing.T) {
	root, err := sandbox.ModuleRoot()
	require.NoError(t, err)
	raw, err := os.ReadFile(filepath.Join(root, "docs/operations/write-an-addon.md"))
	require.NoError(t, err)
	s := shell{T: t, dir: filepath.Join(t.TempDir(), "weather"), root: root}
	s.writeFiles(string(raw))
	blocks := commandsOnPage.FindAllStringSubmatch(string(raw), -1)
	require.Len(t, blocks, 2)
	for _, block := range blocks {
		for line := range strings.Lines(block[1]) {
			require.NoError(t, s.run(strings.TrimSpace(line)), line)
		}
	}
	for name, cluster := range clusters {
		s.available(name)
		var agent appsv1.Deployment
		key := client.ObjectKey{Namespace: names.NamespaceAgentAddon, Name: "weather"}
		require.NoError(t, cluster.Client.Get(t.Context(), key, &agent))
		assert.Equal(t, []string{"--cluster=" + name, "--hub-kubeconfig=/hub/kubeconfig"},
			agent.Spec.Template.Spec.Containers[0].Args)
		var credential corev1.Secret
		key.Name = "weather-hub-kubeconfig"
		suite.Eventually(t, func() error { return cluster.Client.Get(t.Context(), key, &credential) })
		assert.NotEmpty(t, credential.Data["kubeconfig"])
	}
	s.leavesNothing()
}

// writeFiles writes the files of the page.
func (s shell) writeFiles(page string) {
	s.Helper()
	files := fileOnPage.FindAllStringSubmatch(page, -1)
	count := len(files) // require.Len prints all files
	require.Equal(s, 7, count)
	for _, file := range files {
		path := filepath.Join(s.dir, file[1])
		require.NoError(s, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(s, os.WriteFile(path, []byte(file[2]), 0o600))
	}
}

// run runs a command of the page.
func (s shell) run(command string) error {
	words := strings.Fields(command)
	switch {
	case words[0] == "go":
		return s.goes(words[1:]...)
	case slices.Equal(words[:min(3, len(words))], []string{"kubectl", "apply", "-f"}) && len(words) == 4:
		return s.apply(words[3])
	case words[0] == "./weather" && strings.HasSuffix(command, " | kubectl apply -f -"):
		rights, err := s.output(words[:slices.Index(words, "|")]...)
		if err != nil {
			return err
		}
		return plane.Apply(s.Context(), rights)
	}
	return fmt.Errorf("a command that the test does not know: %s", command)
}

// goes runs a command of Go. The module of the page uses the library in this repository.
func (s shell) goes(args ...string) error {
	if _, err := s.output(append([]string{"go"}, args...)...); err != nil || args[0] != "mod" || args[1] != "init" {
		return err
	}
	const library = "github.com/spokelet/spokelet"
	_, err := s.output("go", "mod", "edit", "-replace", library+"="+s.root,
		"-replace", library+"/hub/addon/helm="+filepath.Join(s.root, "hub/addon/helm"))
	return err
}

func (s shell) output(words ...string) ([]byte, error) {
	command := exec.CommandContext(s.Context(), words[0], words[1:]...)
	var errors bytes.Buffer
	command.Dir, command.Stderr = s.dir, &errors
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s%s", err, out, errors.String())
	}
	return out, nil
}

// apply applies a file, and runs the program of a Deployment in it, which has no kubelet here to run it.
func (s shell) apply(file string) error {
	raw, err := os.ReadFile(filepath.Join(s.dir, file))
	if err != nil {
		return err
	}
	objects, err := sandbox.Decode(raw)
	if err != nil {
		return err
	}
	if err := plane.Apply(s.Context(), raw); err != nil {
		return err
	}
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		var program appsv1.Deployment
		if err := plane.Client.Get(s.Context(), client.ObjectKeyFromObject(object), &program); err != nil {
			return err
		}
		return s.start(&program)
	}
	return nil
}

// start runs the program of a Deployment with the rights of its ServiceAccount. It serves on no ports: replicas on one
// machine would take the same.
func (s shell) start(d *appsv1.Deployment) error {
	pod := d.Spec.Template.Spec
	identity := plane.AccountConfig(s, d.Namespace, pod.ServiceAccountName)
	args := append(slices.Clone(pod.Containers[0].Args), "--metrics-bind-address=0", "--health-probe-bind-address=0",
		"--kubeconfig="+plane.WriteKubeconfig(s, identity, s.TempDir(), d.Name))
	for replica := range *d.Spec.Replicas {
		process := &sandbox.Process{
			Name: fmt.Sprintf("%s %d", d.Name, replica), Path: filepath.Join(s.dir, "weather"), Args: args,
			LogPath: filepath.Join(s.dir, fmt.Sprintf("%d.log", replica)),
		}
		if err := process.Start(); err != nil {
			return err
		}
		s.Cleanup(func() {
			const grace = 10 * time.Second
			process.Stop(grace)
			if s.Failed() {
				s.Logf("the end of the log of %s:\n%s", process.Name, process.Log())
			}
		})
	}
	return nil
}

// available waits until the add-on on a cluster is available and has what it should have.
func (s shell) available(cluster string) {
	s.Helper()
	suite.Eventually(s, func() error {
		addOn, err := plane.AddOns.GetAddOn(s.Context(), types.NamespacedName{Namespace: cluster, Name: "weather"})
		if err != nil {
			return err
		}
		conditions := addOn.Status.Conditions
		if !meta.IsStatusConditionTrue(conditions, addonv1beta1.ManagedClusterAddOnConditionAvailable) ||
			!meta.IsStatusConditionFalse(conditions, addonv1beta1.ManagedClusterAddOnConditionProgressing) {
			return fmt.Errorf("the add-on on %s is not available: %v", cluster, conditions)
		}
		return nil
	})
}

// leavesNothing deletes the add-on, and waits until its objects are gone from both clusters.
func (s shell) leavesNothing() {
	s.Helper()
	management := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "weather"}}
	require.NoError(s, plane.Client.Delete(s.Context(), management))
	for name, cluster := range clusters {
		suite.Eventually(s, func() error {
			for _, object := range []client.Object{&appsv1.Deployment{}, &corev1.ServiceAccount{}} {
				err := cluster.Client.Get(s.Context(), client.ObjectKey{
					Namespace: names.NamespaceAgentAddon, Name: "weather",
				}, object)
				if client.IgnoreNotFound(err) != nil || err == nil {
					return fmt.Errorf("%T is still on %s: %w", object, name, err)
				}
			}
			return nil
		})
	}
}
