package attacks_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/persona"
	"github.com/spokelet/spokelet/test/suite"
)

// answered are the attacks that the API server answers by itself, by rights and policies, so that they must fail
// whatever else is true of the hub.
func answered() map[string]func(*testing.T) {
	return map[string]func(*testing.T){
		"the token of the hub manager":                        TestTheTokenOfTheHubManagerIsOfNoFurtherUse,
		"the token of the hub manager, as others":             TestTheHubManagerPassesAsNobodyElse,
		"the token of the hub manager, to delete":             TestTheTokenOfTheHubManagerDeletesNothingOfOthers,
		"the token of the hub manager, to write":              TestTheTokenOfTheHubManagerWritesOnlyItsOwnAccountsAndLeases,
		"the token of the hub manager, on definitions":        TestTheTokenOfTheHubManagerCannotChangeDefinitions,
		"the token of the hub manager, on webhooks":           TestTheTokenOfTheHubManagerCannotWriteWebhookConfigurations,
		"an agent, on what its add-on runs with":              TestAnAgentCannotChooseWhatAnAddOnRunsWith,
		"an agent, on labels and taints":                      TestAnAgentCannotChooseTheLabelsOrTaintsOfItsCluster,
		"an agent, by owners":                                 TestAnAgentCannotHaveWhatItIsGivenDeletedByAnOwner,
		"an agent, on its works":                              TestAnAgentCannotChangeTheWorksThatItIsGiven,
		"whoever leads to another cluster":                    TestNobodyWritesWhatLeadsToAnotherCluster,
		"the administrator of a namespace, on configurations": TestTheAdministratorOfANamespaceCannotUseTheConfigurationsOfOthers,
	}
}

// leave leaves the hub manager alone.
func leave(*suite.Program) {}

// elsewhere tries them on a hub of its own, which the documents make; before says what happens to its hub manager then.
// No test that runs at the same time sees that.
func elsewhere(t *testing.T, name string, before func(manager *suite.Program), docs ...[][]byte) {
	t.Helper()
	plane := suite.Start(t, sandbox.Options{Name: name}, append(docs, [][]byte{addons, rights, persona.Documents()})...)
	manager := suite.StartHub(t, plane, func(c *hub.Config) { c.AutoApprovedCSRUsers = []string{trustedUser} })
	other, err := newWorld(t.Context(), plane)
	require.NoError(t, err)
	usual := shared.world
	t.Cleanup(func() { shared.world = usual })
	shared.world = other
	before(manager)
	for sentence, attack := range answered() {
		t.Run(sentence, attack)
	}
}

// Shows: security/attacks-without-the-manager
func TestTheSameAttacksFailWhileTheHubManagerIsDown(t *testing.T) {
	elsewhere(t, "down", (*suite.Program).Stop, manifests.CRDs(), manifests.Hub())
}

// Shows: security/attacks-with-definitions-of-ocm
func TestTheSameAttacksFailOnAHubWithTheDefinitionsOfOCM(t *testing.T) {
	definitions, err := suite.DefinitionsOfOCM(t.Context())
	require.NoError(t, err)
	elsewhere(t, "definitions", leave, definitions, ownKinds(), manifests.Hub())
}

// ownKinds are the definitions of kinds that OCM does not have, and that the attacks are tried on as well.
func ownKinds() [][]byte {
	return slices.DeleteFunc(manifests.CRDs(), func(definition []byte) bool {
		return !bytes.Contains(definition, []byte("group: addon.spokelet.io"))
	})
}

// Shows: security/attacks-after-an-upgrade
func TestTheSameAttacksFailAfterAnUpgrade(t *testing.T) {
	// What manifests/hub was before clusters stopped being one zone of trust; much of it stays on a hub that is upgraded.
	former, err := os.ReadFile(filepath.Join("testdata", "former", "hub.yaml"))
	require.NoError(t, err)
	elsewhere(t, "upgraded", leave, manifests.CRDs(), [][]byte{former}, manifests.Hub())
}
