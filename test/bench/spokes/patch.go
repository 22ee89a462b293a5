package spokes

import (
	"encoding/json"

	workv1 "open-cluster-management.io/api/work/v1"
)

// finalizersPatch is a merge patch that replaces the finalizers of a work as it was read: finalizers are a list of
// which others own a part.
func finalizersPatch(work *workv1.ManifestWork, finalizers []string) ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": work.UID, "resourceVersion": work.ResourceVersion, "finalizers": finalizers,
	}})
}

// statusPatch is a merge patch of the status of a work. Nobody else writes it, so it needs no version.
func statusPatch(status *workv1.ManifestWorkStatus) ([]byte, error) {
	return json.Marshal(map[string]any{"status": status})
}
