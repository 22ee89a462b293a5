package render_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/hub/render"
)

// The page shows each command with its output; -update writes the outputs.
func TestTheCommandsOfThePage(t *testing.T) {
	path, err := filepath.Abs(pages + "/render.md")
	require.NoError(t, err)
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	page := string(raw)

	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("tea", 0o750))
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(page, -1)
	require.Len(t, examples, 2)
	for i, name := range []string{"tea/addon.yaml", "green.yaml"} {
		require.NoError(t, os.WriteFile(name, []byte(examples[i][1]), 0o600))
	}
	commands := 0
	got := regexp.MustCompile("(?s)```console\n.*?```").ReplaceAllStringFunc(page, func(block string) string {
		commands++
		first, _, _ := strings.Cut(strings.TrimPrefix(block, "```console\n"), "\n")
		args := strings.Fields(first)
		require.Equal(t, []string{"$", "spokelet-hub", "render"}, args[:3])
		var out strings.Builder
		err := render.Program{Name: "spokelet-hub"}.Command(t.Context(), args[3:], strings.NewReader(""), &out)
		if err != nil {
			out.WriteString("spokelet-hub: " + err.Error() + "\n") // as the program prints it
		}
		return "```console\n" + first + "\n" + by.ReplaceAllString(out.String(), "") + "```"
	})
	assert.Equal(t, 3, commands)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
		return
	}
	assert.Equal(t, page, got)
}

func TestTheCommandLine(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(folder+"/a.yaml", []byte(goodTemplate), 0o600))
	require.NoError(t, os.WriteFile(folder+"/b.yml", []byte(goodManagement), 0o600))
	require.NoError(t, os.WriteFile(folder+"/kustomization.yaml",
		[]byte("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"), 0o600))
	require.NoError(t, os.WriteFile(folder+"/c.txt", []byte("no object"), 0o600))
	empty := t.TempDir()
	for sentence, tc := range map[string]struct {
		args            []string
		in              string
		output, problem string
	}{
		"a folder":                {args: []string{"-f", folder, "--cluster=c1"}, output: "name: addon-tea-deploy-0"},
		"a folder and its file":   {args: []string{"-f", folder, "-f", folder + "/a.yaml", "--cluster=c1"}, output: "name: addon-tea-deploy-0"},
		"the standard input":      {args: []string{"--filename=-", "--cluster=c1", "--output=objects"}, in: goodTemplate, output: "kind: ConfigMap"},
		"one add-on":              {args: []string{"-f", folder, "--cluster=c1", "--add-on=tea"}, output: "name: addon-tea-deploy-0"},
		"two clusters":            {args: []string{"-f", folder, "--cluster=c2,c1"}, output: "namespace: c2"},
		"no file":                 {args: nil, problem: "--filename: name at least one file or folder, or - for the standard input"},
		"a file that is missing":  {args: []string{"-f", folder + "/x.yaml"}, problem: "--filename: stat "},
		"a folder without files":  {args: []string{"-f", empty}, problem: "has no file whose name ends in .yaml, .yml or .json"},
		"an output that is none":  {args: []string{"-f", folder, "-o", "json"}, problem: `--output: "json" is neither works nor objects`},
		"a file without its flag": {args: []string{folder}, problem: "arguments that are no flags: " + folder},
		"an unknown flag":         {args: []string{"--kubeconfig=x"}, problem: "unknown flag: --kubeconfig"},
		"an error in the input":   {args: []string{"-f", "-"}, in: "kind: [\n", problem: "standard input:1: it is no YAML"},
	} {
		t.Run(sentence, func(t *testing.T) {
			var out strings.Builder
			err := render.Program{Name: "spokelet-hub"}.Command(t.Context(), tc.args, strings.NewReader(tc.in), &out)
			if tc.problem != "" {
				require.ErrorContains(t, err, tc.problem)
				assert.NotContains(t, out.String(), "kind:")
				return
			}
			require.NoError(t, err)
			assert.Contains(t, out.String(), tc.output)
		})
	}
}

func TestTheHelp(t *testing.T) {
	var out strings.Builder
	err := render.Program{Name: "tea-manager"}.Command(t.Context(), []string{"--help"}, nil, &out)
	require.ErrorIs(t, err, pflag.ErrHelp)
	assert.Contains(t, out.String(), "tea-manager render [flags]")
	for _, flag := range []string{"-f, --filename", "--cluster", "--add-on", "-o, --output", "--hub-namespace"} {
		assert.Contains(t, out.String(), flag)
	}
}
