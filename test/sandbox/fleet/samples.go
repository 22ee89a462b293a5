package fleet

import (
	"context"
	"fmt"
	"io/fs"
	"path"

	"github.com/spokelet/spokelet/manifests"
)

// ApplySample applies one of the add-ons in manifests/samples to the hub, as its user would.
func (f *Fleet) ApplySample(ctx context.Context, name string) error {
	samples := manifests.Samples()
	files, err := fs.Glob(samples, path.Join(name, "*.yaml"))
	if err != nil {
		return fmt.Errorf("looking for sample %s: %w", name, err)
	}
	if len(files) == 0 {
		return fmt.Errorf("there is no sample %s", name)
	}
	for _, file := range files {
		if path.Base(file) == "kustomization.yaml" {
			continue
		}
		doc, err := fs.ReadFile(samples, file)
		if err != nil {
			return fmt.Errorf("reading sample %s: %w", file, err)
		}
		if err := f.Hub.Apply(ctx, doc); err != nil {
			return fmt.Errorf("applying sample %s: %w", file, err)
		}
	}
	return nil
}
