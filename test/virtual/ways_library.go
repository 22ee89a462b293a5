package virtual

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing/fstest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/addon/manager"
	"github.com/spokelet/spokelet/hub/addon/raw"
	"github.com/spokelet/spokelet/internal/names"
)

// author is the program of an author, which runs the add-on of this test on a hub without an AddOnTemplate.
type author struct {
	*program

	// link is the program's way to the hub.
	link *link
	// of is the template whose add-on the program has, as its author wrote it by hand; nil is no program.
	of *addonv1alpha1.AddOnTemplate
	// random draws whether the program starts again when the hub manager does.
	random *rand.Rand
}

// byLibrary lets a program of an author stand for the AddOnTemplate of the add-on: an edit of the template is another
// version of the program, and its deletion the end of the program.
func (w way) byLibrary(random *rand.Rand) (way, error) {
	file, err := w.writeKubeconfig("library")
	if err != nil {
		return w, err
	}
	const name = "the program of the author"
	account := accountOf(space, wayAddOn+"-manager")
	a := &author{random: random, link: newLink(name, w.hub.Transport(account), w.judge.loops(name))}
	a.link.remember()
	c := manager.Config{
		Kubeconfig: file, Namespace: space,
		WrapTransport: func(http.RoundTripper) http.RoundTripper { return router{"library": a.link} },
	}
	a.program = &program{
		name: "library", log: w.options.Log, failed: func(err error) { w.judge.ended("", err) },
		run: func(ctx context.Context) error {
			agent, err := written(a.of)
			if err != nil {
				return err
			}
			return manager.Run(ctx, c, agent)
		},
	}
	w.author = a
	return w, nil
}

// becomes lets the program be one of another version, or end.
func (w way) becomes(template *addonv1alpha1.AddOnTemplate) {
	w.stopAuthor()
	w.author.of = template
	w.startAuthor()
}

// stopAuthor ends the program of the author, with the lies to it.
func (w way) stopAuthor() {
	if w.author.link.honest() {
		time.Sleep(startTime)
	}
	w.author.stop()
}

// startAuthor starts the program of the author, if there is one.
func (w way) startAuthor() {
	if w.author.of != nil {
		w.author.start(w.ctx)
		time.Sleep(10 * time.Second)
	}
}

// versionOf names a version of the program, as a commit would.
func versionOf(template *addonv1alpha1.AddOnTemplate) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(encoded(template.Spec)))
	return fmt.Sprintf("commit-%08x", hash.Sum32())
}

// written is the add-on of a template as an author writes it in Go, with files that are Go templates: the file says
// itself what a template gets besides what its author wrote.
func written(template *addonv1alpha1.AddOnTemplate) (addon.Agent, error) {
	file, err := fileOf(template)
	if err != nil {
		return nil, err
	}
	manifests, err := raw.New(fstest.MapFS{"agent.json": {Data: file}}, ".")
	if err != nil {
		return nil, err
	}
	options := addon.Options{
		Name:    wayAddOn,
		Version: versionOf(template),
		Values: []addon.ValuesFunc{
			addon.GetAddOnDeploymentConfigValues(addon.ToAddOnCustomizedVariableValues),
		},
		Manifests:        manifests,
		ConfigGVRs:       []schema.GroupVersionResource{addon.AddOnDeploymentConfigGVR()},
		ClusterFacts:     []addon.ClusterFact{}, // the files use nothing but its name
		InstallNamespace: addon.AgentInstallNamespaceFromDeploymentConfig,
		HealthProber:     addon.NewAllDeploymentsProber(),
	}
	for i := range template.Spec.Registration {
		options.KubeClient = &addon.KubeClient{Agent: wayAddOn + "-agent"}
		for _, permission := range template.Spec.Registration[i].KubeClient.HubPermissions {
			role := addon.HubRole{Name: permission.CurrentCluster.ClusterRoleName}
			options.KubeClient.Roles = append(options.KubeClient.Roles, role)
		}
	}
	return addon.New(options)
}

