package fleet

import "github.com/spokelet/spokelet/internal/intern"

// shares is an object that shares its equal texts with others: most texts of 60,000 add-ons are the same ones.
type shares interface{ share(t *intern.Table) }

func (c *Cluster) share(t *intern.Table) {
	c.Status.Conditions = intern.Clip(c.Status.Conditions)
	t.Conditions(c.Status.Conditions)
}

func (a *AddOn) share(t *intern.Table) {
	a.Status.Conditions = intern.Clip(a.Status.Conditions)
	t.Conditions(a.Status.Conditions)
	t.Strings(&a.Metadata.Name, &a.Metadata.Namespace, &a.Status.Namespace)
	for i := range a.Status.ConfigReferences {
		config := &a.Status.ConfigReferences[i]
		t.Strings(&config.Resource, &config.Group)
		for _, of := range []*SpecHash{config.Desired, config.Applied} {
			if of != nil {
				t.Strings(&of.Namespace, &of.Name, &of.SpecHash)
			}
		}
	}
}
