package rollout

import (
	"testing"

	"github.com/stretchr/testify/assert"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonapi"
)

func TestWishes(t *testing.T) {
	reserved := template(addonapi.ReservedNoDefault)
	type configs = []addonv1beta1.AddOnConfig
	tests := map[string]struct {
		defaults, placement, own configs
		want                     []wish
	}{
		"nothing is asked for": {},
		"defaults stand when nothing else is asked for, without the reserved name and the empty one": {
			defaults: configs{template("t"), reserved, {ConfigGroupResource: configMap("").ConfigGroupResource}},
			want:     []wish{{template("t"), fromDefaults}},
		},
		"the placement replaces the whole resource of the defaults and leaves others": {
			defaults:  configs{template("t"), deployment("d")},
			placement: configs{deployment("p1"), deployment("p2")},
			want: []wish{
				{deployment("p1"), fromPlacement}, {deployment("p2"), fromPlacement}, {template("t"), fromDefaults},
			},
		},
		"the add-on replaces the placement": {
			defaults:  configs{deployment("d")},
			placement: configs{deployment("p1"), deployment("p2")},
			own:       configs{deployment("p1")},
			want:      []wish{{deployment("p1"), fromAddOn}},
		},
		"duplicates count once and the order within a resource is that of the list": {
			own: configs{deployment("z"), template("t"), deployment("a"), deployment("z")},
			want: []wish{
				{deployment("z"), fromAddOn}, {deployment("a"), fromAddOn}, {template("t"), fromAddOn},
			},
		},
		"resources are ordered by group, then name": {
			own:  configs{template("t"), deployment("d"), configMap("c")},
			want: []wish{{configMap("c"), fromAddOn}, {deployment("d"), fromAddOn}, {template("t"), fromAddOn}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cma := management(test.defaults, placement("p", test.placement...))
			assert.Equal(t, test.want, wishes(cma, 0, test.own))
		})
	}
}

func TestWishesOfAnAddOnWithoutAPlacement(t *testing.T) {
	cma := management([]addonv1beta1.AddOnConfig{deployment("d")}, placement("p", deployment("p")))
	assert.Equal(t, []wish{{deployment("d"), fromDefaults}}, wishes(cma, -1, nil))
}

func TestHashOfAForeignConfig(t *testing.T) {
	config := configMap("c")
	cma := management(nil, placement("other"), placement("p"))
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
	found := findings{config: {foreign: true}, configMap("unknown"): {foreign: true}}
	assert.Equal(t, "of the default", found.hash(wish{config, fromDefaults}, cma, 1, addon))
	assert.Equal(t, "of the placement", found.hash(wish{config, fromPlacement}, cma, 1, addon))
	assert.Equal(t, "of the add-on", found.hash(wish{config, fromAddOn}, cma, 1, addon))
	assert.Empty(t, found.hash(wish{configMap("unknown"), fromAddOn}, cma, 1, addon))
	assert.Empty(t, found.hash(wish{config, fromPlacement}, management(nil, placement("new")), 0, addon))
}
