package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// pathAddOnPolicies is where AddOnPolicies are.
const pathAddOnPolicies = "/apis/addon.spokelet.io/v1alpha1/addonpolicies"

// ruleCase is a policy, a command about it, and what that says and writes; nothing for no write.
type ruleCase struct {
	policy map[string]any
	args   []string
	status int
	says   string
	writes string
}

func (c ruleCase) play(t *testing.T) {
	h := ruled(c.policy)
	got := plays(t, h, append([]string{"rollout"}, c.args...)...)
	assert.Equal(t, c.status, got.status, got.errs)
	assert.Contains(t, got.out+got.errs, c.says)
	if c.writes == "" {
		assert.Empty(t, h.written)
		return
	}
	assert.Equal(t, []string{c.writes}, h.written)
}

// ruled is a hub with the AddOnPolicy of an add-on; nil for none.
func ruled(policy map[string]any) *hub {
	h := &hub{lists: map[string][]map[string]any{pathAddOnPolicies: {}}}
	if policy != nil {
		h.lists[pathAddOnPolicies] = append(h.lists[pathAddOnPolicies], policy)
	}
	return h
}

// addOnPolicy is the policy of add-on logs with a spec and a status about it.
func addOnPolicy(spec, status map[string]any) map[string]any {
	p := of("", "logs")
	part(p, "metadata")["uid"] = "u"
	if status == nil {
		status = map[string]any{}
	}
	status["observedGeneration"] = 1
	p["spec"], p["status"] = spec, status
	return p
}

func content(name string, approved bool) map[string]any {
	return map[string]any{"name": name, "clusters": 3, "approved": approved, "configurations": []any{"addontemplates//logs"}}
}

func TestARolloutIsPausedResumedAndApproved(t *testing.T) {
	asks := func(approved []any, contents ...any) map[string]any {
		return addOnPolicy(map[string]any{"approval": "PerRollout", "approved": approved}, map[string]any{"contents": contents})
	}
	const test = `/logs [{"op":"test","path":"/metadata/uid","value":"u"},` +
		`{"op":"test","path":"/metadata/generation","value":1},`
	for sentence, tc := range map[string]ruleCase{
		"without a policy one is made": {
			nil, []string{"pause", "addon", "logs", "--reason", "incident 7"}, 0, "no cluster begins to change",
			pathAddOnPolicies + ` {"apiVersion":"addon.spokelet.io/v1alpha1","kind":"AddOnPolicy","metadata":{"name":"logs"},` +
				`"spec":{"paused":{"reason":"incident 7"}}}`,
		},
		"a policy is paused": {
			addOnPolicy(map[string]any{"approval": "None"}, nil), []string{"pause", "addon", "logs"}, 0, "spec.paused is set",
			pathAddOnPolicies + test + `{"op":"add","path":"/spec/paused","value":{}}]`,
		},
		"a policy without a spec is paused": {
			addOnPolicy(map[string]any{}, nil), []string{"pause", "addon", "logs"}, 0, "spec.paused is set",
			pathAddOnPolicies + test + `{"op":"add","path":"/spec","value":{"paused":{}}}]`,
		},
		"a dry run is one": {
			nil, []string{"pause", "addon", "logs", "--dry-run"}, 0, "(dry run)",
			pathAddOnPolicies + `?dryRun=All {"apiVersion":"addon.spokelet.io/v1alpha1","kind":"AddOnPolicy","metadata":{"name":"logs"},"spec":{"paused":{}}}`,
		},
		"it goes on": {
			addOnPolicy(map[string]any{"paused": map[string]any{"reason": "x"}}, nil), []string{"resume", "addon", "logs"}, 0,
			"spec.paused is gone", pathAddOnPolicies + test + `{"op":"remove","path":"/spec/paused"}]`,
		},
		"what is not paused cannot go on": {nil, []string{"resume", "addon", "logs"}, statusUse, "add-on logs is not paused", ""},
		"the content that waits is approved": {
			asks([]any{"0123456789ab"}, content("aaaaaaaaaaaa", false), content("0123456789ab", true)),
			[]string{"approve", "addon", "logs"}, 0, "content aaaaaaaaaaaa (addontemplates//logs) is approved",
			pathAddOnPolicies + test + `{"op":"add","path":"/spec/approved/-","value":"aaaaaaaaaaaa"}]`,
		},
		"the first approval makes the list": {
			asks(nil, content("aaaaaaaaaaaa", false)), []string{"approve", "addon", "logs"}, 0, "is approved",
			pathAddOnPolicies + test + `{"op":"add","path":"/spec/approved","value":["aaaaaaaaaaaa"]}]`,
		},
		"one of several is named": {
			asks(nil, content("aaaaaaaaaaaa", false), content("bbbbbbbbbbbb", false)),
			[]string{"approve", "addon", "logs"}, statusUse, "name one with --content: aaaaaaaaaaaa (addontemplates//logs); bbbb", "",
		},
		"and approved": {
			asks(nil, content("aaaaaaaaaaaa", false), content("bbbbbbbbbbbb", false)),
			[]string{"approve", "addon", "logs", "--content", "bbbbbbbbbbbb"}, 0, "content bbbbbbbbbbbb",
			pathAddOnPolicies + test + `{"op":"add","path":"/spec/approved","value":["bbbbbbbbbbbb"]}]`,
		},
		"what an add-on of a person waits for is, too": {
			asks(nil, content("aaaaaaaaaaaa", false)), []string{"approve", "addon", "logs", "--content", "cccccccccccc"}, 0,
			"content cccccccccccc, for which no cluster of a placement is known to wait, is approved",
			pathAddOnPolicies + test + `{"op":"add","path":"/spec/approved","value":["cccccccccccc"]}]`,
		},
		"what is approved already is not": {
			asks([]any{"cccccccccccc"}, content("aaaaaaaaaaaa", false)),
			[]string{"approve", "addon", "logs", "--content", "cccccccccccc"}, statusUse, "is approved already", "",
		},
		"the wave whose turn it is": {
			waved(wave("aaaaaaaaaaaa", "first", true), wave("bbbbbbbbbbbb", "second", false)),
			[]string{"approve", "addon", "logs"}, 0,
			"content aaaaaaaaaaaa (addontemplates//logs) in first is approved",
			pathAddOnPolicies + test + `{"op":"add","path":"/spec/approved","value":["aaaaaaaaaaaa"]}]`,
		},
		"a later wave is not approved by accident": {
			waved(wave("bbbbbbbbbbbb", "second", false)), []string{"approve", "addon", "logs"}, statusUse,
			"no wave that is not approved has its turn; name one with --content, or take --all-waves: bbbbbbbbbbbb", "",
		},
		"and is by its name": {
			waved(wave("bbbbbbbbbbbb", "second", false)), []string{"approve", "addon", "logs", "--content", "bbbbbbbbbbbb"}, 0,
			"content bbbbbbbbbbbb (addontemplates//logs) in second is approved",
			pathAddOnPolicies + test + `{"op":"add","path":"/spec/approved","value":["bbbbbbbbbbbb"]}]`,
		},
		"all waves of the content": {
			waved(wave("aaaaaaaaaaaa", "first", true), wave("bbbbbbbbbbbb", "second", false)),
			[]string{"approve", "addon", "logs", "--all-waves"}, 0,
			"content cccccccccccc (addontemplates//logs), with all its waves, is approved",
			pathAddOnPolicies + test + `{"op":"add","path":"/spec/approved","value":["cccccccccccc"]}]`,
		},
		"all waves of a content that its name says": {
			waved(wave("aaaaaaaaaaaa", "first", true)), []string{"approve", "addon", "logs", "--content", "cccccccccccc"}, 0,
			"content cccccccccccc (addontemplates//logs), with all its waves, is approved",
			pathAddOnPolicies + test + `{"op":"add","path":"/spec/approved","value":["cccccccccccc"]}]`,
		},
		"all waves of a content that waits after too many tries": {
			addOnPolicy(map[string]any{"approval": "PerWave", "onFailure": map[string]any{"action": "Undo", "maxTries": 1}},
				map[string]any{"contents": []any{content("aaaaaaaaaaaa", false)}}),
			[]string{"approve", "addon", "logs"}, 0, "content aaaaaaaaaaaa (addontemplates//logs), with all its waves, is approved",
			pathAddOnPolicies + test + `{"op":"add","path":"/spec/approved","value":["aaaaaaaaaaaa"]}]`,
		},
		"one wave or all": {
			waved(wave("aaaaaaaaaaaa", "first", true)), []string{"approve", "addon", "logs", "--all-waves", "--content", "a"},
			statusUse, "content all-waves", "",
		},
		"the same waves of two placements": {
			waved(wave("aaaaaaaaaaaa", "first of one", true), wave("bbbbbbbbbbbb", "first of two", true)),
			[]string{"approve", "addon", "logs"}, statusUse, "name one with --content: aaaaaaaaaaaa (addontemplates//logs) in first of one; bbbb", "",
		},
		"where nothing waits": {asks([]any{"aaaaaaaaaaaa"}, content("aaaaaaaaaaaa", true)), []string{"approve", "addon", "logs"}, statusUse, "no cluster waits for an approval", ""},
		"without approvals":   {nil, []string{"approve", "addon", "logs"}, statusUse, "needs no approval", ""},
	} {
		t.Run(sentence, tc.play)
	}
}

