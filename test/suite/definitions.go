package suite

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// DefinitionsOfOCM returns the CustomResourceDefinitions of a hub as an installation of OCM has them: those of the API
// module, which ours differ from by their bounds.
func DefinitionsOfOCM(ctx context.Context) ([][]byte, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "open-cluster-management.io/api").Output()
	if err != nil {
		return nil, fmt.Errorf("finding the API module: %w", err)
	}
	var all [][]byte
	for _, pattern := range []string{
		"addon/v1beta1/*", "addon/v1alpha1/*_addontemplates", "cluster/v1/*_managedclusters", "cluster/v1beta2/*",
		"cluster/v1beta1/*_placements", "cluster/v1beta1/*_placementdecisions", "work/v1/*",
		"cluster/v1alpha1/*_clusterclaims",
	} {
		files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), pattern+".crd.yaml"))
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("no definition is called %s: %w", pattern, err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("reading a definition of the API module: %w", err)
			}
			all = append(all, raw)
		}
	}
	return all, nil
}
