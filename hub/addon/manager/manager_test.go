package manager

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spokelet/spokelet/hub/addon"
)

var update = flag.Bool("update", false, "write the golden files again")

// nothing makes no objects.
func nothing(context.Context, addon.Input) ([]runtime.Object, error) { return nil, nil }

func agent(t *testing.T, options addon.Options) addon.Agent {
	t.Helper()
	options.Manifests = addon.ManifestsFunc(nothing)
	made, err := addon.New(options)
	require.NoError(t, err)
	return made
}

func plain(t *testing.T) addon.Agent {
	t.Helper()
	return agent(t, addon.Options{Name: "plain"})
}

func full(t *testing.T) addon.Agent {
	t.Helper()
	return agent(t, addon.Options{
		Name: "full",
		ConfigGVRs: []schema.GroupVersionResource{
			addon.AddOnDeploymentConfigGVR(), {Group: "example.com", Version: "v1", Resource: "things"},
			{Version: "v1", Resource: "configmaps"},
		},
		KubeClient: &addon.KubeClient{Roles: []addon.HubRole{
			{Name: "reader"}, {Kind: addon.KindRole, Name: "writer", Namespace: "shared"}, {Kind: addon.KindRole, Name: "of-cluster"},
		}},
		CustomSigners: []addon.CustomSigner{
			{SignerName: "example.com/own", CA: types.NamespacedName{Name: "own-ca"}},
			{SignerName: "example.com/other", CA: types.NamespacedName{Namespace: "pki", Name: "other-ca"}},
			{SignerName: "example.com/elsewhere"},
		},
	})
}

// The golden files show what a program may do on a hub, in a review.
func TestRights(t *testing.T) {
	for name, agents := range map[string][]addon.Agent{
		"plain": {plain(t)}, "full": {full(t)}, "both": {full(t), plain(t)},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			require.NoError(t, printRights(&out, Config{Name: "program", Namespace: "central"}, agents))
			golden := filepath.Join("testdata", name+".yaml")
			if *update {
				require.NoError(t, os.WriteFile(golden, out.Bytes(), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, string(want), out.String(), "if that is meant: go test ./hub/addon/manager -update")
		})
	}
}

// silent is an Agent that does not declare its needs.
type silent struct{ addon.Agent }

func TestRightsOfAnAgentThatDoesNotDeclareItsNeeds(t *testing.T) {
	_, err := Rights(Config{}, silent{plain(t)})
	require.ErrorContains(t, err, "implement addon.Declarer")
}

func TestTheCommandLine(t *testing.T) {
	build := func() (addon.Agent, error) { return plain(t), nil }
	for sentence, tc := range map[string]struct {
		args  []string
		build []func() (addon.Agent, error)
		in    string
		says  string
		err   string
	}{
		"help": {args: []string{"--help"}, build: []func() (addon.Agent, error){build}, says: "runs the add-on plain", err: "help requested"},
		"help of a subcommand": {
			args: []string{"rbac", "-h"}, build: []func() (addon.Agent, error){build}, says: "prints the ServiceAccount",
			err: "help requested",
		},
		"rights": {
			args: []string{"rbac", "--namespace", "x", "--name", "y"}, build: []func() (addon.Agent, error){build},
			says: "system:serviceaccount:x:y",
		},
		"rendering": {
			args: []string{"render", "-f", "-", "--cluster", "c1"}, build: []func() (addon.Agent, error){build},
			in:   "{apiVersion: addon.open-cluster-management.io/v1alpha1, kind: ClusterManagementAddOn, metadata: {name: plain}, spec: {}}",
			says: "plain",
		},
		"rendering nothing": {
			args: []string{"render"}, build: []func() (addon.Agent, error){build}, err: "name at least one file",
		},
		"an add-on that cannot be built": {
			build: []func() (addon.Agent, error){func() (addon.Agent, error) { return nil, errors.New("no chart") }},
			err:   "building an add-on: no chart",
		},
		"no add-on":        {err: "there is no add-on to run"},
		"two of one name":  {build: []func() (addon.Agent, error){build, build}, err: "two agents have the name plain"},
		"an unknown word":  {args: []string{"deploy"}, build: []func() (addon.Agent, error){build}, err: "arguments that are no flags: deploy"},
		"an unknown flag":  {args: []string{"--what"}, build: []func() (addon.Agent, error){build}, err: "unknown flag"},
		"a bad name":       {args: []string{"rbac", "--name", "A B"}, build: []func() (addon.Agent, error){build}, err: `name: "A B" is not valid`},
		"a bad kubeconfig": {args: []string{"--kubeconfig", "/does/not/exist"}, build: []func() (addon.Agent, error){build}, err: "reading how to reach the hub"},
		"a bad election": {
			args: []string{"--leader-election-renew-deadline", "1m"}, build: []func() (addon.Agent, error){build},
			err: "--leader-election-lease-duration",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			var out bytes.Buffer
			p := program{name: "weather", args: tc.args, in: strings.NewReader(tc.in), out: &out}
			err := p.run(t.Context(), tc.build)
			if tc.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tc.err)
			}
			assert.Contains(t, out.String(), tc.says)
		})
	}
}

func TestTheZeroConfigurationWorks(t *testing.T) {
	var c Config
	c.complete([]addon.Agent{plain(t)})
	require.NoError(t, c.validate())
	assert.Equal(t, "plain-manager", c.Name)
	flags := pflag.NewFlagSet("x", pflag.ContinueOnError)
	d := DefaultConfig(plain(t))
	d.AddFlags(flags)
	require.NoError(t, flags.Parse([]string{"--workers=3"}))
	assert.Equal(t, 3, d.Workers)
	assert.True(t, d.LeaderElect)
}
