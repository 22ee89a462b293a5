package confighash_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/confighash"
)

func TestMap(t *testing.T) {
	desired := func(namespace, name, hash string) *addonv1beta1.ConfigSpecHash {
		return &addonv1beta1.ConfigSpecHash{
			ConfigReferent: addonv1beta1.ConfigReferent{Namespace: namespace, Name: name}, SpecHash: hash,
		}
	}
	references := []addonv1beta1.ConfigReference{
		{ConfigGroupResource: addonv1beta1.ConfigGroupResource{Group: "g", Resource: "r"}, DesiredConfig: desired("", "n", "1")},
		{ConfigGroupResource: addonv1beta1.ConfigGroupResource{Resource: "configmaps"}, DesiredConfig: desired("ns", "n", "2")},
		{ConfigGroupResource: addonv1beta1.ConfigGroupResource{Resource: "secrets"}},
	}
	assert.Equal(t, map[string]string{"r.g//n": "1", "configmaps/ns/n": "2"}, confighash.Map(references))
	assert.Empty(t, confighash.Map(nil))
}
