package cli

import "testing"

func TestAContentIsUndoneAndTriedAgain(t *testing.T) {
	asks := func(contents ...any) map[string]any {
		return map[string]any{"placements": contents}
	}
	gives := func(placement, content string, completed ...any) map[string]any {
		all := []any{}
		for _, c := range completed {
			all = append(all, map[string]any{"content": c, "configurations": []any{}})
		}
		return map[string]any{"placement": placement, "content": content, "completed": all}
	}
	entry := func(content string, clusters int) map[string]any {
		return map[string]any{
			"content": content, "by": "Policy", "action": "Undo", "clusters": clusters, "since": "2026-11-30T12:00:00Z",
		}
	}
	undone := map[string]any{"undone": []any{entry("aaaa", 0), entry("bbbb", 1)}}
	spec := func(lists map[string]any) map[string]any {
		lists["approval"] = "None"
		return lists
	}
	const test = `/logs [{"op":"test","path":"/metadata/uid","value":"u"},` +
		`{"op":"test","path":"/metadata/generation","value":1},`
	behind := addOnPolicy(spec(map[string]any{}), asks(gives("ns/p", "bbbb")))
	part(behind, "status")["observedGeneration"] = 0
	for sentence, tc := range map[string]ruleCase{
		"what the placement asks for is undone": {
			addOnPolicy(spec(map[string]any{}), asks(gives("ns/p", "bbbb", "bbbb", "aaaa"))), []string{"undo", "addon", "logs"}, 0,
			"content bbbb is undone, so clusters of placement ns/p return to content aaaa",
			pathAddOnPolicies + test + `{"op":"add","path":"/spec/undo","value":["bbbb"]}]`,
		},
		"it is neither approved nor tried again any more": {
			addOnPolicy(spec(map[string]any{"undo": []any{"cccc"}, "retry": []any{"bbbb"}, "approved": []any{"aaaa", "bbbb"}}),
				asks(gives("ns/p", "bbbb", "cccc"))), []string{"undo", "addon", "logs"}, 0,
			"clusters of placement ns/p keep what they have unless their status knows what they had before",
			pathAddOnPolicies + test + `{"op":"add","path":"/spec/undo","value":["cccc","bbbb"]},{"op":"remove","path":"/spec/retry"},` +
				`{"op":"add","path":"/spec/approved","value":["aaaa"]}]`,
		},
		"a policy without a spec gets one": {
			addOnPolicy(map[string]any{}, asks(gives("-", "bbbb", "aaaa"))), []string{"undo", "addon", "logs"}, 0,
			"clusters of no placement return to content aaaa",
			pathAddOnPolicies + test + `{"op":"add","path":"/spec","value":{"undo":["bbbb"]}}]`,
		},
		"one of several is named": {
			addOnPolicy(spec(map[string]any{}), asks(gives("ns/p", "bbbb"), gives("ns/q", "cccc"))), []string{"undo", "addon", "logs"},
			statusUse, "name one with --content: bbbb, cccc", "",
		},
		"and undone": {
			addOnPolicy(spec(map[string]any{}), asks(gives("ns/p", "bbbb"), gives("ns/q", "cccc"))),
			[]string{"undo", "addon", "logs", "--content", "cccc"}, 0, "content cccc is undone",
			pathAddOnPolicies + test + `{"op":"add","path":"/spec/undo","value":["cccc"]}]`,
		},
		"what is undone already is not": {
			addOnPolicy(spec(map[string]any{"undo": []any{"bbbb"}}), asks(gives("ns/p", "bbbb"))),
			[]string{"undo", "addon", "logs", "--content", "bbbb"}, statusUse, "is undone already", "",
		},
		"without a policy nothing is known": {nil, []string{"undo", "addon", "logs"}, statusUse, "there is no AddOnPolicy logs", ""},
		"nor where the hub manager is behind": {
			behind, []string{"undo", "addon", "logs"}, statusUse, "has not seen the present AddOnPolicy logs yet", "",
		},
		"what the policy undid is tried again": {
			addOnPolicy(spec(map[string]any{}), undone), []string{"retry", "addon", "logs"}, 0,
			"content bbbb is rolled out again, and is not undone another time",
			pathAddOnPolicies + test + `{"op":"add","path":"/spec/retry","value":["bbbb"]}]`,
		},
		"what is only remembered is by its name": {
			addOnPolicy(spec(map[string]any{}), undone), []string{"retry", "addon", "logs", "--content", "aaaa"}, 0,
			"content aaaa is rolled out again", pathAddOnPolicies + test + `{"op":"add","path":"/spec/retry","value":["aaaa"]}]`,
		},
		"so is what a person undid": {
			addOnPolicy(spec(map[string]any{"undo": []any{"bbbb"}}), nil), []string{"retry", "addon", "logs"}, 0, "rolled out again",
			pathAddOnPolicies + test + `{"op":"remove","path":"/spec/undo"},{"op":"add","path":"/spec/retry","value":["bbbb"]}]`,
		},
		"where nothing was undone": {
			addOnPolicy(spec(map[string]any{}), nil), []string{"retry", "addon", "logs"}, statusUse, "no content of add-on logs was undone", "",
		},
		"after too many tries the next one is approved": {
			addOnPolicy(spec(map[string]any{"onFailure": map[string]any{"action": "Undo"}}),
				map[string]any{"contents": []any{content("dddd", false)}}), []string{"approve", "addon", "logs"}, 0, "content dddd",
			pathAddOnPolicies + test + `{"op":"add","path":"/spec/approved","value":["dddd"]}]`,
		},
		"where there is no policy": {nil, []string{"retry", "addon", "logs"}, statusUse, "nothing of the add-on was undone", ""},
	} {
		t.Run(sentence, tc.play)
	}
}

// A person moved add-on logs from placement ns/q to ns/p a month ago. What is remembered of ns/q nobody asks for now.
func TestWhatIsOnlyRememberedOfAPlacementIsNotAskedFor(t *testing.T) {
	former := map[string]any{
		"placement": "ns/q", "content": "",
		"completed": []any{map[string]any{"content": "cccc", "configurations": []any{}}},
	}
	now := map[string]any{
		"placement": "ns/p", "content": "bbbb",
		"completed": []any{map[string]any{"content": "aaaa", "configurations": []any{}}},
	}
	spec := func() map[string]any { return map[string]any{"approval": "None"} }
	const writes = `/logs [{"op":"test","path":"/metadata/uid","value":"u"},{"op":"test","path":"/metadata/generation","value":1},` +
		`{"op":"add","path":"/spec/undo","value":["bbbb"]}]`
	t.Run("the only one that is asked for is undone", ruleCase{
		addOnPolicy(spec(), map[string]any{"placements": []any{now, former}}), []string{"undo", "addon", "logs"}, 0,
		"content bbbb is undone", pathAddOnPolicies + writes,
	}.play)
	t.Run("none is asked for", ruleCase{
		addOnPolicy(spec(), map[string]any{"placements": []any{former}}), []string{"undo", "addon", "logs"}, statusUse,
		"no placement of add-on logs asks for a content that is not undone", "",
	}.play)
}