// fileOf is the Deployment of a template as a Go template.
func fileOf(template *addonv1alpha1.AddOnTemplate) ([]byte, error) {
	var deployment map[string]any
	if err := json.Unmarshal(template.Spec.AgentSpec.Workload.Manifests[0].Raw, &deployment); err != nil {
		return nil, fmt.Errorf("reading the Deployment: %w", err)
	}
	u := &unstructured.Unstructured{Object: deployment}
	u.SetNamespace("{{ .AddonInstallNamespace }}")
	pod := []string{"spec", "template", "spec"}
	containers, _, err := unstructured.NestedSlice(deployment, append(pod, "containers")...)
	if err != nil {
		return nil, fmt.Errorf("reading the containers: %w", err)
	}
	container, is := containers[0].(map[string]any)
	if !is {
		return nil, errors.New("the container is no object")
	}
	env := func(name, value string) any { return map[string]any{"name": name, "value": value} }
	variables := []any{
		env("CLUSTER_NAME", "{{ .ClusterName }}"), env("INSTALL_NAMESPACE", "{{ .AddonInstallNamespace }}"),
	}
	if len(template.Spec.Registration) > 0 {
		const mounted = "/managed/hub-kubeconfig"
		variables = append([]any{env("HUB_KUBECONFIG", mounted+"/kubeconfig")}, variables...)
		container["volumeMounts"] = []any{map[string]any{"name": "hub-kubeconfig", "mountPath": mounted}}
		volume := map[string]any{
			"name": "hub-kubeconfig", "secret": map[string]any{"secretName": "{{ .HubKubeConfigSecret }}"},
		}
		if err := unstructured.SetNestedSlice(deployment, []any{volume}, append(pod, "volumes")...); err != nil {
			return nil, fmt.Errorf("setting the volumes: %w", err)
		}
	}
	container["env"] = variables
	if err := unstructured.SetNestedSlice(deployment, containers, append(pod, "containers")...); err != nil {
		return nil, fmt.Errorf("setting the containers: %w", err)
	}
	text, err := json.Marshal(deployment)
	if err != nil {
		return nil, err
	}
	return []byte(strings.ReplaceAll(string(text), `"{{LEVEL}}"`, `{{ printf "%q" .LEVEL }}`)), nil
}

// eitherWay returns a state without what is different by design between an add-on of a template and the same add-on of
// a program:
//
//   - The AddOnTemplate itself, which is a configuration: ClusterManagementAddOns and ManagedClusterAddOns name it
//     among the supported ones, refer to it, and count it.
//   - Condition addon.spokelet.io/Soaked of an add-on, which has a digest of the configurations of each kind.
//   - Condition Progressing of an add-on that waits for its manifests for long, which says that a program makes them.
//   - Annotation open-cluster-management.io/config-spec-hash of works, which has the hash of each configuration.
//   - Annotation addon.spokelet.io/rendered-from of works: inputs is a hash of what an add-on of this kind is rendered
//     from, and by has the version of the program, so that another version renders the works again.
//
// Everything else is the same: specs, names, labels and owners of works, permissions, registrations, health and
// conditions.
func eitherWay(state map[string]string) (map[string]string, error) {
	counted := regexp.MustCompile(`\d+ of \d+ configurations`)
	given := regexp.MustCompile(`the rollout gave \[[^\]]*\]`)
	author := regexp.MustCompile(`; a program set up the registration of the add-on [^"]*`)
	left := map[string]string{}
	for name, text := range state {
		kind, _, _ := strings.Cut(name, " ")
		var content map[string]any
		if err := json.Unmarshal([]byte(text), &content); err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		switch kind {
		case "AddOnTemplate":
			continue
		case "ClusterManagementAddOn", "ManagedClusterAddOn":
			withoutConfigs(content)
			text = given.ReplaceAllString(counted.ReplaceAllString(encoded(content), "all configurations"), "all was given")
			text = author.ReplaceAllString(text, "")
		case "ManifestWork":
			u := &unstructured.Unstructured{Object: content}
			annotations := u.GetAnnotations()
			for key, drop := range map[string]func(string) bool{
				names.AnnotationConfigSpecHash: func(config string) bool { return strings.HasPrefix(config, "addontemplates.") },
				names.AnnotationRenderedFrom:   func(field string) bool { return field == "inputs" || field == "by" },
			} {
				var fields map[string]any
				if err := json.Unmarshal([]byte(annotations[key]), &fields); err != nil {
					return nil, fmt.Errorf("reading %s of %s: %w", key, name, err)
				}
				maps.DeleteFunc(fields, func(field string, _ any) bool { return drop(field) })
				annotations[key] = encoded(fields)
			}
			u.SetAnnotations(annotations)
			text = encoded(content)
		}
		left[name] = text
	}
	return left, nil
}

// withoutConfigs takes all that names the resource of AddOnTemplates from the lists of an object.
func withoutConfigs(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		for key, item := range typed {
			typed[key] = withoutConfigs(item)
		}
	case []any:
		typed = slices.DeleteFunc(typed, func(item any) bool {
			config, _ := item.(map[string]any)
			return config["resource"] == "addontemplates"
		})
		for i := range typed {
			typed[i] = withoutConfigs(typed[i])
		}
		return typed
	}
	return value
}

// specs returns the specs of the works in a state, as they are.
func specs(state map[string]string) (map[string]string, error) {
	all := map[string]string{}
	for name, text := range state {
		if !strings.HasPrefix(name, "ManifestWork ") {
			continue
		}
		var work struct {
			Spec json.RawMessage `json:"spec"`
		}
		if err := json.Unmarshal([]byte(text), &work); err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		all[name] = string(work.Spec)
	}
	return all, nil
}
