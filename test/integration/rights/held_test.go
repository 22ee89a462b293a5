package rights_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// heldMark begins the comment of a rule that is held only to be granted.
const heldMark = "Held to be granted: "

// stated is a rule as it is in a file, with the comment right above it.
type stated struct {
	role, comment string
	rule          rbacv1.PolicyRule
}

// readStated returns the rules of a YAML file.
func readStated(t *testing.T, file []byte) []stated {
	t.Helper()
	var all []stated
	for doc := range bytes.SplitSeq(file, []byte("\n---\n")) {
		var role rbacv1.ClusterRole
		require.NoError(t, yaml.Unmarshal(doc, &role))
		if !strings.HasSuffix(role.Kind, "Role") {
			continue
		}
		comment, seen := "", 0
		for line := range strings.Lines(string(doc)) {
			line = strings.TrimSpace(line)
			text, isComment := strings.CutPrefix(line, "#")
			switch {
			case isComment && strings.TrimSpace(text) == "":
				comment = ""
			case isComment:
				comment += strings.TrimPrefix(text, " ") + " "
			case strings.HasPrefix(line, "- apiGroups:"):
				require.Less(t, seen, len(role.Rules), role.Name)
				all = append(all, stated{role.Kind + " " + role.Name, comment, role.Rules[seen]})
				seen, comment = seen+1, ""
			default:
				comment = ""
			}
		}
		require.Len(t, role.Rules, seen, "%s: every rule begins with its API groups", role.Name)
	}
	return all
}

// heldAtoms are the keys of what is held only to be granted.
func heldAtoms(t *testing.T) map[string]bool {
	t.Helper()
	held := map[string]bool{}
	for _, file := range manifests.Hub() {
		for _, s := range readStated(t, file) {
			if !strings.HasPrefix(s.comment, heldMark) {
				continue
			}
			for _, a := range (grant{role: s.role, rules: []rbacv1.PolicyRule{s.rule}}).atoms() {
				held[a.String()] = true
			}
		}
	}
	return held
}

func TestEveryRuleHasItsReasonBesideIt(t *testing.T) {
	for _, file := range slices.Concat(manifests.Hub(), manifests.Klusterlet()) {
		for _, s := range readStated(t, file) {
			if s.role != executionRole { // It has one reason for all of its rules.
				assert.NotEmpty(t, s.comment, "%s: %v", s.role, s.rule)
			}
		}
	}
}

// TestWhatIsHeldToBeGrantedIsGranted: the API server lets the hub manager write only roles all of whose rights it
// holds. What is marked so is in a role that the hub manager made, without it that role could not be written, and the
// hub manager does not use it.
func TestWhatIsHeldToBeGrantedIsGranted(t *testing.T) {
	held := heldAtoms(t)
	require.NotEmpty(t, held)
	var manager grant
	for _, g := range recorded.grants {
		if g.role == managerRole && g.plane == fleet.HubName && g.namespace == "" {
			manager = g
		}
	}
	for _, a := range manager.atoms() {
		if !held[a.String()] {
			continue
		}
		granted := slices.ContainsFunc(recorded.grants, func(g grant) bool {
			return g.rendered() && slices.ContainsFunc(g.atoms(), func(b atom) bool {
				return b.verb == a.verb && b.group == a.group && b.resource == a.resource
			})
		})
		assert.True(t, granted, "%s: no role that the hub manager writes has this", a)
		same := 0
		for _, b := range manager.atoms() {
			if b == a {
				same++
			}
		}
		assert.Equal(t, 1, same, "%s: another rule of the role has this, so nobody would miss it", a)
		if a.resource == "events" {
			continue // Our own Events are counted up, too, if they happen again.
		}
		// At its start it tries, without effect, whether a policy refuses it a token of its own.
		assert.False(t, slices.ContainsFunc(recorded.requests, func(r request) bool {
			return manager.allows(a, r) && !r.dryRun
		}), "%s: the hub manager uses this", a)
	}
}

// rendered reports whether the hub manager made the role.
func (g grant) rendered() bool {
	return strings.Contains(g.role, "open-cluster-management:managedcluster:") || strings.HasSuffix(g.role, "-token-role")
}
