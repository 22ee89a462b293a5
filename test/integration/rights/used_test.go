package rights_test

import (
	"testing"
)

func unexpectedDenials(all []request) []string {
	var out []string
	seen := map[string]bool{}
	for _, r := range all {
		if r.denied && isOurs(r.user) {
			s := r.String() + ": " + r.answer
			if !seen[s] {
				seen[s] = true
				out = append(out, s)
			}
		}
	}
	return out
}

func TestEveryRuleIsUsed(t *testing.T) {
	for _, d := range unexpectedDenials(recorded.requests) {
		t.Errorf("denied %s", d)
	}
	for _, g := range recorded.grants {
		for _, a := range g.atoms() {
			used := false
			for _, r := range recorded.requests {
				if g.allows(a, r) {
					used = true
					break
				}
			}
			if !used {
				t.Errorf("unused %s", a)
			}
		}
	}
}
