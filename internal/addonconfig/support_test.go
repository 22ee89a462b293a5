package addonconfig

import (
	"testing"

	"github.com/stretchr/testify/assert"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// Shows: hub/config-order
func TestTheOrderOfConfigurationsOfAKindIsPartOfTheTarget(t *testing.T) {
	ref := func(kind, name, hash string) addonv1beta1.ConfigReference {
		return addonv1beta1.ConfigReference{
			ConfigGroupResource: addonv1beta1.ConfigGroupResource{Resource: kind},
			DesiredConfig: &addonv1beta1.ConfigSpecHash{
				ConfigReferent: addonv1beta1.ConfigReferent{Name: name}, SpecHash: hash,
			},
		}
	}
	type list = []addonv1beta1.ConfigReference
	without := addonv1beta1.ConfigReference{ConfigGroupResource: addonv1beta1.ConfigGroupResource{Resource: "a"}}
	have := list{ref("a", "x", "1"), ref("b", "y", "2"), ref("a", "z", "3")}
	for sentence, tc := range map[string]struct {
		other list
		want  bool
	}{
		"the same":                        {list{ref("a", "x", "1"), ref("b", "y", "2"), ref("a", "z", "3")}, true},
		"kinds may be in any order":       {list{ref("b", "y", "2"), ref("a", "x", "1"), ref("a", "z", "3")}, true},
		"the configs of a kind may not":   {list{ref("a", "z", "3"), ref("b", "y", "2"), ref("a", "x", "1")}, false},
		"another content":                 {list{ref("a", "x", "1"), ref("b", "y", "4"), ref("a", "z", "3")}, false},
		"another name":                    {list{ref("a", "w", "1"), ref("b", "y", "2"), ref("a", "z", "3")}, false},
		"one less":                        {list{ref("a", "x", "1"), ref("b", "y", "2")}, false},
		"one of another kind in place":    {list{ref("a", "x", "1"), ref("b", "y", "2"), ref("b", "z", "3")}, false},
		"one that says nothing is no one": {list{without, ref("b", "y", "2"), ref("a", "z", "3")}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, tc.want, SameDesired(have, tc.other))
			assert.Equal(t, tc.want, SameDesired(tc.other, have))
		})
	}
	assert.True(t, SameDesired(nil, list{}))
}
