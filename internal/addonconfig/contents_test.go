package addonconfig

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

func TestContentsAreReadFromAMessage(t *testing.T) {
	refs := []addonv1beta1.ConfigReference{
		fixture.Has(fixture.Template("t"), "new"), fixture.Desires(fixture.DeploymentConfig(strings.Repeat("n", 253)), "r"),
		fixture.Desires(fixture.DeploymentConfig("a]"), "x [y-z]"), {ConfigGroupResource: fixture.ConfigMap("").ConfigGroupResource},
	}
	contents := ContentsOf(refs)
	assert.Len(t, contents, 3, "one for each kind")
	assert.Equal(t, contents, ReadContents("of [something]; the rollout gave "+contents.String()))
	assert.Less(t, len(contents.String()), 100, "whatever the names and hashes are")
	assert.Equal(t, Contents{}, ReadContents("the rollout gave "+ContentsOf(nil).String()))
	for _, message := range []string{"", "nothing", "]", "[a-b] more", "a-b]", "[a b]"} {
		assert.Nil(t, ReadContents(message), message)
	}
}

func TestWhetherATargetGivesContents(t *testing.T) {
	type refs = []addonv1beta1.ConfigReference
	tmpl, rolled, x := fixture.Template("t"), fixture.DeploymentConfig("rolled"), fixture.DeploymentConfig("x")
	states := States{tmpl: {Hash: "t"}, rolled: {Hash: "r"}, x: {Hash: "x"}, fixture.Template("own"): {Hash: "o"}}
	cma := fixture.NewCMA(nil, fixture.Placement("p", tmpl, rolled))
	withX := fixture.AddOn("c")
	withX.Spec.Configs = []addonv1beta1.AddOnConfig{x}
	for sentence, tc := range map[string]struct {
		own      []addonv1beta1.AddOnConfig
		contents Contents
		want     bool
	}{
		"the same, in another order": {nil, ContentsOf(refs{fixture.Desires(rolled, "r"), fixture.Has(tmpl, "t")}), true},
		"another hash":               {nil, ContentsOf(refs{fixture.Desires(rolled, "r"), fixture.Has(tmpl, "old")}), false},
		"another name":               {nil, ContentsOf(refs{fixture.Desires(x, "r"), fixture.Has(tmpl, "t")}), false},
		"one less":                   {nil, ContentsOf(refs{fixture.Has(tmpl, "t")}), false},
		"one more":                   {nil, ContentsOf(refs{fixture.Has(tmpl, "t"), fixture.Desires(rolled, "r"), fixture.Desires(x, "x")}), false},
		"what the rollout gives in place of that of the add-on": {[]addonv1beta1.AddOnConfig{x}, ContentsOf(refs{fixture.Has(tmpl, "t"), fixture.Desires(rolled, "r")}), true},
		"another content in place of that of the add-on":        {[]addonv1beta1.AddOnConfig{x}, ContentsOf(refs{fixture.Has(tmpl, "t"), fixture.Desires(rolled, "s")}), false},
		"that of the add-on":                     {[]addonv1beta1.AddOnConfig{x}, ContentsOf(refs{fixture.Has(tmpl, "t"), fixture.Desires(x, "x")}), false},
		"another hash of a kind of the rollout":  {[]addonv1beta1.AddOnConfig{x}, ContentsOf(refs{fixture.Has(tmpl, "old"), fixture.Desires(rolled, "r")}), false},
		"those of when the add-on named its own": {nil, NewTarget(Inputs{AddOn: withX, CMA: cma, States: states}).Contents(refs{fixture.Has(tmpl, "t"), fixture.Desires(x, "x")}), true},
		"a kind that only the add-on names":      {[]addonv1beta1.AddOnConfig{fixture.ConfigMap("c")}, ContentsOf(refs{fixture.Has(tmpl, "t"), fixture.Desires(rolled, "r")}), true},
		"unknown contents":                       {nil, nil, false},
		"unknown contents, and all of its own":   {[]addonv1beta1.AddOnConfig{x, fixture.Template("own")}, nil, false},
		"none, and all of its own":               {[]addonv1beta1.AddOnConfig{x, fixture.Template("own")}, Contents{}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			addOn := fixture.AddOn("c")
			addOn.Spec.Configs = tc.own
			target := NewTarget(Inputs{AddOn: addOn, CMA: cma, States: states})
			assert.Equal(t, len(tc.own) > 0, target.HasOwn())
			assert.Equal(t, tc.want, target.Gives(tc.contents))
		})
	}
}
