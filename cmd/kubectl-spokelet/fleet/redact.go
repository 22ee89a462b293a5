package fleet

import (
	"slices"

	"github.com/spokelet/spokelet/internal/names"
)

// redact takes out of an object what may hold a secret and what no command reads: all of a manifest but its kind and
// its name, annotations, who wrote which field, values that the agent reports back, requests for certificates, and
// certificates but for that there is one.
func redact(object map[string]any) {
	metadata := child(object, "metadata")
	delete(metadata, "managedFields")
	annotations := child(metadata, "annotations")
	for key := range annotations {
		if !slices.Contains(keptAnnotations(), key) {
			delete(annotations, key)
		}
	}
	manifests, _ := child(child(object, "spec"), "workload")["manifests"].([]any)
	for i, manifest := range manifests {
		manifests[i] = identity(manifest)
	}
	states, _ := child(child(object, "status"), "resourceStatus")["manifests"].([]any)
	for _, state := range states {
		if of, is := state.(map[string]any); is {
			delete(of, "statusFeedback")
		}
	}
	for _, spec := range []string{"request", "extra"} {
		delete(child(object, "spec"), spec)
	}
	if status := child(object, "status"); status["certificate"] != nil && status["certificate"] != "" {
		status["certificate"] = leftOut
	}
}

// leftOut is what a bundle has of a certificate: that there is one. It is "left out" in base64.
const leftOut = "bGVmdCBvdXQ="

// keptAnnotations are the annotations that commands read. Many programs keep whole objects in annotations of their own,
// with the Secrets in them, so that a bundle has no others.
func keptAnnotations() []string {
	return []string{
		names.AnnotationHostingCluster, names.AnnotationInstallMode, names.AnnotationHostManagedBy,
		names.AnnotationAcceptedOn,
	}
}

// identity returns what a bundle keeps of a manifest.
func identity(manifest any) map[string]any {
	of, _ := manifest.(map[string]any)
	return map[string]any{
		"apiVersion": of["apiVersion"], "kind": of["kind"],
		"metadata": map[string]any{"name": child(of, "metadata")["name"], "namespace": child(of, "metadata")["namespace"]},
	}
}

// child returns a field that is an object; an empty one where it is not.
func child(of map[string]any, field string) map[string]any {
	found, is := of[field].(map[string]any)
	if !is {
		return map[string]any{}
	}
	return found
}
