package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestShippedDefinitionsAreThoseOfTheAPIModuleWithBounds(t *testing.T) {
	from, err := moduleDir(t.Context())
	require.NoError(t, err)
	fresh := filepath.Join(t.TempDir(), "crds")
	require.NoError(t, write(from, fresh))
	shipped := files(t, filepath.Join("..", "crds"))
	assert.Len(t, shipped, len(sources())+len(ours()))
	for name, content := range files(t, fresh) {
		assert.Equal(t, content, shipped[name], "%s is out of date: run go run ./manifests/gen", name)
	}
}

func TestAddOnTemplatesGetASecondVersion(t *testing.T) {
	const alpha = "spec:\n  versions:\n  - columns: []\n    name: v1alpha1\n    storage: true\n    subresources: {}\nstatus:\n  x: y\n"
	got, err := withBeta([]byte(alpha))
	require.NoError(t, err)
	assert.Equal(t, "spec:\n  versions:\n"+
		"  - columns: []\n    name: v1alpha1\n    storage: true\n    subresources: {}\n"+
		"  - columns: []\n    name: v1beta1\n    storage: false\n    subresources: {}\nstatus:\n  x: y\n", string(got))
	_, err = withBeta(got)
	require.ErrorContains(t, err, "does not have one version", "the API module has v1beta1 by itself")
	_, err = withBeta([]byte("spec: {}\n"))
	require.ErrorContains(t, err, "does not have one version")
}

func TestAddOnTemplatesGetPermissionsInAllNamespaces(t *testing.T) {
	const one = "                              currentCluster:\n" +
		"                                - CurrentCluster\n                                - SingleNamespace\n"
	got, err := withPermissions([]byte(one))
	require.NoError(t, err)
	assert.Equal(t, allNamespaces+one+"                                - AllNamespaces\n", string(got))
	_, err = withPermissions(got)
	require.ErrorContains(t, err, "has permissions of type AllNamespaces", "the API module has them by itself")
	_, err = withPermissions([]byte(one + one))
	require.ErrorContains(t, err, "in one version")
}

func TestAddOnDeploymentConfigsGetReplicas(t *testing.T) {
	const one = "            properties:\n              registries:\n              resourceRequirements:\n"
	got, err := withReplicas([]byte(one + one))
	require.NoError(t, err)
	assert.Equal(t, 2, strings.Count(string(got), "              replicaConfigs:\n                description:"))
	_, err = withReplicas(got)
	require.ErrorContains(t, err, "the definition has spec.replicaConfigs", "the API module has it by itself")
	_, err = withReplicas([]byte(one))
	require.ErrorContains(t, err, "in two versions")
}

func TestClusterManagementAddOnsGetAutoDiscoveryInTheSecondVersion(t *testing.T) {
	const alpha = "              installStrategy:\n              supportedConfigs:\n"
	const beta = "              defaultConfigs:\n              installStrategy:\n"
	got, err := withDiscovery([]byte(alpha + beta))
	require.NoError(t, err)
	assert.Equal(t, alpha+"              defaultConfigs:\n"+autoDiscovery+"              installStrategy:\n", string(got))
	_, err = withDiscovery(got)
	require.ErrorContains(t, err, "the definition has spec.hostedModeAutoDiscovery", "the API module has it by itself")
	_, err = withDiscovery([]byte(alpha))
	require.ErrorContains(t, err, "after spec.defaultConfigs")
}

func TestWriteSaysWhatIsMissing(t *testing.T) {
	err := write(t.TempDir(), filepath.Join(t.TempDir(), "crds"))
	assert.ErrorContains(t, err, "reading the definition for ")
}

// files reads every file below a folder.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		found[filepath.ToSlash(name)] = string(raw)
		return err
	}))
	return found
}

func TestThePolicyOfBoundsFollowsFromTheDefinitions(t *testing.T) {
	fresh, err := policies(filepath.Join("..", "crds"))
	require.NoError(t, err)
	shipped, err := os.ReadFile(filepath.Join("..", "hub", policyFile))
	require.NoError(t, err)
	assert.Equal(t, string(fresh), string(shipped), "run go run ./manifests/gen")
}

func TestDefinitionsGetTheBoundsThatGoHas(t *testing.T) {
	const open = "        spec:\n          properties:\n" +
		"            many:\n              format: int32\n              type: integer\n" +
		"            few:\n              format: int32\n              maximum: 10\n              minimum: -10\n              type: integer\n" +
		"            minSuccessTime:\n              default: \"0\"\n              type: string\n" +
		"            name:\n              type: string\n" +
		"            since:\n              format: date-time\n              type: string\n" +
		"            both:\n              anyOf:\n              - type: integer\n              - type: string\n" +
		"              pattern: ^x$\n              x-kubernetes-int-or-string: true\n"
	const closed = "        spec:\n          properties:\n" +
		"            many:\n              format: int32\n              maximum: 2147483647\n              minimum: -2147483648\n" +
		"              type: integer\n" +
		"            few:\n              format: int32\n              maximum: 10\n              minimum: -10\n              type: integer\n" +
		"            minSuccessTime:\n              default: \"0\"\n              type: string\n              pattern: " + durations + "\n" +
		"            name:\n              type: string\n" +
		"            since:\n              format: date-time\n              pattern: " + times + "\n              type: string\n" +
		"            both:\n              anyOf:\n              - type: integer\n              - type: string\n" +
		"              pattern: ^x$\n              x-kubernetes-int-or-string: true\n              maximum: 2147483647\n" +
		"              minimum: -2147483648\n"
	assert.Equal(t, closed, string(bounded([]byte(open))))
	assert.Equal(t, closed, string(bounded([]byte(closed))), "what has bounds keeps them")
}
