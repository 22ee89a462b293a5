package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// Each command that answers does so in each format: JSON and YAML with the same schema and the same answer, and names.
func TestEachCommandAnswersInEachFormat(t *testing.T) {
	earlier := filepath.Join(t.TempDir(), "earlier.tgz")
	require.Equal(t, statusWell, plays(t, shop(), "bundle", "-f", earlier).status)
	for kind, tc := range map[string]struct {
		hub   func() *hub
		args  []string
		names string
	}{
		"check":    {shop, []string{"check"}, "addon/logs cluster/store-114 cluster/store-201"},
		"compare":  {shop, []string{"check", "--compare", earlier, earlier}, ""},
		"clusters": {shop, []string{"get", "clusters", "--not-ready"}, "cluster/store-114 cluster/store-201"},
		"tree":     {shop, []string{"tree"}, "addon/logs cluster/store-114 cluster/store-201"},
		"why":      {shop, []string{"why", "addon", "logs", "-n", "store-003"}, "addon/logs"},
		"events":   {shop, []string{"events", "cluster", "store-114"}, "managedcluster/store-114"},
		"rollout":  {shelf, []string{"rollout", "status", "addon", "logs"}, ""},
		"history":  {shelf, []string{"rollout", "history", "addon", "logs"}, "addontemplates/logs"},
		"version":  {shop, []string{"version"}, ""},
		"approve":  {shop, []string{"approve", "cluster", "store-201", "--dry-run"}, "cluster/store-201"},
	} {
		t.Run(kind, func(t *testing.T) {
			asJSON, asYAML := plays(t, tc.hub(), append(tc.args, "-o", "json")...), plays(t, tc.hub(), append(tc.args, "-o", "yaml")...)
			var one, two map[string]any
			require.NoError(t, json.Unmarshal([]byte(asJSON.out), &one), "%s%s", asJSON.out, asJSON.errs)
			require.NoError(t, yaml.Unmarshal([]byte(asYAML.out), &two), "%s%s", asYAML.out, asYAML.errs)
			assert.Equal(t, one, two)
			assert.Equal(t, schema, one["schema"])
			assert.Equal(t, kind, one["kind"])
			named := plays(t, tc.hub(), append(tc.args, "-o", "name")...)
			assert.Equal(t, asJSON.status, named.status, named.errs)
			if tc.names != "" {
				assert.Equal(t, tc.names, strings.Join(strings.Split(strings.TrimSpace(named.out), "\n"), " "))
			}
			assert.NotContains(t, named.out, "  ", "names are no table: %s", named.out)
			wrong := plays(t, tc.hub(), append(tc.args, "-o", "table")...)
			assert.Equal(t, statusUse, wrong.status)
			assert.Empty(t, wrong.out)
		})
	}
}
