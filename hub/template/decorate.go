package template

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/names"
)

const (
	proxyMount  = "/managed/proxy-ca"
	proxyFile   = "ca-bundle.crt"
	proxyVolume = "proxy-ca-bundle"

	// maxVolumeName is the maximum length of the name of a volume.
	maxVolumeName = 63
)

// decoration is what every agent on a cluster gets besides what its author wrote (docs/reference/hub.md, "Decoration of
// workloads"). It is the same for all workloads of a template, so they share it.
type decoration struct {
	environment []any
	// credentials are the Secrets of the registrations. Where OCM adds none, a pod must not wait for them.
	credentials, optional []volume
	// placement are the fields nodeSelector and tolerations; each may be given without the other.
	placement map[string]any
	// placed are the bytes of the fields of placement.
	placed    map[string]int
	mirrors   []addonv1beta1.ImageMirror
	resources []addonv1beta1.ContainerResourceRequirements
	// encoded are the resources of the rules that matched, by their index, which containers share.
	encoded map[int]encodedResources
	// authorities are the certificate authorities of the proxy; nil for none.
	authorities *volume
	// bytes are those of the environment, and used those that it took in all containers so far, with the authorities.
	bytes, used int
}

// decorationOf returns the decoration for a cluster. The error is an addon.InvalidError.
func decorationOf(in Input, registrations []addonv1alpha1.RegistrationSpec, v *variables) (*decoration, error) {
	d := &decoration{}
	var err error
	if d.mirrors, err = mirrorsOf(in); err != nil {
		return nil, err
	}
	for _, injected := range v.environment() {
		d.add(injected.name, injected.value)
	}
	d.credentials, d.optional = credentialsOf(registrations, in.AddOn, false), credentialsOf(registrations, in.AddOn, true)
	if in.Config == nil {
		return d, nil
	}
	d.resources = in.Config.Spec.ResourceRequirements
	if in.Config.Spec.NodePlacement != nil {
		if d.placement, err = runtime.DefaultUnstructuredConverter.ToUnstructured(in.Config.Spec.NodePlacement); err != nil {
			return nil, fmt.Errorf("encoding the node placement: %w", err)
		}
		d.placed = map[string]int{}
		for field, value := range d.placement {
			d.placed[field] = sizeOf(value)
		}
	}
	return d, d.addProxy(in)
}

// add adds a variable to the environment of all containers.
func (d *decoration) add(name, value string) {
	d.environment = append(d.environment, envEntry(name, value))
	d.bytes += len(name) + len(value)
}

// addProxy adds the proxy settings, each in both spellings.
func (d *decoration) addProxy(in Input) error {
	proxy := &in.Config.Spec.ProxyConfig
	proxied := false
	for _, setting := range []variable{
		{"HTTP_PROXY", proxy.HTTPProxy}, {"HTTPS_PROXY", proxy.HTTPSProxy}, {"NO_PROXY", proxy.NoProxy},
	} {
		if setting.value != "" {
			proxied = true
			d.add(setting.name, setting.value)
			d.add(strings.ToLower(setting.name), setting.value)
		}
	}
	if !utf8.Valid(proxy.CABundle) {
		return &addon.InvalidError{Message: fmt.Sprintf("AddOnDeploymentConfig %s/%s: spec.proxyConfig.caBundle is no text: "+
			"it must be certificates in PEM, encoded in Base64 once", in.Config.Namespace, in.Config.Name)}
	}
	if proxied && len(proxy.CABundle) > 0 {
		d.add("CA_BUNDLE_FILE_PATH", proxyMount+"/"+proxyFile)
		v := newVolume(proxyVolume, proxyMount, "configMap", map[string]any{"name": proxyName(in.AddOn)})
		d.authorities = &v
	}
	return nil
}

func envEntry(name, value string) map[string]any { return map[string]any{"name": name, "value": value} }

// credentialsOf returns the volumes with the Secrets of the registrations.
func credentialsOf(registrations []addonv1alpha1.RegistrationSpec, addOn string, optional bool) []volume {
	var all []volume
	for _, registration := range registrations {
		config := addonv1beta1.RegistrationConfig{Type: addonv1beta1.KubeClient}
		name, path := "hub-kubeconfig", kubeconfigMount
		if registration.Type == addonv1alpha1.RegistrationTypeCustomSigner {
			if registration.CustomSigner == nil {
				continue // Registrations reports it to the author.
			}
			signer := registration.CustomSigner.SignerName
			config = addonv1beta1.RegistrationConfig{
				Type: addonv1beta1.CustomSigner, CustomSigner: &addonv1beta1.CustomSignerConfig{SignerName: signer},
			}
			name = volumeName("cert-" + strings.NewReplacer("/", "-", ".", "-").Replace(signer))
			path = "/managed/" + strings.ReplaceAll(signer, "/", "-")
		}
		source := map[string]any{"secretName": csr.AddonSecretName(addOn, config)}
		if optional {
			source["optional"] = true
		}
		all = append(all, newVolume(name, path, "secret", source))
	}
	return all
}

