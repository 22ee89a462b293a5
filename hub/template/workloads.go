package template

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spokelet/spokelet/internal/names"
)

// workloadKind is a kind of objects with pods.
type workloadKind struct {
	// resource is the resource of the kind, as in the ids of containers.
	resource string
	// path leads to the specification of the pods.
	path string
	// ofOCM reports that OCM decorates the kind too: what it adds replaces what the author wrote.
	ofOCM bool
	// fixed reports that the pods cannot be changed once the object exists, so that what an administrator changes later
	// would be refused for ever.
	fixed bool
}

const (
	podTemplate    = "spec.template.spec"
	jobPodTemplate = "spec.jobTemplate.spec.template.spec"
)

// resourceDeployments is the resource whose replicas a configuration may set.
const resourceDeployments = "deployments"

// workloadKindOf returns the kind of an object with pods; false for every other object.
func workloadKindOf(u *unstructured.Unstructured) (workloadKind, bool) {
	group := u.GroupVersionKind().Group
	switch kind := u.GetKind(); {
	case group == "apps" && kind == "Deployment":
		return workloadKind{resource: resourceDeployments, path: podTemplate, ofOCM: true}, true
	case group == "apps" && kind == "DaemonSet":
		return workloadKind{resource: "daemonsets", path: podTemplate, ofOCM: true}, true
	case group == "apps" && kind == "StatefulSet":
		return workloadKind{resource: "statefulsets", path: podTemplate}, true
	case group == "apps" && kind == "ReplicaSet":
		return workloadKind{resource: "replicasets", path: podTemplate}, true
	case group == "batch" && kind == "CronJob":
		return workloadKind{resource: "cronjobs", path: jobPodTemplate}, true
	case group == "batch" && kind == "Job":
		return workloadKind{resource: "jobs", path: podTemplate, fixed: true}, true
	case group == "" && kind == "Pod":
		return workloadKind{resource: "pods", path: "spec", fixed: true}, true
	}
	return workloadKind{}, false
}

// decorates reports whether the pods of an object are decorated. Jobs and Pods are only if they are hooks, which are
// created when the add-on is deleted, or if the author states it. The message is about an annotation that is wrong.
func (w workloadKind) decorates(u *unstructured.Unstructured) (bool, string) {
	metadata, _ := u.Object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	if stated, found := annotations[names.AnnotationDecorate]; found {
		switch stated {
		case "true":
			return true, ""
		case "false":
			return false, ""
		}
		return false, fmt.Sprintf("the value %q is unknown; write true or false, or remove the annotation", stated)
	}
	_, annotated := annotations[names.AnnotationPreDelete]
	_, labelled := labels[names.AnnotationPreDelete]
	return !w.fixed || annotated || labelled, ""
}

// pod is the pod template of a workload.
type pod struct {
	// workload is the resource and name of the workload, as in container ids.
	workload string
	// keeps reports that the author's own settings stay.
	keeps      bool
	spec       map[string]any
	containers []map[string]any
	inits      []map[string]any
}

// newPod returns an object with a copy of its pod template, which may be changed. The message is about what is wrong at
// the path.
func newPod(u *unstructured.Unstructured, kind workloadKind) (*unstructured.Unstructured, *pod, *Problem) {
	path := "." + kind.path
	object := maps.Clone(u.Object)
	spec := object
	for key := range strings.SplitSeq(kind.path, ".") {
		below, ok := spec[key].(map[string]any)
		if !ok {
			return u, nil, &Problem{Path: path, Message: "it must be an object"}
		}
		below = maps.Clone(below)
		spec[key] = below
		spec = below
	}
	p := &pod{workload: kind.resource + ":" + u.GetName(), keeps: !kind.ofOCM, spec: spec}
	var ok bool
	if p.containers, ok = ownObjects(spec, "containers"); !ok || len(p.containers) == 0 {
		return u, nil, &Problem{Path: path + ".containers", Message: "it must be a list of objects that is not empty"}
	}
	if p.inits, ok = ownObjects(spec, "initContainers"); !ok {
		return u, nil, &Problem{Path: path + ".initContainers", Message: "it must be a list of objects"}
	}
	return &unstructured.Unstructured{Object: object}, p, nil
}

// ownObjects replaces the objects of a list by copies, and returns them; false for a value that is not a list of
// objects. An absent list is empty.
func ownObjects(parent map[string]any, key string) ([]map[string]any, bool) {
	if parent[key] == nil {
		return nil, true
	}
	list, ok := parent[key].([]any)
	if !ok {
		return nil, false
	}
	copies, all := make([]any, 0, len(list)), make([]map[string]any, 0, len(list))
	for _, item := range list {
		object, ok := item.(map[string]any)
		if !ok {
			return nil, false
		}
		object = maps.Clone(object)
		copies, all = append(copies, object), append(all, object)
	}
	parent[key] = copies
	return all, true
}

// setEnvironment adds variables to the environment of a container. A variable that the container has stays where the
// author's own settings stay, and gets the added value otherwise: each name stands there once.
func setEnvironment(container map[string]any, added []any, keeps bool) {
	own, _ := container["env"].([]any)
	if len(added) == 0 {
		return
	}
	all := slices.Clone(own)
	for _, entry := range added {
		variable, _ := entry.(map[string]any)
		at := indexOf(own, "name", variable["name"])
		switch {
		case at < 0:
			all = append(all, entry)
		case !keeps:
			all[at] = entry
		}
	}
	container["env"] = all
}

// volume is a volume and its mount.
type volume struct {
	name, path    string
	entry, mounts map[string]any
	// bytes are those of its mount in a container, about as many as those of the volume in a pod.
	bytes int
}

func newVolume(name, path, kind string, source map[string]any) volume {
	v := volume{
		name: name, path: path,
		entry:  map[string]any{"name": name, kind: source},
		mounts: map[string]any{"name": name, "mountPath": path},
	}
	v.bytes = sizeOf(v.mounts)
	return v
}

// sizeOf returns the bytes of a value in a manifest.
func sizeOf(value any) int {
	raw, err := json.Marshal(value)
	if err != nil {
		return 0
	}
	return len(raw)
}

// mount adds a volume and its mounts to all containers, unless the template contains them already.
func (p *pod) mount(v volume) {
	volumes, _ := p.spec["volumes"].([]any)
	if indexOf(volumes, "name", v.name) < 0 {
		p.spec["volumes"] = append(slices.Clip(volumes), v.entry)
	}
	for _, containers := range [][]map[string]any{p.containers, p.inits} {
		for _, container := range containers {
			mounts, _ := container["volumeMounts"].([]any)
			if !slices.ContainsFunc(mounts, v.takesPlaceOf) {
				container["volumeMounts"] = append(slices.Clip(mounts), v.mounts)
			}
		}
	}
}

// takesPlaceOf reports whether a mount of the author is at the path of the volume.
func (v volume) takesPlaceOf(mount any) bool {
	object, _ := mount.(map[string]any)
	path, _ := object["mountPath"].(string)
	return strings.TrimRight(path, "/") == v.path
}

// indexOf returns the index of the last object in a list whose field has the value; -1 for none.
func indexOf(list []any, field string, value any) int {
	for i := len(list) - 1; i >= 0; i-- {
		if object, ok := list[i].(map[string]any); ok && object[field] == value {
			return i
		}
	}
	return -1
}
