package configure

import (
	"testing"

	"github.com/stretchr/testify/assert"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
)

// An add-on that another one brings along has a template and a configuration, with hashes of before. A placement gave it
// both where it was one that placements dropped.
//
// Shows: policies/depends-brings-kept
func TestWhatIsBroughtAlongKeepsOnlyWhatAPlacementGave(t *testing.T) {
	tmpl, cfg, mine := fixture.Template("t"), fixture.DeploymentConfig("d"), fixture.DeploymentConfig("mine")
	gave := func(references ...addonv1beta1.ConfigReference) string {
		return addonconfig.ContentsOf(references).String()
	}
	both := gave(fixture.Has(cfg, "c1"), fixture.Has(tmpl, "v1"))
	for sentence, tc := range map[string]struct {
		gave     string
		has      addonv1beta1.AddOnConfig
		defaults []addonv1beta1.AddOnConfig
		keeps    bool
	}{
		"a placement gave it, and there is no default":          {gave: both, has: cfg, keeps: true},
		"a placement gave it, and a default lacks":              {gave: both, has: cfg, defaults: []addonv1beta1.AddOnConfig{tmpl}, keeps: true},
		"a placement gave it, and there are defaults":           {gave: both, has: cfg, defaults: []addonv1beta1.AddOnConfig{tmpl, cfg}},
		"the defaults gave it, and lose one":                    {has: cfg, defaults: []addonv1beta1.AddOnConfig{tmpl}},
		"its own spec named it":                                 {has: mine, defaults: []addonv1beta1.AddOnConfig{tmpl}},
		"its own spec named it in the place of a placement":     {gave: gave(fixture.Has(tmpl, "v1")), has: mine, defaults: []addonv1beta1.AddOnConfig{tmpl}},
		"it got a default since a placement gave it another":    {gave: gave(fixture.Has(cfg, "c0")), has: cfg, defaults: []addonv1beta1.AddOnConfig{tmpl}},
		"a person wrote something else into what is remembered": {gave: "x", has: cfg, defaults: []addonv1beta1.AddOnConfig{tmpl}},
	} {
		t.Run(sentence, func(t *testing.T) {
			addOn := fixture.With(fixture.AddOn("a", fixture.Has(tc.has, "c1"), fixture.Has(tmpl, "v1")), fixture.IsTrue("Configured"))
			addOn.Labels = map[string]string{names.LabelInstalledBy: names.InstalledByDependency}
			addOn.Annotations = map[string]string{names.AnnotationPlacementGave: tc.gave}
			f := facts{addOn: addOn, cma: fixture.NewCMA(tc.defaults, fixture.Placement("elsewhere", tmpl, cfg)), placement: -1,
				states: addonconfig.States{tmpl: {Hash: "v2"}, cfg: {Hash: "c2"}}}
			f.planned, f.admission = (&Configurer{}).admission(f)
			decided := decide(f)
			if tc.keeps {
				assert.Equal(t, addOn.Status.ConfigReferences, decided.references)
				assert.Contains(t, decided.configured.Message, "brings this one along")
				return
			}
			assert.Len(t, decided.references, len(tc.defaults))
			for _, r := range decided.references {
				assert.Contains(t, []string{"v2", "c2"}, r.DesiredConfig.SpecHash)
			}
		})
	}
}