// decorate returns a workload with the decoration, and whether it has any; every other object stays as it is.
func (d *decoration) decorate(
	u *unstructured.Unstructured, report func(path, message string),
) (*unstructured.Unstructured, bool) {
	kind, workload := workloadKindOf(u)
	if !workload {
		return u, false
	}
	wanted, problem := kind.decorates(u)
	if problem != "" {
		report(`.metadata.annotations["`+names.AnnotationDecorate+`"]`, problem)
	}
	if !wanted {
		return u, false
	}
	decorated, p, wrong := newPod(u, kind)
	if wrong != nil {
		report(wrong.Path, wrong.Message)
		return u, false
	}
	if err := d.apply(p); err != nil {
		report("."+kind.path, err.Error())
	}
	return decorated, true
}

// apply decorates a pod.
func (d *decoration) apply(p *pod) error {
	if d.used > maxValues {
		return nil // it is refused in the end
	}
	d.used += d.bytes * (len(p.containers) + len(p.inits))
	for _, container := range p.containers {
		setEnvironment(container, d.environment, p.keeps)
	}
	for _, container := range p.inits {
		setEnvironment(container, d.environment, true)
	}
	credentials := d.credentials
	if p.keeps {
		credentials = d.optional
	}
	for _, v := range credentials {
		d.used += v.bytes * (1 + len(p.containers) + len(p.inits))
	}
	if d.used > maxValues {
		return nil
	}
	for _, v := range credentials {
		p.mount(v)
	}
	for _, field := range []string{"nodeSelector", "tolerations"} {
		if value, given := d.placement[field]; given && (!p.keeps || p.spec[field] == nil) {
			p.spec[field] = value
			d.used += d.placed[field]
		}
	}
	if d.authorities != nil {
		p.mount(*d.authorities)
	}
	for i, container := range slices.Concat(p.containers, p.inits) {
		if err := d.finish(p.workload, container, i >= len(p.containers)); err != nil {
			return err
		}
	}
	return nil
}

// finish sets the image and the resources of a container. Init containers get mirrors as well: a cluster that needs
// mirrors reaches no other registry.
func (d *decoration) finish(workload string, container map[string]any, initial bool) error {
	if d.used > maxValues {
		return nil // it is refused in the end
	}
	name, _ := container["name"].(string)
	if image, ok := container["image"].(string); ok && len(d.mirrors) > 0 {
		from := addon.OverrideImage(d.mirrors, image)
		if strings.HasPrefix(from, "/") {
			return fmt.Errorf("the registries of the cluster or of the configuration have an entry for image %s of container "+
				"%s that names no mirror", image, name)
		}
		container["image"] = from
		d.used += len(from)
	}
	at, found := resourcesOf(workload, name, initial, d.resources)
	if !found {
		return nil
	}
	e, known := d.encoded[at]
	if !known {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&d.resources[at].Resources)
		if err != nil {
			return fmt.Errorf("encoding the resources of %s: %w", d.resources[at].ContainerID, err)
		}
		e = encodedResources{object, sizeOf(object)}
		if d.encoded == nil {
			d.encoded = map[int]encodedResources{}
		}
		d.encoded[at] = e
	}
	container["resources"] = e.object
	d.used += e.bytes
	return nil
}

// encodedResources are resources as they are in a manifest, and their bytes there.
type encodedResources struct {
	object map[string]any
	bytes  int
}

func proxyName(addOn string) string { return addOn + "-proxy-ca" }

// authorities returns the ConfigMaps with the certificate authorities of the proxy: one where OCM has it, and one in
// each other namespace with pods that mount it, because a pod reads no ConfigMap of another namespace. An author's own
// ConfigMap of that name stays alone.
func (r *rendering) authorities(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	if r.in.Config == nil || len(r.in.Config.Spec.ProxyConfig.CABundle) == 0 {
		return nil
	}
	namespaces := []string{cmp.Or(r.in.installNamespace(), names.NamespaceAgentAddon)}
	if r.decoration.authorities != nil {
		namespaces = append(namespaces, r.decorated...)
	}
	var all []*unstructured.Unstructured
	bundle := string(r.in.Config.Spec.ProxyConfig.CABundle)
	// done are the namespaces that have one: the author's own, or the one before.
	done := sets.New("")
	for _, other := range objects {
		if other.GetKind() == "ConfigMap" && other.GetName() == proxyName(r.in.AddOn) {
			done.Insert(other.GetNamespace())
		}
	}
	for _, namespace := range namespaces {
		if done.Has(namespace) {
			continue
		}
		done.Insert(namespace)
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": proxyName(r.in.AddOn), "namespace": namespace},
			"data":     map[string]any{proxyFile: bundle},
		}}
		all = append(all, u)
	}
	r.decoration.used += len(all) * len(bundle)
	return all
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
