package addonconfig

import (
	"testing"

	"github.com/stretchr/testify/assert"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

func TestDesiredConfigs(t *testing.T) {
	reserved := fixture.Template(addonapi.ReservedNoDefault)
	type configs = []addonv1beta1.AddOnConfig
	tests := map[string]struct {
		defaults, placement, own configs
		want                     []DesiredConfig
	}{
		"nothing is asked for": {},
		"defaults stand when nothing else is asked for, without the reserved name and the empty one": {
			defaults: configs{fixture.Template("t"), reserved, {ConfigGroupResource: fixture.ConfigMap("").ConfigGroupResource}},
			want:     []DesiredConfig{{fixture.Template("t"), FromDefaults, 0}},
		},
		"the placement replaces the whole resource of the defaults and leaves others": {
			defaults:  configs{fixture.Template("t"), fixture.DeploymentConfig("d")},
			placement: configs{fixture.DeploymentConfig("p1"), fixture.DeploymentConfig("p2")},
			want: []DesiredConfig{
				{fixture.DeploymentConfig("p1"), FromPlacement, 0}, {fixture.DeploymentConfig("p2"), FromPlacement, 0}, {fixture.Template("t"), FromDefaults, 0},
			},
		},
		"the add-on replaces the placement": {
			defaults:  configs{fixture.DeploymentConfig("d")},
			placement: configs{fixture.DeploymentConfig("p1"), fixture.DeploymentConfig("p2")},
			own:       configs{fixture.DeploymentConfig("p1")},
			want:      []DesiredConfig{{fixture.DeploymentConfig("p1"), FromAddOn, 0}},
		},
		"duplicates count once and the order within a resource is that of the list": {
			own: configs{fixture.DeploymentConfig("z"), fixture.Template("t"), fixture.DeploymentConfig("a"), fixture.DeploymentConfig("z")},
			want: []DesiredConfig{
				{fixture.DeploymentConfig("z"), FromAddOn, 0}, {fixture.DeploymentConfig("a"), FromAddOn, 0}, {fixture.Template("t"), FromAddOn, 0},
			},
		},
		"resources are ordered by group, then name": {
			own:  configs{fixture.Template("t"), fixture.DeploymentConfig("d"), fixture.ConfigMap("c")},
			want: []DesiredConfig{{fixture.ConfigMap("c"), FromAddOn, 0}, {fixture.DeploymentConfig("d"), FromAddOn, 0}, {fixture.Template("t"), FromAddOn, 0}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cma := fixture.NewCMA(test.defaults, fixture.Placement("p", test.placement...))
			assert.Equal(t, test.want, DesiredConfigs(cma, 0, test.own))
		})
	}
}

func TestDesiredConfigsOfAnAddOnWithoutAPlacement(t *testing.T) {
	cma := fixture.NewCMA([]addonv1beta1.AddOnConfig{fixture.DeploymentConfig("d")}, fixture.Placement("p", fixture.DeploymentConfig("p")))
	assert.Equal(t, []DesiredConfig{{fixture.DeploymentConfig("d"), FromDefaults, 0}}, DesiredConfigs(cma, -1, nil))
}

func TestHashOfAForeignConfig(t *testing.T) {
	config := fixture.ConfigMap("c")
	cma := fixture.NewCMA(nil, fixture.Placement("other"), fixture.Placement("p"))
	cma.Status.DefaultConfigReferences = []addonv1beta1.DefaultConfigReference{
		{ConfigGroupResource: config.ConfigGroupResource},
		{ConfigGroupResource: config.ConfigGroupResource, DesiredConfig: fixture.Hashed(config, "of the default")},
	}
	cma.Status.InstallProgressions = []addonv1beta1.InstallProgression{
		{PlacementRef: fixture.Placement("other").PlacementRef, ConfigReferences: []addonv1beta1.InstallConfigReference{
			{ConfigGroupResource: config.ConfigGroupResource, DesiredConfig: fixture.Hashed(config, "of another placement")},
		}},
		{PlacementRef: fixture.Placement("p").PlacementRef, ConfigReferences: []addonv1beta1.InstallConfigReference{
			{ConfigGroupResource: config.ConfigGroupResource, DesiredConfig: fixture.Hashed(config, "of the placement")},
		}},
	}
	addon := fixture.AddOn("c1", fixture.Desires(config, "of the add-on"))
	unread := State{Unread: "its manager reports it"}
	hash := func(cma *addonv1beta1.ClusterManagementAddOn, d DesiredConfig) string {
		return Inputs{AddOn: addon, CMA: cma, States: States{d.AddOnConfig: unread}}.hash(d)
	}
	assert.Equal(t, "of the default", hash(cma, DesiredConfig{config, FromDefaults, 0}))
	assert.Equal(t, "of the placement", hash(cma, DesiredConfig{config, FromPlacement, 1}))
	assert.Equal(t, "of the add-on", hash(cma, DesiredConfig{config, FromAddOn, 0}))
	assert.Empty(t, hash(cma, DesiredConfig{fixture.ConfigMap("unknown"), FromAddOn, 0}))
	assert.Empty(t, hash(fixture.NewCMA(nil, fixture.Placement("new")), DesiredConfig{config, FromPlacement, 0}))
}

// Shows: hub/unsupported-configuration
func TestAnAddOnIsNotHeldByWhatItDoesNotSupport(t *testing.T) {
	gone, template := fixture.DeploymentConfig("gone"), fixture.Template("t")
	missing := States{gone: {Missing: true}, template: {Hash: "h"}}
	for sentence, tc := range map[string]struct {
		supported, defaults, own        []addonv1beta1.AddOnConfig
		states                          States
		missing, unsupported, awaitsOwn bool
	}{
		"one of its own that it does not support holds nothing": {
			supported: []addonv1beta1.AddOnConfig{template}, own: []addonv1beta1.AddOnConfig{gone}, states: missing, unsupported: true,
		},
		"nor does one that cannot be used": {
			supported: []addonv1beta1.AddOnConfig{template}, own: []addonv1beta1.AddOnConfig{gone},
			states: States{gone: {Refused: "too large"}, template: {Hash: "h"}}, unsupported: true,
		},
		"one of its own that it supports holds it": {
			supported: []addonv1beta1.AddOnConfig{template, gone}, own: []addonv1beta1.AddOnConfig{gone}, states: missing,
			missing: true, awaitsOwn: true,
		},
		"one of its own holds it until it says what it supports": {
			own: []addonv1beta1.AddOnConfig{gone}, states: missing, missing: true, awaitsOwn: true,
		},
		"one of its author holds it": {
			supported: []addonv1beta1.AddOnConfig{template}, defaults: []addonv1beta1.AddOnConfig{gone}, states: missing, missing: true,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			addOn := fixture.AddOn("c")
			addOn.Spec.Configs = tc.own
			for _, config := range tc.supported {
				addOn.Status.SupportedConfigs = append(addOn.Status.SupportedConfigs, config.ConfigGroupResource)
			}
			target := NewTarget(Inputs{
				AddOn: addOn, CMA: fixture.NewCMA(append(tc.defaults, template)), Placement: -1, States: tc.states,
			})
			assert.Equal(t, tc.missing, len(target.Missing) > 0, "missing")
			assert.Equal(t, tc.unsupported, len(target.Unsupported) > 0, "unsupported")
			assert.Equal(t, tc.awaitsOwn, target.AwaitsOwn, "waits for what its own spec names")
		})
	}
}
