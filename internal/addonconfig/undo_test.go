package addonconfig_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// content is a content of configurations.
func content(references ...addonv1beta1.ConfigReference) []addonconfig.Chosen {
	all := []addonconfig.Chosen{}
	for _, r := range references {
		all = append(all, addonconfig.Chosen{ConfigGroupResource: r.ConfigGroupResource, ConfigSpecHash: *r.DesiredConfig})
	}
	return all
}

// said are names and hashes of contents.
func said(all []addonconfig.Chosen) string {
	var texts []string
	for _, c := range all {
		texts = append(texts, c.Name+"@"+c.SpecHash)
	}
	return strings.Join(texts, " ")
}

// applied is a reference to content "bad" where another one was applied last.
func applied(config addonv1beta1.AddOnConfig, last string) addonv1beta1.ConfigReference {
	r := fixture.Desires(config, "bad")
	r.LastAppliedConfig = fixture.Hashed(config, last)
	return r
}

func TestWhatAClusterReturnsTo(t *testing.T) {
	tmpl, other, cfg := fixture.Template("t"), fixture.Template("u"), fixture.DeploymentConfig("d")
	onlyTemplate := []addonv1beta1.AddOnConfig{tmpl}
	before := [][]addonconfig.Chosen{content(fixture.Desires(tmpl, "one")), content(fixture.Desires(tmpl, "zero"))}
	renamed := [][]addonconfig.Chosen{content(fixture.Desires(other, "one"))}
	withConfig := [][]addonconfig.Chosen{content(fixture.Desires(cfg, "d"), fixture.Desires(tmpl, "one"))}
	for sentence, tc := range map[string]struct {
		how  addonconfig.Undo
		has  []addonv1beta1.ConfigReference
		own  []addonv1beta1.AddOnConfig
		to   string
		none bool
	}{
		"one that failed returns to what it had, not to what all had": {
			how: addonconfig.Undo{Failed: true, Completed: before},
			has: []addonv1beta1.ConfigReference{applied(tmpl, "half")}, to: "t@half",
		},
		"all return to what all had": {
			how: addonconfig.Undo{Completed: before},
			has: []addonv1beta1.ConfigReference{applied(tmpl, "half")}, to: "t@one",
		},
		"all return to what each had, where it is not known what all had": {
			has: []addonv1beta1.ConfigReference{applied(tmpl, "half")}, to: "t@half",
		},
		"one that failed with it after it was complete returns to what all had": {
			how: addonconfig.Undo{Failed: true, Completed: before},
			has: []addonv1beta1.ConfigReference{fixture.Has(tmpl, "bad")}, to: "t@one",
		},
		"one that never had a template of this name returns to that of the other name": {
			how: addonconfig.Undo{Failed: true, Completed: renamed},
			has: []addonv1beta1.ConfigReference{fixture.Desires(tmpl, "bad")}, to: "u@one",
		},
		"what was applied is not all of what it had, where a kind went with the content": {
			how: addonconfig.Undo{Failed: true, Completed: withConfig},
			has: []addonv1beta1.ConfigReference{applied(tmpl, "one")}, to: "d@d t@one",
		},
		"a kind that the add-on names itself does not count": {
			how: addonconfig.Undo{Failed: true, Completed: withConfig}, own: []addonv1beta1.AddOnConfig{cfg},
			has: []addonv1beta1.ConfigReference{fixture.Has(cfg, "own"), applied(tmpl, "half")}, to: "t@half",
		},
		"one that failed and returned stays where it is": {
			how: addonconfig.Undo{Failed: true, Completed: before},
			has: []addonv1beta1.ConfigReference{fixture.Desires(tmpl, "half")}, to: "t@half",
		},
		"one that never got it gets what all had": {
			how: addonconfig.Undo{Completed: before}, has: []addonv1beta1.ConfigReference{fixture.Has(tmpl, "old")}, to: "t@one",
		},
		"one that never got it keeps what it has, where it is not known what all had": {
			has: []addonv1beta1.ConfigReference{fixture.Has(tmpl, "old")}, to: "t@old",
		},
		"a new one gets what all had":                    {how: addonconfig.Undo{Completed: before}, to: "t@one"},
		"a new one gets nothing where nothing completed": {none: true},
		"nothing is known where it was the first": {
			how: addonconfig.Undo{Failed: true}, has: []addonv1beta1.ConfigReference{fixture.Desires(tmpl, "bad")}, none: true,
		},
		"nothing is known where only it was applied": {
			has: []addonv1beta1.ConfigReference{fixture.Has(tmpl, "bad")}, none: true,
		},
		"all return to no configuration at all, where that completed": {
			how: addonconfig.Undo{Completed: [][]addonconfig.Chosen{{}}},
			has: []addonv1beta1.ConfigReference{fixture.Has(tmpl, "bad")},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			addOn := fixture.AddOn("c", tc.has...)
			addOn.Spec.Configs = tc.own
			undone := addonconfig.NewTarget(addonconfig.Inputs{
				AddOn: addOn, CMA: fixture.NewCMA(nil, fixture.Placement("p", onlyTemplate...)),
				States: addonconfig.States{tmpl: {Hash: "bad"}, cfg: {Hash: "own"}},
			})
			to, known := tc.how.Return(undone, addOn.Status.ConfigReferences)
			assert.Equal(t, !tc.none, known)
			assert.Equal(t, tc.to, said(to))
		})
	}
}

func TestATargetThatIsReturnedToIsAppliedWhenItIsInPlaceAgain(t *testing.T) {
	tmpl, cfg := fixture.Template("t"), fixture.DeploymentConfig("d")
	addOn := fixture.AddOn("c", fixture.Has(cfg, "own"), applied(tmpl, "one"))
	addOn.Spec.Configs = []addonv1beta1.AddOnConfig{cfg}
	wanted := addonconfig.NewTarget(addonconfig.Inputs{
		AddOn: addOn, CMA: fixture.NewCMA(nil, fixture.Placement("p", tmpl)),
		States: addonconfig.States{tmpl: {Hash: "bad"}, cfg: {Hash: "own"}},
	})
	back := wanted.Instead(content(fixture.Desires(cfg, "all"), fixture.Desires(tmpl, "one")), addOn.Status.ConfigReferences)
	assert.Equal(t, []addonv1beta1.ConfigReference{fixture.Has(cfg, "own"), fixture.Desires(tmpl, "one")}, back.References)
	assert.False(t, back.Admitted(addOn))
	assert.Equal(t, "t@one", said(back.ContentsOfRollout()))

	there := fixture.AddOn("c", fixture.Has(cfg, "own"), fixture.Has(tmpl, "one"))
	back = wanted.Instead(content(fixture.Desires(tmpl, "one")), there.Status.ConfigReferences)
	assert.Equal(t, there.Status.ConfigReferences, back.References, "what is in place stays applied")
	assert.True(t, back.Admitted(there))
}