// wave is a wave of a content that waits.
func wave(name, of string, turn bool) map[string]any {
	c := content(name, false)
	c["wave"], c["turn"], c["content"] = of, turn, "cccccccccccc"
	return c
}

// waved is a policy whose waves wait.
func waved(waves ...any) map[string]any {
	return addOnPolicy(map[string]any{"approval": "PerWave"}, map[string]any{"contents": waves})
}

// What is written is not in force where no hub manager looks at it, and a person in an incident must know that.
func TestAPauseThatIsNotInForceIsSaidToBeNone(t *testing.T) {
	h := ruled(nil)
	h.without = true
	pauses := 0
	got := played(t.Context(), t, h, func() { pauses++ }, "rollout", "pause", "addon", "logs")
	assert.Equal(t, statusWell, got.status, got.errs)
	assert.Contains(t, got.out, "spec.paused is set")
	assert.Contains(t, got.errs, "warning: it is written, and no hub manager has seen AddOnPolicy logs within 10s, so it is not in force")
	assert.Equal(t, 5, pauses)

	h = ruled(nil)
	h.without = true
	got = played(t.Context(), t, h, func() {
		part(h.lists[pathAddOnPolicies][0], "status")["observedGeneration"] = 1
	}, "rollout", "pause", "addon", "logs")
	assert.Equal(t, statusWell, got.status, got.errs)
	assert.Empty(t, got.errs)
}

func TestAHubWithoutPoliciesIsSaidToHaveNone(t *testing.T) {
	got := plays(t, &hub{lists: map[string][]map[string]any{}}, "rollout", "pause", "addon", "logs")
	assert.Equal(t, statusUse, got.status, got.errs)
	assert.Contains(t, got.errs, "this hub has no AddOnPolicies")
}
