package webhook

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
)

// DefaultManifestLimit is the limit for the manifests of one work together, in bytes (docs/reference/work.md,
// "Admission of works").
const DefaultManifestLimit = 512000

// problemsShown is the number of problems that a refusal lists.
const problemsShown = 20

// wrongManifests lists what is wrong with the manifests of a work, the first problems only; it is empty when nothing
// is.
func wrongManifests(work *workv1.ManifestWork, limit int) []string {
	manifests := work.Spec.Workload.Manifests
	if len(manifests) == 0 {
		return []string{"manifests should not be empty"}
	}
	var wrong []string
	size := 0
	seen := map[string]bool{}
	for i := range manifests {
		size += manifests[i].Size()
		if len(wrong) >= problemsShown {
			continue
		}
		var object metav1.PartialObjectMetadata
		err := json.Unmarshal(manifests[i].Raw, &object)
		problem := ""
		switch {
		case err != nil:
			problem = fmt.Sprintf("cannot be decoded: %v", err)
		case object.APIVersion == "" || object.Kind == "":
			problem = "needs apiVersion and kind"
		case object.GenerateName != "":
			problem = "has metadata.generateName, which is not supported: set metadata.name"
		case object.Name == "":
			problem = "has no metadata.name"
		}
		if problem != "" {
			wrong = append(wrong, fmt.Sprintf("spec.workload.manifests[%d] %s", i, problem))
			continue
		}
		what := fmt.Sprintf("%s/%s with resource type %s.%s", object.Namespace, object.Name, object.APIVersion, object.Kind)
		if seen[what] {
			wrong = append(wrong, "duplicate manifest for resource "+what)
		}
		seen[what] = true
	}
	if size > limit {
		wrong = append(wrong, fmt.Sprintf("the size of manifests is %d bytes which exceeds the %d limit", size, limit))
	}
	return wrong
}
