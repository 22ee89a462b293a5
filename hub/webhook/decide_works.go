package webhook

import (
	"encoding/json"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
)

const (
	// DefaultManifestLimit is how many bytes the manifests of one work may have together (contract, work 5.2).
	DefaultManifestLimit = 512000
	// accountOfAgents is the ServiceAccount of agents, whose rights works without an executor have. It has no namespace
	// here, because that is the choice of each cluster.
	accountOfAgents = "klusterlet-work-sa"
)

// wrongManifests tells what is wrong with the manifests of a work; nothing is, when the result is empty.
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

// executing is the right that it takes to give a work its executor; nil when that does not change. before is nil when
// the work is created. A work without an executor has the rights of the agent, which take a right only if none says so.
func executing(before, after *workv1.ManifestWork, none bool) *right {
	if before != nil && equality.Semantic.DeepEqual(before.Spec.Executor, after.Spec.Executor) {
		return nil
	}
	account := workv1.ManifestWorkSubjectServiceAccount{Name: accountOfAgents}
	switch executor := after.Spec.Executor; {
	case executor == nil && !none:
		return nil
	case executor != nil && executor.Subject.ServiceAccount != nil:
		account = *executor.Subject.ServiceAccount
	}
	name := "system:serviceaccount:" + account.Namespace + ":" + account.Name
	return &right{authorizationv1.ResourceAttributes{
		Group: workv1.GroupName, Resource: "manifestworks", Verb: "execute-as", Namespace: after.Namespace, Name: name,
	}, fmt.Sprintf("to have ManifestWorks in namespace %s applied as %s", after.Namespace, name)}
}
