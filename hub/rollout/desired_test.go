package rollout

import (
	"testing"

	"github.com/stretchr/testify/assert"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonapi"
)

func TestWantedConfigs(t *testing.T) {
	reserved := template(addonapi.ReservedNoDefault)
	type configs = []addonv1beta1.AddOnConfig
	tests := map[string]struct {
		defaults, placement, own configs
		want                     []wantedConfig
	}{
		"nothing is asked for": {},
		"defaults stand when nothing else is asked for, without the reserved name and the empty one": {
			defaults: configs{template("t"), reserved, {ConfigGroupResource: configMap("").ConfigGroupResource}},
			want:     []wantedConfig{{template("t"), fromDefaults, 0}},
		},
		"the placement replaces the whole resource of the defaults and leaves others": {
			defaults:  configs{template("t"), deployment("d")},
			placement: configs{deployment("p1"), deployment("p2")},
			want: []wantedConfig{
				{deployment("p1"), fromPlacement, 0}, {deployment("p2"), fromPlacement, 0}, {template("t"), fromDefaults, 0},
			},
		},
		"the add-on replaces the placement": {
			defaults:  configs{deployment("d")},
			placement: configs{deployment("p1"), deployment("p2")},
			own:       configs{deployment("p1")},
			want:      []wantedConfig{{deployment("p1"), fromAddOn, 0}},
		},
		"duplicates count once and the order within a resource is that of the list": {
			own: configs{deployment("z"), template("t"), deployment("a"), deployment("z")},
			want: []wantedConfig{
				{deployment("z"), fromAddOn, 0}, {deployment("a"), fromAddOn, 0}, {template("t"), fromAddOn, 0},
			},
		},
		"resources are ordered by group, then name": {
			own:  configs{template("t"), deployment("d"), configMap("c")},
			want: []wantedConfig{{configMap("c"), fromAddOn, 0}, {deployment("d"), fromAddOn, 0}, {template("t"), fromAddOn, 0}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cma := newCMA(test.defaults, placement("p", test.placement...))
			assert.Equal(t, test.want, wantedConfigs(cma, 0, test.own))
		})
	}
}

func TestWantedConfigsOfAnAddOnWithoutAPlacement(t *testing.T) {
	cma := newCMA([]addonv1beta1.AddOnConfig{deployment("d")}, placement("p", deployment("p")))
	assert.Equal(t, []wantedConfig{{deployment("d"), fromDefaults, 0}}, wantedConfigs(cma, -1, nil))
}

func TestHashOfAForeignConfig(t *testing.T) {
	config := configMap("c")
	cma := newCMA(nil, placement("other"), placement("p"))
	cma.Status.DefaultConfigReferences = []addonv1beta1.DefaultConfigReference{
		{ConfigGroupResource: config.ConfigGroupResource},
		{ConfigGroupResource: config.ConfigGroupResource, DesiredConfig: hashed(config, "of the default")},
	}
	cma.Status.InstallProgressions = []addonv1beta1.InstallProgression{
		{PlacementRef: placement("other").PlacementRef, ConfigReferences: []addonv1beta1.InstallConfigReference{
			{ConfigGroupResource: config.ConfigGroupResource, DesiredConfig: hashed(config, "of another placement")},
		}},
		{PlacementRef: placement("p").PlacementRef, ConfigReferences: []addonv1beta1.InstallConfigReference{
			{ConfigGroupResource: config.ConfigGroupResource, DesiredConfig: hashed(config, "of the placement")},
		}},
	}
	addon := addOn("c1", desires(config, "of the add-on"))
	found := configStates{config: {foreign: true}, configMap("unknown"): {foreign: true}}
	assert.Equal(t, "of the default", found.hash(wantedConfig{config, fromDefaults, 0}, cma, addon))
	assert.Equal(t, "of the placement", found.hash(wantedConfig{config, fromPlacement, 1}, cma, addon))
	assert.Equal(t, "of the add-on", found.hash(wantedConfig{config, fromAddOn, 0}, cma, addon))
	assert.Empty(t, found.hash(wantedConfig{configMap("unknown"), fromAddOn, 0}, cma, addon))
	assert.Empty(t, found.hash(wantedConfig{config, fromPlacement, 0}, newCMA(nil, placement("new")), addon))
}
