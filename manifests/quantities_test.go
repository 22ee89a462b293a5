package manifests_test

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/spokelet/spokelet/manifests"
)

// The definitions of OCM allow any exponent of a quantity. To read 1e-2147483640 takes all memory and never ends, and
// nothing interrupts it. The administrator of a namespace who lets an add-on have such an AddOnDeploymentConfig stops
// the hub manager, also after a restart. Our definitions bound the exponent; on a hub with those of OCM a policy must.
// Shows: security/filled-objects
func TestEveryKindWithAQuantityHasAPolicyThatBoundsIt(t *testing.T) {
	policies := bytes.Join(manifests.Hub(), []byte("\n---\n"))
	kind := regexp.MustCompile(`(?m)^    plural: (\S+)$`)
	for _, definition := range manifests.CRDs() {
		if !bytes.Contains(definition, []byte("numkMGTPE")) {
			continue
		}
		found := kind.FindSubmatch(definition)
		if !assert.NotNil(t, found) {
			continue
		}
		policy := string(found[1]) + "-bounds.spokelet.io"
		assert.True(t, bytes.Contains(policies, []byte(policy)), "on a hub with the definitions of OCM there is no policy %s", policy)
	}
}
