package addon

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ReplicaConfig is an entry of spec.replicaConfigs of an AddOnDeploymentConfig. The API module has no type for it.
type ReplicaConfig struct {
	// WorkloadID names Deployments, such as deployments:agent: resource and object. "*" stands for one or more characters.
	WorkloadID string `json:"workloadID"`
	// Replicas is how many pods a Deployment gets.
	Replicas int32 `json:"replicas"`
}

// ReadReplicaConfigs reads spec.replicaConfigs of an AddOnDeploymentConfig; none where the field is not there. The
// error is an InvalidError.
func ReadReplicaConfigs(config *unstructured.Unstructured) ([]ReplicaConfig, error) {
	invalid := func(problem string) error {
		return &InvalidError{Message: fmt.Sprintf("AddOnDeploymentConfig %s/%s, .spec.replicaConfigs: %s",
			config.GetNamespace(), config.GetName(), problem)}
	}
	value, found, err := unstructured.NestedFieldNoCopy(config.Object, "spec", "replicaConfigs")
	if err != nil {
		return nil, invalid(err.Error())
	}
	if !found || value == nil {
		return nil, nil
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, invalid(err.Error())
	}
	var all []ReplicaConfig
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, invalid(err.Error())
	}
	for _, one := range all {
		if one.Replicas < 0 {
			return nil, invalid(fmt.Sprintf("the entry %q asks for %d replicas, and the least is 0", one.WorkloadID,
				one.Replicas))
		}
	}
	return all, nil
}

// ReplicasOf returns how many replicas configurations ask for; false for none. Of several entries that match the id,
// the last one counts.
func ReplicasOf(configs []ReplicaConfig, workloadID string) (int32, bool) {
	for i := len(configs) - 1; i >= 0; i-- {
		if MatchesID(configs[i].WorkloadID, workloadID) {
			return configs[i].Replicas, true
		}
	}
	return 0, false
}

// DeploymentID returns the id of a Deployment in workloadID.
func DeploymentID(name string) string { return "deployments:" + name }

// GetReplicaConfigs returns spec.replicaConfigs of the AddOnDeploymentConfig that counts of those that the rollout
// chose. The error is an InvalidError, or a NotReadyError while its content is not known.
func GetReplicaConfigs(request Request) ([]ReplicaConfig, error) {
	if config, err := GetAddOnDeploymentConfig(request); err != nil || config == nil {
		return nil, err
	}
	return ReadReplicaConfigs(request.Choice.Counting(deploymentConfigs()).Object)
}

// ReplicasFromDeploymentConfig returns a Builder that gives the Deployments of another one the replicas that the
// AddOnDeploymentConfig of the add-on asks for.
func ReplicasFromDeploymentConfig(builder Builder) Builder {
	return ManifestsFunc(func(ctx context.Context, in Input) ([]runtime.Object, error) {
		configs, err := GetReplicaConfigs(in.Request)
		if err != nil {
			return nil, err
		}
		made, err := builder.Build(ctx, in)
		if err != nil || len(configs) == 0 {
			return made, err
		}
		all := make([]runtime.Object, 0, len(made))
		for _, object := range made {
			all = append(all, scaled(object, configs))
		}
		return all, nil
	})
}

// scaled returns an object as it is, or a copy of a Deployment with other replicas: builders may share objects.
func scaled(object runtime.Object, configs []ReplicaConfig) runtime.Object {
	switch typed := object.(type) {
	case *appsv1.Deployment:
		if replicas, found := ReplicasOf(configs, DeploymentID(typed.Name)); found {
			after := typed.DeepCopy()
			after.Spec.Replicas = &replicas
			return after
		}
	case *unstructured.Unstructured:
		if typed.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}) {
			return object
		}
		if replicas, found := ReplicasOf(configs, DeploymentID(typed.GetName())); found {
			after := typed.DeepCopy()
			if unstructured.SetNestedField(after.Object, int64(replicas), "spec", "replicas") == nil {
				return after
			}
		}
	}
	return object
}

// MatchesID reports whether an id, such as deployments:agent or deployments:agent:main, matches a pattern, in which "*"
// stands for one or more characters.
func MatchesID(pattern, id string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == id
	}
	rest, found := strings.CutPrefix(id, parts[0])
	if !found {
		return false
	}
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		// The star before the part takes at least one character.
		if rest == "" {
			return false
		}
		at := strings.Index(rest[1:], part)
		if at < 0 {
			return false
		}
		rest = rest[1+at+len(part):]
	}
	return len(rest) > len(last) && strings.HasSuffix(rest, last)
}
