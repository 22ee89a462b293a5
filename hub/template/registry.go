package template

import (
	"cmp"
	"context"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/kept"
	"github.com/spokelet/spokelet/internal/names"
)

const (
	// maxTemplates is how many bytes the templates take together that are kept compiled, and as many the large ones.
	// Every cluster needs the same few.
	maxTemplates = 64 << 20
	// largeTemplate is from how many bytes of JSON a template counts as large.
	largeTemplate = 128 << 10
	// leastTemplate is the least that a template takes.
	leastTemplate = 16 << 10
)

// Registry finds the agents of add-ons that are made of templates: those whose ClusterManagementAddOn lists
// AddOnTemplates among its configurations. NewRegistry makes one.
type Registry struct {
	// Configs lists AddOnTemplates as unstructured objects, from a cache.
	Configs client.Reader
	// AddOns reads add-ons.
	AddOns addonapi.Client
	// Configurer chooses the templates and configurations of add-ons.
	Configurer addon.Configurer
	// Home is the namespace of the hub manager; empty means names.NamespaceHub.
	Home string
	// Renders counts renderings, see NewRenders; nil counts none.
	Renders *Renders

	// compiled are templates, the large ones apart; signing are the custom signers of templates by UID and version.
	compiled [2]compilations
	signing  kept.Texts[*Template]
}

var _ addon.Lookup = &Registry{}

func (r *Registry) home() string { return cmp.Or(r.Home, names.NamespaceHub) }

// Agent implements addon.Lookup. An add-on whose ClusterManagementAddOn was deleted still has its agent as long as a
// template of it is stored: pre-delete hooks may have to run.
func (r *Registry) Agent(ctx context.Context, name string) (addon.Agent, bool, error) {
	cma, err := r.AddOns.GetClusterManagementAddOn(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		if runs, err := r.Configurer.Runs(ctx, name, confighash.Template()); err != nil || !runs {
			return nil, false, err
		}
	case err != nil:
		return nil, false, err
	case !UsesTemplates(cma):
		return nil, false, nil
	}
	return &agent{registry: r, name: name}, true, nil
}

// read compiles a template, once for each content. The template must not be changed.
func (r *Registry) read(config addon.ChosenConfig) (*Compiled, error) {
	key := confighash.Key(config.ConfigGroupResource, config.ConfigReferent) + "@" + config.SpecHash + "@" +
		config.Object.GetAnnotations()[names.AnnotationHealthProbe]
	all := &r.compiled[0]
	if confighash.Size(config.Object) > largeTemplate {
		all = &r.compiled[1]
	}
	return all.read(key, config.Object)
}

// compilations are templates that are kept compiled. They displace each other only.
type compilations struct {
	// compiling is held while one is compiled: ten workers would decode the same one at once, or ten large ones.
	compiling sync.Mutex
	// known are templates by name and hash.
	known kept.Texts[compiled]
}

func (c *compilations) read(key string, object *unstructured.Unstructured) (*Compiled, error) {
	if !c.known.Has(key) {
		c.compiling.Lock()
		defer c.compiling.Unlock()
	}
	made := c.known.Of(key, maxTemplates, func() (compiled, int) {
		t, err := ReadTemplate(object)
		if err != nil {
			return compiled{err: err}, leastTemplate + len(err.Error()) + 2*len(key)
		}
		c := Compile(t)
		return compiled{template: c}, leastTemplate + confighash.Weigh(object) + c.weigh() + 2*len(key)
	})
	return made.template, made.err
}

// maxSigning is how many bytes the custom signers of templates take together that are kept.
const maxSigning = 4 << 20

// signers returns the custom signers of a template, read once for each version of an API server; nil when it is
// invalid.
func (r *Registry) signers(u *unstructured.Unstructured) *Template {
	version := u.GetResourceVersion()
	if u.GetUID() == "" || version == "" { // It is of a file.
		t, _ := onlySigners(u)
		return t
	}
	return r.signing.Of(string(u.GetUID())+" "+version, maxSigning, func() (*Template, int) { return onlySigners(u) })
}

// onlySigners reads the custom signers of a template, and returns how many bytes they take about. Nothing else is
// decoded, so that a template that is too large to be used does not hide whose CA it names.
func onlySigners(u *unstructured.Unstructured) (*Template, int) {
	const least = 256
	var content struct {
		Spec struct {
			AddonName    string `json:"addonName"`
			Registration []struct {
				Type         addonv1alpha1.RegistrationType `json:"type"`
				CustomSigner *struct {
					SignerName string                     `json:"signerName"`
					SigningCA  addonv1alpha1.SigningCARef `json:"signingCA"`
				} `json:"customSigner"`
			} `json:"registration"`
		} `json:"spec"`
	}
	raw, err := confighash.Content(u)
	if err != nil {
		return nil, least
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &content); err != nil {
		return nil, least
	}
	few := &Template{Name: u.GetName(), AddOn: content.Spec.AddonName}
	size := least + len(few.Name) + len(few.AddOn)
	for _, registration := range content.Spec.Registration {
		custom := registration.CustomSigner
		if registration.Type != addonv1alpha1.RegistrationTypeCustomSigner || custom == nil {
			continue
		}
		few.Registration = append(few.Registration, addonv1alpha1.RegistrationSpec{
			Type: registration.Type, CustomSigner: &addonv1alpha1.CustomSignerRegistrationConfig{
				SignerName: custom.SignerName, SigningCA: custom.SigningCA,
			},
		})
		size += 2*least + len(custom.SignerName) + len(custom.SigningCA.Namespace) + len(custom.SigningCA.Name)
	}
	return few, size
}

// compiled is a compiled template, or why it cannot be read.
type compiled struct {
	template *Compiled
	err      error
}

// UsesTemplates reports whether an add-on is made of templates, with or without a default one.
func UsesTemplates(cma *addonv1beta1.ClusterManagementAddOn) bool {
	return slices.ContainsFunc(cma.Spec.DefaultConfigs, func(config addonv1beta1.AddOnConfig) bool {
		return config.ConfigGroupResource == confighash.Template()
	})
}
