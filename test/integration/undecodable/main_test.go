// Package undecodable_test writes objects that the schemas of OCM allow and the Go types do not: on a hub with our
// definitions and policies, where the API server refuses them, and on one with the definitions of OCM and without our
// policies, where the hub manager goes on with all other objects.
package undecodable_test

import (
	"bytes"
	_ "embed"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/persona"
	"github.com/spokelet/spokelet/test/suite"
)

//go:embed testdata/objects.yaml
var objects []byte

// namespace is where the objects are, and the cluster of the same name.
const namespace = "undecodable"

// ours has our definitions and policies, theirs the definitions of OCM and no policies.
var ours, theirs *suite.Plane

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		space := []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: " + namespace + "}\n")
		ours = suite.Start(t, sandbox.Options{Name: "undecodable-ours"}, manifests.CRDs(), manifests.SpokeCRDs(),
			manifests.Hub(), [][]byte{space, persona.Documents()})
		ours.AwaitPolicies(t)
		definitions, err := suite.DefinitionsOfOCM(t.Context())
		require.NoError(t, err)
		theirs = suite.Start(t, sandbox.Options{Name: "undecodable-theirs"}, withoutFormats(definitions),
			manifests.Klusterlet(), withoutPolicies(), [][]byte{space})
	})
}

// withoutFormats returns definitions as API servers before 1.37 read them. Those ignore that a number has 32 bits, and what
// they stored stays when they are upgraded.
func withoutFormats(definitions [][]byte) [][]byte {
	format := regexp.MustCompile(`(?m)^ *format: int32\n`)
	var all [][]byte
	for _, definition := range definitions {
		all = append(all, format.ReplaceAll(definition, nil))
	}
	return all
}

// withoutPolicies returns what the hub manager needs but for policies.
func withoutPolicies() [][]byte {
	return slices.DeleteFunc(manifests.Hub(), func(file []byte) bool {
		return slices.ContainsFunc(manifests.Policies(), func(policy []byte) bool { return bytes.Equal(file, policy) })
	})
}
