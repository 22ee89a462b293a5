package configure

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
)

// An add-on without a default configuration: a placement names one. The placement drops the cluster, and another add-on
// brings the add-on along, so that it stays with label installed-by: dependency. It must not lose what it runs with.
func TestWhatAPlacementDropsAndAnotherAddOnBringsKeepsItsContent(t *testing.T) {
	tmpl := fixture.Template("t")
	addOn := fixture.With(fixture.AddOn("a", fixture.Has(tmpl, "v1")), fixture.IsTrue("Configured"))
	addOn.Labels = map[string]string{names.LabelInstalledBy: names.InstalledByDependency}
	f := facts{addOn: addOn, cma: fixture.NewCMA(nil, fixture.Placement("p", tmpl)), placement: -1,
		states: addonconfig.States{tmpl: {Hash: "v1"}}}
	c := &Configurer{}
	f.planned, f.admission = c.admission(f)
	decided := decide(f)
	assert.NotEmpty(t, decided.references, "the add-on on which others depend loses all that it runs with")
	assert.Contains(t, decided.configured.Message, "brings this one along")
}
