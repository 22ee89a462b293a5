package ship_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// What remains must be what remains: the works of klusterlet-without-rights count in the namespaces that are named, and a
// policy bounds the texts in statuses.
func TestTheSecurityPageSaysWhatTheManifestsDo(t *testing.T) {
	page := strings.Join(strings.Fields(string(read(t, "docs/security.md"))), " ")
	assert.NotContains(t, page, "`klusterlet-without-rights` allows workloads in all namespaces",
		"manifests/overlays/klusterlet-without-rights/work-namespaces.yaml binds the role in one")
	assert.NotContains(t, page, "policies bound how many entries there are, not how long each is",
		"manifests/hub/policies/statuses.yaml: 131072 characters")
}
