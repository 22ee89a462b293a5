package fleet

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// interner keeps one copy of each text: most texts of 60,000 add-ons are the same ones.
type interner map[string]string

// text returns the copy that is kept of a text. Each one has memory of its own when it was decoded.
func (in interner) text(s *string) {
	if kept, is := in[*s]; is {
		*s = kept
		return
	}
	in[*s] = *s
}

// conditions keeps the texts of conditions, and no place for more of them.
func (in interner) conditions(all []metav1.Condition) []metav1.Condition {
	fit := make([]metav1.Condition, len(all))
	copy(fit, all)
	for i := range fit {
		c := &fit[i]
		status := string(c.Status)
		in.text(&status)
		c.Status = metav1.ConditionStatus(status)
		in.text(&c.Type)
		in.text(&c.Reason)
		in.text(&c.Message)
	}
	return fit
}

// interned is an object whose texts are kept once.
type interned interface{ intern(in interner) }

func (c *Cluster) intern(in interner) { c.Status.Conditions = in.conditions(c.Status.Conditions) }

func (a *AddOn) intern(in interner) {
	a.Status.Conditions = in.conditions(a.Status.Conditions)
	in.text(&a.Metadata.Name)
	in.text(&a.Metadata.Namespace)
	in.text(&a.Status.Namespace)
	for i := range a.Status.ConfigReferences {
		config := &a.Status.ConfigReferences[i]
		in.text(&config.Resource)
		in.text(&config.Group)
		for _, of := range []*SpecHash{config.Desired, config.Applied} {
			if of != nil {
				in.text(&of.Namespace)
				in.text(&of.Name)
				in.text(&of.SpecHash)
			}
		}
	}
}
