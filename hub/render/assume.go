package render

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/configure"
	"github.com/spokelet/spokelet/hub/install"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/names"
)

// scene holds what is rendered, and what had to be assumed.
type scene struct {
	*catalog
	options Options
	// ofTemplates reports whether the add-ons are those made of AddOnTemplates.
	ofTemplates bool
	agents      addon.Lookup
	// configurer decides configurations as the hub manager does.
	configurer *configure.Configurer

	// subjects are the add-ons on clusters, sorted.
	subjects []types.NamespacedName
	// assumed and left are sentences about what was added to the files, and about what is not rendered.
	assumed, left []string
}

func (s *scene) assume(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(s.assumed, text) {
		s.assumed = append(s.assumed, text)
	}
}

func (s *scene) leave(format string, args ...any) {
	s.left = append(s.left, fmt.Sprintf(format, args...))
}

// complete adds to the hub what the files leave out, and finds what is to be rendered.
func (s *scene) complete(ctx context.Context, known []string) error {
	all, err := s.addOnNames(known)
	if err != nil {
		return err
	}
	var problems []error
	for _, name := range all {
		if err := s.completeAddOn(ctx, name); err != nil {
			problems = append(problems, fmt.Errorf("add-on %s: %w", name, err))
		}
	}
	slices.SortFunc(s.subjects, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	if len(problems) == 0 && len(s.subjects) == 0 {
		if len(all) == 0 {
			s.leave("no file has a ClusterManagementAddOn or a ManagedClusterAddOn")
		}
		problems = append(problems, errors.New("there is nothing to render: "+strings.Join(s.left, "; ")))
	}
	return errors.Join(problems...)
}

// addOnNames returns the names of the add-ons to render: those that the options name, or else all.
func (s *scene) addOnNames(known []string) ([]string, error) {
	all := map[string]bool{}
	for _, name := range known {
		all[name] = true
	}
	for name := range s.cmas {
		all[name] = true
	}
	for key := range s.addOns {
		all[key.Name] = true
	}
	for _, template := range s.templates {
		if name := addOnOf(template); s.ofTemplates && name != "" {
			all[name] = true
		}
	}
	sorted := slices.Sorted(maps.Keys(all))
	for _, name := range s.options.AddOns {
		if !all[name] {
			return nil, fmt.Errorf("--add-on: the files do not name add-on %s, but %s", name,
				listed(sorted, "no add-on at all"))
		}
	}
	if len(s.options.AddOns) > 0 {
		sorted = slices.Compact(slices.Sorted(slices.Values(s.options.AddOns)))
	}
	return sorted, nil
}

// listed joins names; none is the text for no names.
func listed(names []string, none string) string {
	if len(names) == 0 {
		return none
	}
	return strings.Join(names, ", ")
}

// addOnOf returns the add-on that an AddOnTemplate is for.
func addOnOf(template *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(template.Object, "spec", "addonName")
	return name
}

// completeAddOn adds one add-on with its clusters.
func (s *scene) completeAddOn(ctx context.Context, name string) error {
	cma := s.cmas[name]
	if cma == nil {
		var err error
		if cma, err = s.assumeManagement(name); err != nil {
			return err
		}
	}
	s.hub.put(cma)
	agent, found, err := s.agents.Agent(ctx, name)
	if err != nil || !found {
		if err == nil && s.ofTemplates {
			s.leave("add-on %s is not made of AddOnTemplates: its ClusterManagementAddOn does not list them among its "+
				"configurations, so the program of its author renders it", name)
		} else if err == nil {
			s.leave("add-on %s is not one of this program", name)
		}
		return err
	}
	clusters := s.clusterNames(cma)
	selected, err := s.selection(cma, clusters)
	if err != nil {
		return err
	}
	var problems []error
	for _, cluster := range clusters {
		if err := s.install(cma, cluster, selected[cluster], agent.About()); err != nil {
			problems = append(problems, fmt.Errorf("cluster %s: %w", cluster, err))
		}
	}
	if len(clusters) == 0 {
		s.leave("add-on %s is on no cluster: name one with --cluster, or add a ManagedCluster to the files", name)
	}
	return errors.Join(problems...)
}

// assumeManagement returns the ClusterManagementAddOn of an add-on that has none.
func (s *scene) assumeManagement(name string) (*addonv1beta1.ClusterManagementAddOn, error) {
	cma := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cma.Spec.InstallStrategy.Type = addonv1beta1.AddonInstallStrategyManual
	if !s.ofTemplates {
		s.assume("ClusterManagementAddOn %s, without default configurations", name)
		return cma, nil
	}
	var candidates []string
	for _, template := range s.templates {
		if addOnOf(template) == name {
			candidates = append(candidates, template.GetName())
		}
	}
	slices.Sort(candidates)
	if len(candidates) != 1 {
		return nil, fmt.Errorf("its ClusterManagementAddOn is not among the files, and the AddOnTemplates with this "+
			"spec.addonName are %s: add the ClusterManagementAddOn", listed(candidates, "none"))
	}
	s.assume("ClusterManagementAddOn %s, whose only default configuration is AddOnTemplate %s", name, candidates[0])
	cma.Spec.DefaultConfigs = []addonv1beta1.AddOnConfig{{
		ConfigGroupResource: confighash.Template(), ConfigReferent: addonv1beta1.ConfigReferent{Name: candidates[0]},
	}}
	return cma, nil
}

// clusterNames returns the clusters that the options name, or else all of the files that can have an add-on, sorted.
func (s *scene) clusterNames(cma *addonv1beta1.ClusterManagementAddOn) []string {
	if len(s.options.Clusters) > 0 {
		return slices.Compact(slices.Sorted(slices.Values(s.options.Clusters)))
	}
	all := map[string]bool{}
	for name := range s.clusters {
		all[name] = true
	}
	for key := range s.addOns {
		if key.Name == cma.Name {
			all[key.Namespace] = true
		}
	}
	for _, placement := range placementsOf(cma) {
		for _, decision := range s.decisions {
			if addonapi.PlacementOf(decision) == placement.PlacementRef {
				for _, cluster := range addonapi.SelectedClusters(decision) {
					all[cluster] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// placementsOf returns the placements that install an add-on; none when people install it.
func placementsOf(cma *addonv1beta1.ClusterManagementAddOn) []addonv1beta1.PlacementStrategy {
	if !addonapi.InstalledByPlacements(cma) {
		return nil
	}
	return cma.Spec.InstallStrategy.Placements
}

// selection returns the clusters that placements of the add-on select. Without any decision, it is assumed that they
// select all, if that leaves no question open.
func (s *scene) selection(cma *addonv1beta1.ClusterManagementAddOn, clusters []string) (map[string]bool, error) {
	placements := placementsOf(cma)
	selected := map[string]bool{}
	var undecided []string
	for _, placement := range placements {
		decided := false
		for _, decision := range s.decisions {
			if addonapi.PlacementOf(decision) != placement.PlacementRef {
				continue
			}
			decided = true
			for _, cluster := range addonapi.SelectedClusters(decision) {
				selected[cluster] = true
			}
		}
		if !decided {
			undecided = append(undecided, placement.Namespace+"/"+placement.Name)
		}
	}
	switch {
	case len(undecided) == 0:
		return selected, nil
	case len(undecided) < len(placements):
		s.assume("Placement %s selects no cluster: the files have PlacementDecisions, but none of it",
			strings.Join(undecided, ", "))
		return selected, nil
	}
	last := placements[len(placements)-1]
	for _, placement := range placements {
		if !equality.Semantic.DeepEqual(placement.Configs, last.Configs) {
			return nil, fmt.Errorf("its Placements %s have different configurations, and no file has a PlacementDecision that "+
				"names the clusters of each: add PlacementDecisions", strings.Join(undecided, ", "))
		}
	}
	s.assume("Placement %s selects every cluster, because the files have no PlacementDecision of it",
		strings.Join(undecided, ", "))
	s.decide(last.PlacementRef, clusters)
	for _, cluster := range clusters {
		selected[cluster] = true
	}
	return selected, nil
}

// decide adds a decision of a placement.
func (s *scene) decide(placement addonv1beta1.PlacementRef, clusters []string) {
	decision := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: placement.Namespace, Name: placement.Name + "-assumed",
		Labels: map[string]string{names.LabelPlacement: placement.Name},
	}}
	for _, cluster := range clusters {
		decision.Status.Decisions = append(decision.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: cluster})
	}
	s.hub.put(decision)
}

// install adds an add-on on a cluster, if it would be installed there.
func (s *scene) install(
	cma *addonv1beta1.ClusterManagementAddOn, cluster string, selected bool, about addon.About,
) error {
	key := types.NamespacedName{Namespace: cluster, Name: cma.Name}
	addOn := s.addOns[key]
	byPeople := len(placementsOf(cma)) == 0
	switch {
	case addOn == nil && !selected && byPeople && len(s.options.Clusters) > 0:
		s.assume("ManagedClusterAddOn %s, without configurations of its own", key)
		addOn = &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: cma.Name}}
	case addOn == nil && !selected && byPeople:
		s.leave("people install add-on %s, and no file has a ManagedClusterAddOn %s: add it, or name the cluster with "+
			"--cluster", cma.Name, key)
		return nil
	case addOn == nil && !selected:
		s.leave("no Placement of add-on %s selects cluster %s", cma.Name, cluster)
		return nil
	}
	installed, err := install.Preview(cma, s.cluster(cluster), addOn, selected)
	switch {
	case err != nil:
		return err
	case installed == nil:
		s.leave("add-on %s is not installed on cluster %s by the hub: annotation %s of its ClusterManagementAddOn is %q",
			cma.Name, cluster, names.AnnotationLifecycle, cma.Annotations[names.AnnotationLifecycle])
		return nil
	case addOn == nil:
		s.assume("ManagedClusterAddOn %s, as its Placement installs it", key)
	}
	if host := installed.Annotations[names.AnnotationHostingCluster]; host != "" {
		s.cluster(host)
	}
	// The first pass writes it, and configurations of other kinds wait for that.
	installed.Status.SupportedConfigs = about.SupportedConfigs
	s.subjects = append(s.subjects, key)
	return s.putAddOn(installed)
}

// cluster returns a cluster, which it adds to the hub; one that the files do not have is assumed.
func (s *scene) cluster(name string) *clusterv1.ManagedCluster {
	cluster := s.clusters[name]
	if cluster == nil {
		s.assume("ManagedCluster %s, accepted and without labels, annotations, claims and a version", name)
		cluster = &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	} else if !cluster.Spec.HubAcceptsClient {
		s.assume("ManagedCluster %s, accepted", name)
	}
	cluster.Spec.HubAcceptsClient = true
	s.putCluster(cluster)
	return cluster
}
