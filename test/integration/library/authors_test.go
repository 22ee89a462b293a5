package library_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing/fstest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/addon/raw"
)

// The add-ons of the authors.
const (
	// faulty has the fault that value "fault" names.
	faulty = "faulty"
	// files is made of YAML.
	files = "files"
	// sound has no fault.
	sound = "sound"
	// fields is healthy when its check is about what a cluster feeds back.
	fields = "fields"
	// deployments is healthy when all of its Deployments are.
	deployments = "deployments"
	// named is healthy when one of its Deployments is.
	named = "named"
	// workloads is healthy when all of its workloads are.
	workloads = "workloads"
	// custom sets its health itself.
	custom = "custom"
	// changing has another health probe in each release.
	changing = "changing"
)

// patience is how long functions may take.
const patience = 300 * time.Millisecond

// authors returns the add-ons of a release.
func authors(release int) (addon.Fixed, error) {
	yaml, err := raw.New(fstest.MapFS{"manifests/map.yaml": {Data: []byte(`apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Name }}, namespace: weather}
data: {text: "{{ indent 2 .Text }}"}
`)}}, "manifests")
	if err != nil {
		return nil, err
	}
	var agents []addon.Agent
	for _, options := range []addon.Options{
		{Name: faulty, Manifests: addon.ManifestsFunc(mayFail), Values: values(), Timeout: patience},
		{Name: files, Manifests: yaml, Values: values()},
		{Name: sound, Manifests: addon.ManifestsFunc(mayFail), Values: values()},
		{Name: fields, Manifests: addon.ManifestsFunc(agent), HealthProber: addon.NewWorkProber(checkPhase, phaseField())},
		{Name: deployments, Manifests: addon.ManifestsFunc(agent), HealthProber: addon.NewAllDeploymentsProber()},
		{Name: named, Manifests: addon.ManifestsFunc(agent), HealthProber: addon.NewDeploymentProber(
			types.NamespacedName{Namespace: "weather", Name: "main"})},
		{Name: workloads, Manifests: addon.ManifestsFunc(agent), HealthProber: addon.NewAllWorkloadsProber()},
		{Name: custom, Manifests: addon.ManifestsFunc(agent), HealthProber: addon.HealthProber{Type: addon.HealthCustom}},
		{Name: changing, Manifests: addon.ManifestsFunc(agent), HealthProber: []addon.HealthProber{
			addon.NewAllWorkloadsProber(), addon.NewLeaseProber(), addon.NewWorkProber(checkPhase, phaseField()),
			addon.NewLeaseProber(), addon.NewAllDeploymentsProber(),
		}[release]},
	} {
		agent, err := addon.New(options)
		if err != nil {
			return nil, err
		}
		agents = append(agents, agent)
	}
	return addon.NewFixed(agents...)
}

// values are those of the annotation. Fault "values" is one of their own.
func values() []addon.ValuesFunc {
	return []addon.ValuesFunc{
		addon.GetValuesFromAddonAnnotation, func(_ context.Context, request addon.Request) (addon.Values, error) {
			if strings.Contains(request.AddOn.Annotations["weather.example.com/fault"], "values") {
				return nil, errors.New("the list of stations does not answer")
			}
			return nil, nil
		},
	}
}

// object returns an object in namespace weather.
func object(apiVersion, kind, name string, content map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: content}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace("weather")
	u.SetName(name)
	return u
}

// mayFail returns a ConfigMap with value "text", or has the fault that value "fault" names.
func mayFail(ctx context.Context, in addon.Input) ([]runtime.Object, error) {
	text, isText := in.Values["text"].(string)
	if in.Values["text"] != nil && !isText {
		return nil, &addon.InvalidError{Message: fmt.Sprintf("value text is %T instead of a text", in.Values["text"])}
	}
	forecast := object("v1", "ConfigMap", "forecast", map[string]any{"data": map[string]any{"text": text}})
	switch in.Values["fault"] {
	case "panic":
		var none *addonv1beta1.ManagedClusterAddOn
		forecast.SetName(none.Name)
	case "blocks":
		<-ctx.Done()
		return nil, ctx.Err()
	case "nameless":
		forecast.SetName("")
	case "twice":
		return []runtime.Object{forecast, forecast.DeepCopy()}, nil
	case "large":
		forecast.Object["data"] = map[string]any{"text": strings.Repeat("x", addon.MaxManifestBytes)}
	case "error":
		return nil, errors.New("the forecast does not answer")
	}
	return []runtime.Object{forecast}, nil
}

// agent returns two Deployments, one of which is not important, a DaemonSet and a ConfigMap with the state of the
// agent.
func agent(context.Context, addon.Input) ([]runtime.Object, error) {
	labels := map[string]any{"app": "weather"}
	spec := func() map[string]any {
		return map[string]any{"spec": map[string]any{
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec": map[string]any{"containers": []any{
					map[string]any{"name": "agent", "image": "registry.example.com/weather:v1"},
				}},
			},
		}}
	}
	return []runtime.Object{
		object("v1", "ConfigMap", "state", map[string]any{"data": map[string]any{"phase": "Starting"}}),
		object("apps/v1", "Deployment", "main", spec()), object("apps/v1", "Deployment", "extra", spec()),
		object("apps/v1", "DaemonSet", "node", spec()),
	}, nil
}

// phaseField selects the state of the agent.
func phaseField() addon.ProbeField {
	return addon.ProbeField{
		ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Namespace: "weather", Name: "st*"},
		FeedbackRules: []workv1.FeedbackRule{{
			Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{{Name: "phase", Path: ".data.phase"}},
		}},
	}
}

// checkPhase is the check of an author.
func checkPhase(r addon.ProbeRequest) error {
	for _, result := range r.Results {
		switch phase, _ := result.Text("phase"); phase {
		case "Ready":
		case "Burning":
			panic("fire")
		default:
			return fmt.Errorf("the station on %s is %s", r.Cluster.Name, phase)
		}
	}
	return nil
}
