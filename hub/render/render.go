package render

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/configure"
	"github.com/spokelet/spokelet/hub/deploy"
	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/hub/template"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/objectwatch"
)

// Output holds what Render prints.
type Output string

const (
	// OutputWorks are the ManifestWorks on the hub.
	OutputWorks Output = "works"
	// OutputObjects are the objects on the clusters.
	OutputObjects Output = "objects"
)

// Options restrict what is rendered.
type Options struct {
	// Clusters are the names of the clusters; none means all of the files. One that is not in the files is assumed.
	Clusters []string
	// AddOns are the names of the add-ons; none means all.
	AddOns []string
	// Output holds what is printed; empty means OutputWorks.
	Output Output
	// Home is the namespace of the hub manager; empty means names.NamespaceHub.
	Home string
	// Precedence says which of several configurations of one kind counts.
	Precedence addon.Precedence
}

// Render returns, as a stream of YAML documents with comments, what add-ons deploy on clusters. The same files and
// options give the same text. The error lists all that is wrong with the files, and names the file and the object of
// each problem.
func (p Program) Render(ctx context.Context, files []File, o Options) (string, error) {
	s, deployer, err := p.scene(ctx, files, o)
	if err != nil {
		return "", err
	}
	ctx = logr.NewContext(ctx, logr.Discard())
	out := &printer{scene: s}
	out.begin()
	var problems []error
	for _, key := range s.subjects {
		preview, err := s.preview(ctx, deployer, key)
		if err == nil {
			err = out.addOn(key, preview, o.Output)
		}
		if err != nil {
			problems = append(problems, s.explain(key, preview, err))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return "", err
	}
	return out.String(), nil
}

// scene reads files, and completes them.
func (p Program) scene(ctx context.Context, files []File, o Options) (*scene, *deploy.Reconciler, error) {
	// Reconcilers log for operators; everything that they say is in the result.
	ctx = logr.NewContext(ctx, logr.Discard())
	for _, cluster := range o.Clusters {
		if problems := validation.IsDNS1123Label(cluster); len(problems) > 0 {
			return nil, nil, fmt.Errorf("--cluster: %q is no name of a cluster: %s", cluster, problems[0])
		}
	}
	all, err := read(files)
	if err != nil {
		return nil, nil, err
	}
	c, err := newCatalog(all)
	if err != nil {
		return nil, nil, err
	}
	s := &scene{catalog: c, options: o, ofTemplates: p.Agents == nil, agents: p.Agents}
	deployer, err := s.deployer(ctx)
	if err != nil {
		return nil, nil, err
	}
	return s, deployer, s.complete(ctx, p.AddOns)
}

// deployer returns the reconciler of add-ons over the objects of the files, and sets the agents.
func (s *scene) deployer(ctx context.Context) (*deploy.Reconciler, error) {
	home := cmp.Or(s.options.Home, names.NamespaceHub)
	addOns := addonapi.Client{Client: s.hub, Wire: addonapi.WireBeta}
	s.configurer = &configure.Configurer{
		AddOns: addOns, Client: s.hub, Store: &addonconfig.Store{Client: s.hub, Home: home, Others: s.catalog},
		Placements: &fleet.Placements{Client: s.hub, Final: true, Clock: clock.RealClock{}},
		Precedence: s.options.Precedence,
	}
	deployer := &deploy.Reconciler{
		Client: s.hub, Bindings: s.hub, Live: s.hub, AddOns: addOns, Configurer: s.configurer, Home: home,
		Clock: clock.RealClock{}, AllNamespaces: s.ofTemplates,
	}
	if s.ofTemplates {
		s.agents = &template.Registry{Configs: s.hub, AddOns: addOns, Configurer: s.configurer, Home: home}
	} else {
		deployer.Configurer = &configure.Follower{Configurer: s.configurer, Supports: s.supports(ctx)}
	}
	deployer.Agents = s.agents
	return deployer, errors.Join(addOns.Index(ctx, s.hub), deployer.Index(ctx, s.hub),
		addonconfig.Index(ctx, addOns, s.hub))
}

// supports returns a function that reports whether an add-on understands a kind of configuration.
func (s *scene) supports(ctx context.Context) func(string, addonv1beta1.ConfigGroupResource) bool {
	return func(name string, kind addonv1beta1.ConfigGroupResource) bool {
		agent, found, err := s.agents.Agent(ctx, name)
		return err == nil && found && slices.Contains(agent.About().SupportedConfigs, kind)
	}
}

// preview returns what passes write for an add-on. The program of an author follows the configuration that the hub
// manager wrote into the status of the add-on before.
func (s *scene) preview(
	ctx context.Context, deployer *deploy.Reconciler, key types.NamespacedName,
) (deploy.Preview, error) {
	if agent, found, err := s.agents.Agent(ctx, key.Name); err == nil && found {
		s.read = agent.About().SupportedConfigs
	}
	if s.ofTemplates {
		return deployer.Preview(ctx, key)
	}
	addOn, err := deployer.AddOns.GetAddOn(ctx, key)
	if err != nil {
		return deploy.Preview{}, err
	}
	configuration, err := s.configurer.Configure(ctx, addOn)
	if err == nil {
		err = configuration.Err
	}
	if err != nil {
		return deploy.Preview{}, err
	}
	if configuration.Record != nil {
		configuration.Record(addOn, addon.Progress{Now: deployer.Clock.Now()})
		s.hub.put(addOn)
	}
	return deployer.Preview(ctx, key)
}

// explain returns the error about an add-on on a cluster, with the files of its configurations.
func (s *scene) explain(key types.NamespacedName, preview deploy.Preview, err error) error {
	about := fmt.Sprintf("add-on %s on cluster %s: ", key.Name, key.Namespace)
	// The rollout is over here, so nobody waits for it.
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), about), "waiting for the rollout: ")
	var from []string
	for _, config := range preview.Choice.Configs {
		from = append(from, s.place(config, s.where))
	}
	if len(from) > 0 {
		text += " (configurations: " + strings.Join(from, ", ") + ")"
	}
	return errors.New(about + text)
}

// place describes a configuration and where it is.
func (s *scene) place(config addon.ChosenConfig, where map[string]string) string {
	ref := objectwatch.Ref{
		Group: config.Group, Resource: config.Resource, Namespace: config.Namespace, Name: config.Name,
	}
	return fmt.Sprintf("%s in %s", described(config), where[ref.String()])
}

// described names a configuration for messages.
func described(config addon.ChosenConfig) string {
	return addonconfig.Describe(addonv1beta1.AddOnConfig{
		ConfigGroupResource: config.ConfigGroupResource, ConfigReferent: config.ConfigReferent,
	})
}

// unsupported returns the configurations that an add-on is to have and does not understand.
func unsupported(preview deploy.Preview) []string {
	var all []string
	for _, config := range preview.Choice.Configs {
		if !slices.Contains(preview.About.SupportedConfigs, config.ConfigGroupResource) {
			all = append(all, fmt.Sprintf("%s has no effect and is not read, because the add-on does not support its kind",
				described(config)))
		}
	}
	return all
}
