package template

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
)

const (
	proxyMount  = "/managed/proxy-ca"
	proxyFile   = "ca-bundle.crt"
	proxyVolume = "proxy-ca-bundle"

	// maxVolumeName is the maximum length of the name of a volume.
	maxVolumeName = 63
)

// pod is the pod template of a workload.
type pod struct {
	// workload is the resource and name of the workload, as in container ids.
	workload   string
	spec       map[string]any
	containers []map[string]any
	inits      []map[string]any
}

// decorate adds the settings that every agent gets to a Deployment or DaemonSet (docs/reference/hub.md, "Decoration of
// workloads").
func (r *rendering) decorate(u *unstructured.Unstructured, resource string, report func(path, message string)) {
	spec, found, err := unstructured.NestedFieldNoCopy(u.Object, "spec", "template", "spec")
	podSpec, isObject := spec.(map[string]any)
	if err != nil || !found || !isObject {
		report(".spec.template.spec", "it must be an object")
		return
	}
	p := &pod{workload: resource + ":" + u.GetName(), spec: podSpec}
	var ok bool
	if p.containers, ok = objects(podSpec["containers"]); !ok || len(p.containers) == 0 {
		report(".spec.template.spec.containers", "it must be a list of objects that is not empty")
		return
	}
	if p.inits, ok = objects(podSpec["initContainers"]); !ok {
		report(".spec.template.spec.initContainers", "it must be a list of objects")
		return
	}
	for _, step := range []func(*pod) error{
		r.environment, r.credentials, r.placement, r.images, r.proxy, r.resources,
	} {
		if err := step(p); err != nil {
			report(".spec.template.spec", err.Error())
		}
	}
}

func (r *rendering) environment(p *pod) error {
	for _, container := range p.containers {
		for _, v := range r.variables.injected {
			addEnv(container, v.name, v.value)
		}
	}
	return nil
}

// credentials mounts the Secrets of the registrations.
func (r *rendering) credentials(p *pod) error {
	for _, registration := range r.in.Template.Registration {
		config := addonv1beta1.RegistrationConfig{Type: addonv1beta1.KubeClient}
		volume, mount := "hub-kubeconfig", kubeconfigMount
		if registration.Type == addonv1alpha1.RegistrationTypeCustomSigner {
			if registration.CustomSigner == nil {
				continue // Registrations reports it to the author.
			}
			signer := registration.CustomSigner.SignerName
			config = addonv1beta1.RegistrationConfig{
				Type: addonv1beta1.CustomSigner, CustomSigner: &addonv1beta1.CustomSignerConfig{SignerName: signer},
			}
			volume = volumeName("cert-" + strings.NewReplacer("/", "-", ".", "-").Replace(signer))
			mount = "/managed/" + strings.ReplaceAll(signer, "/", "-")
		}
		p.mount(volume, mount, map[string]any{
			"secret": map[string]any{"secretName": csr.AddonSecretName(r.in.AddOn, config)},
		})
	}
	return nil
}

// placement sets node selector and tolerations; each may be set without the other.
func (r *rendering) placement(p *pod) error {
	if r.in.Config == nil || r.in.Config.Spec.NodePlacement == nil {
		return nil
	}
	wanted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r.in.Config.Spec.NodePlacement)
	if err != nil {
		return fmt.Errorf("encoding the node placement: %w", err)
	}
	for _, field := range []string{"nodeSelector", "tolerations"} {
		if value, given := wanted[field]; given {
			p.spec[field] = value
		}
	}
	return nil
}

// images replaces images by their mirrors, in init containers as well: a cluster that needs mirrors reaches no other
// registry.
func (r *rendering) images(p *pod) error {
	for _, container := range slices.Concat(p.containers, p.inits) {
		if image, ok := container["image"].(string); ok {
			container["image"] = mirrored(image, r.mirrors)
		}
	}
	return nil
}

func (r *rendering) proxy(p *pod) error {
	if r.in.Config == nil {
		return nil
	}
	proxy := r.in.Config.Spec.ProxyConfig
	proxied := false
	for _, setting := range []variable{
		{"HTTP_PROXY", proxy.HTTPProxy}, {"HTTPS_PROXY", proxy.HTTPSProxy}, {"NO_PROXY", proxy.NoProxy},
	} {
		if setting.value == "" {
			continue
		}
		proxied = true
		for _, container := range p.containers {
			addEnv(container, setting.name, setting.value)
			addEnv(container, strings.ToLower(setting.name), setting.value)
		}
	}
	if !proxied || len(proxy.CABundle) == 0 {
		return nil
	}
	for _, container := range p.containers {
		addEnv(container, "CA_BUNDLE_FILE_PATH", proxyMount+"/"+proxyFile)
	}
	p.mount(proxyVolume, proxyMount, map[string]any{"configMap": map[string]any{"name": r.proxyName()}})
	return nil
}

func (r *rendering) resources(p *pod) error {
	if r.in.Config == nil {
		return nil
	}
	for _, container := range p.containers {
		name, _ := container["name"].(string)
		wanted, found, err := resourcesOf(p.workload+":"+name, r.in.Config.Spec.ResourceRequirements)
		if err != nil {
			return err
		}
		if found {
			container["resources"] = wanted
		}
	}
	return nil
}

func (r *rendering) proxyName() string { return r.in.AddOn + "-proxy-ca" }

// proxyConfigMap returns the ConfigMap with the certificate authorities of the proxy; nil for none.
func (r *rendering) proxyConfigMap() *unstructured.Unstructured {
	if r.in.Config == nil || len(r.in.Config.Spec.ProxyConfig.CABundle) == 0 {
		return nil
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": r.proxyName(), "namespace": names.NamespaceAgentAddon},
		"data":     map[string]any{proxyFile: string(r.in.Config.Spec.ProxyConfig.CABundle)},
	}}
	r.moveNamespace(u)
	return u
}

// mount adds a volume and its mounts to all containers, unless the template contains them already.
func (p *pod) mount(name, path string, source map[string]any) {
	volumes, _ := p.spec["volumes"].([]any)
	if !has(volumes, "name", name) {
		volume := runtime.DeepCopyJSON(source)
		volume["name"] = name
		p.spec["volumes"] = append(volumes, volume)
	}
	for _, container := range p.containers {
		mounts, _ := container["volumeMounts"].([]any)
		if !has(mounts, "mountPath", path) {
			container["volumeMounts"] = append(mounts, map[string]any{"name": name, "mountPath": path})
		}
	}
}

func addEnv(container map[string]any, name, value string) {
	env, _ := container["env"].([]any)
	container["env"] = append(env, map[string]any{"name": name, "value": value})
}

// volumeName shortens a name that is too long for a volume, and keeps it unique.
func volumeName(name string) string {
	if len(name) <= maxVolumeName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	suffix := "-" + hex.EncodeToString(sum[:4])
	return name[:maxVolumeName-len(suffix)] + suffix
}

// has reports whether a list contains an object whose field has the value.
func has(list []any, field, value string) bool {
	return slices.ContainsFunc(list, func(item any) bool {
		object, ok := item.(map[string]any)
		return ok && object[field] == value
	})
}

// objects returns the items of a list of objects; false for any other value. An absent list is empty.
func objects(value any) ([]map[string]any, bool) {
	if value == nil {
		return nil, true
	}
	list, ok := value.([]any)
	if !ok {
		return nil, false
	}
	all := make([]map[string]any, 0, len(list))
	for _, item := range list {
		object, ok := item.(map[string]any)
		if !ok {
			return nil, false
		}
		all = append(all, object)
	}
	return all, true
}
