package ship_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// pages are the commands of the pages about installing: the blocks that are marked sh, by page and headings.
type pages map[string][]string

// readPages reads the blocks.
func readPages(t *testing.T) pages {
	t.Helper()
	all := pages{}
	for _, page := range []string{"install", "upgrade", "uninstall"} {
		headings, inside, block := [2]string{}, false, ""
		for line := range strings.Lines(string(read(t, "docs/operations/"+page+".md"))) {
			switch {
			case strings.HasPrefix(line, "```"):
				key := strings.TrimSuffix(page+"/"+headings[0]+"/"+headings[1], "/")
				if inside {
					all[key] = append(all[key], block)
				}
				inside, block = strings.TrimSpace(line) == "```sh", ""
			case inside:
				block += line
			case strings.HasPrefix(line, "## "):
				headings = [2]string{strings.TrimSpace(line[3:])}
			case strings.HasPrefix(line, "### "):
				headings[1] = strings.TrimSpace(line[4:])
			}
		}
	}
	return all
}

// terminal runs blocks as a person does.
type terminal struct {
	t     *testing.T
	pages pages
	// ran has the blocks that were run, by any terminal.
	ran map[string]bool
	dir string
	env []string
}

// run runs all blocks below headings, or those with the given numbers.
func (s *terminal) run(key string, numbers ...int) {
	s.t.Helper()
	blocks := s.pages[key]
	require.NotEmpty(s.t, blocks, "there are no commands below %s", key)
	if numbers == nil {
		for i := range blocks {
			numbers = append(numbers, i)
		}
	}
	for _, i := range numbers {
		require.Greater(s.t, len(blocks), i, key)
		s.ran[blocks[i]] = true
		shell := exec.CommandContext(s.t.Context(), "bash", "-euo", "pipefail", "-c", blocks[i])
		shell.Dir, shell.Env = s.dir, s.env
		output, err := shell.CombinedOutput()
		require.NoError(s.t, err, "%s\n%s\n%s", key, blocks[i], output)
	}
}

// install is one way to install and its control planes.
type install struct {
	*terminal
	hub, cluster, hosting *suite.Plane
	before                map[*suite.Plane]snapshot
}

// begin starts control planes with nodes.
func begin(t *testing.T, all pages, ran map[string]bool, hosted bool) *install {
	t.Helper()
	i := &install{before: map[*suite.Plane]snapshot{}}
	start := func(name string) *suite.Plane {
		plane := suite.Start(t, sandbox.Options{Name: name})
		startNode(t, plane, tools(t))
		i.before[plane] = snapshotOf(t, plane)
		return plane
	}
	i.hub, i.cluster = start("hub"), start("cluster1")
	planes := []*suite.Plane{i.hub, i.cluster}
	if hosted {
		i.hosting = start("hosting")
		planes = append(planes, i.hosting)
	}
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(dir, "manifests"), os.DirFS(repository(t, "manifests"))))
	i.terminal = &terminal{t: t, pages: all, ran: ran, dir: dir, env: append(os.Environ(),
		"KUBECONFIG="+writeKubeconfig(t, planes...), "PATH="+tools(t)+":"+os.Getenv("PATH"), "HOME="+dir)}
	return i
}

// end compares all objects with those before.
func (i *install) end() {
	i.t.Helper()
	for plane, before := range i.before {
		suite.Eventually(i.t, func() error {
			return notYet(before.difference(snapshotOf(i.t, plane)), plane.Name)
		})
	}
}

// TestThePagesAboutInstallingWork: every command of the pages, in the order of an installation, an upgrade and an
// uninstallation, with control planes that have no nodes but run our pods as processes. Afterwards the clusters have
// the objects that they had before.
func TestThePagesAboutInstallingWork(t *testing.T) {
	all, ran, ways := readPages(t), map[string]bool{}, 0
	t.Run("with kustomize", func(t *testing.T) {
		i := begin(t, all, ran, false)
		i.run("install/With kustomize/The hub")
		i.run("install/With kustomize/A cluster")
		i.works()
		i.run("install/What works may apply")
		i.run("install/The check of ManifestWorks")
		i.run("install/Who may call the webhook of the hub")
		i.run("install/Pods behind a proxy, and other networks")
		i.run("upgrade/With kustomize")
		i.run("upgrade/Check")
		i.run("uninstall/With kustomize/A cluster")
		i.run("uninstall/With kustomize/The hub")
		require.NoError(t, i.kubectl("cluster1", "delete", "clusterrole", "fleet:storage-classes"))
		require.NoError(t, i.kubectl("hub", "delete", "clusterrole,clusterrolebinding", "spokelet-hub-conversion-address"))
		i.end()
		ways++
	})
	t.Run("with Helm", func(t *testing.T) {
		i := begin(t, all, ran, false)
		i.run("install/With Helm/The hub")
		i.run("install/With kustomize/A cluster", 0)
		i.run("install/With Helm/A cluster")
		i.run("install/With kustomize/A cluster", 2, 3)
		i.works()
		i.run("upgrade/With Helm")
		i.run("uninstall/With Helm/A cluster")
		i.run("uninstall/With Helm/The hub")
		i.end()
		ways++
	})
	t.Run("on a hosting cluster", func(t *testing.T) {
		i := begin(t, all, ran, true)
		i.run("install/With kustomize/The hub")
		i.run("install/With kustomize/A cluster", 0)
		i.run("install/On a hosting cluster")
		i.run("install/With kustomize/A cluster", 2)
		i.works()
		i.run("uninstall/On a hosting cluster")
		i.run("uninstall/With kustomize/The hub")
		i.end()
		ways++
	})
	if ways < 3 { // some were not chosen, or failed
		return
	}
	for key, blocks := range all {
		for _, block := range blocks {
			assert.True(t, ran[block], "nobody ran this block below %s:\n%s", key, block)
		}
	}
}

// works has a work applied to the cluster.
func (i *install) works() {
	i.t.Helper()
	path := filepath.Join(i.dir, "work.yaml")
	require.NoError(i.t, os.WriteFile(path, []byte(`apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata: {name: greeting, namespace: cluster1}
spec:
  workload:
    manifests:
    - apiVersion: v1
      kind: ConfigMap
      metadata: {name: greeting, namespace: default}
      data: {hello: world}
`), 0o600))
	require.NoError(i.t, i.kubectl("hub", "apply", "-f", path))
	require.NoError(i.t, i.kubectl("hub", "wait", "-n", "cluster1", "manifestwork/greeting", "--for=condition=Available"))
	require.NoError(i.t, i.kubectl("cluster1", "get", "configmap", "greeting"))
}

// kubectl runs one command that is not in the pages.
func (i *install) kubectl(context string, args ...string) error {
	args = append([]string{"--context", context}, args...)
	command := exec.CommandContext(i.t.Context(), filepath.Join(tools(i.t), "kubectl"), args...)
	command.Dir, command.Env = i.dir, i.env
	output, err := command.CombinedOutput()
	if err != nil {
		i.t.Logf("kubectl %v: %s", args, output)
	}
	return err
}
