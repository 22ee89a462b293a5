package gate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/policies"
)

// tried is a policy that undid contents in a placement.
func tried(spec policies.AddOnPolicySpec, action policies.Action, contents ...string) *policies.AddOnPolicy {
	p := policy(spec)
	for _, content := range contents {
		p.Status.Undone = append(p.Status.Undone, policies.Undone{
			Content: content, By: policies.ByPolicy, Action: action, Placements: []string{"ns/p"}, Tries: []string{"ns/p"},
		})
	}
	return p
}

func TestWhatAllClustersOfAPlacementReturnFrom(t *testing.T) {
	undo := policies.AddOnPolicySpec{Undo: []string{"x"}}
	retry := policies.AddOnPolicySpec{Retry: []string{"x"}}
	for sentence, tc := range map[string]struct {
		policy    *policies.AddOnPolicy
		placement string
		undone    bool
	}{
		"without a policy":                      {nil, "ns/p", false},
		"what a person undid":                   {policy(undo), "ns/p", true},
		"what a person undid, everywhere":       {policy(undo), policies.NoPlacement, true},
		"what the hub manager undid":            {tried(policies.AddOnPolicySpec{}, policies.ActionUndoAll, "x"), "ns/p", true},
		"not in another placement":              {tried(policies.AddOnPolicySpec{}, policies.ActionUndoAll, "x"), "ns/q", false},
		"not what only failed clusters undid":   {tried(policies.AddOnPolicySpec{}, policies.ActionUndo, "x"), "ns/p", false},
		"not what is tried again":               {tried(retry, policies.ActionUndoAll, "x"), "ns/p", false},
		"not another content":                   {tried(undo, policies.ActionUndoAll, "y"), policies.NoPlacement, true},
		"a person who undoes it has the say":    {tried(undo, policies.ActionUndo, "x"), "ns/p", true},
		"not where the policy does not name it": {policy(policies.AddOnPolicySpec{}), "ns/p", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, tc.undone, gate.New("logs", tc.policy, nil).Undone(tc.placement, "x"))
		})
	}
}

// Shows: policies/undo-tries
func TestAfterHowManyTriesAContentWaits(t *testing.T) {
	failure := func(action policies.Action, tries int32) policies.AddOnPolicySpec {
		return policies.AddOnPolicySpec{OnFailure: &policies.OnFailure{Action: action, MaxTries: tries}}
	}
	approved, again := failure(policies.ActionUndo, 1), failure(policies.ActionUndo, 1)
	approved.Approved, again.Retry = []string{"next"}, []string{"next"}
	person := policy(failure(policies.ActionUndo, 1))
	person.Status.Undone = []policies.Undone{{Content: "x", By: policies.ByPerson, Action: policies.ActionUndoAll}}
	before := tried(failure(policies.ActionUndo, 1), policies.ActionUndo, "x")
	before.Status.Placements = []policies.PlacementContents{{
		Placement: "ns/p", Completed: []policies.CompletedContent{{Content: "next"}},
	}}
	for sentence, tc := range map[string]struct {
		policy *policies.AddOnPolicy
		waits  bool
	}{
		"without a policy":                        {nil, false},
		"the limit is reached":                    {tried(failure(policies.ActionUndo, 2), policies.ActionUndo, "x", "y"), true},
		"for UndoAll as well":                     {tried(failure(policies.ActionUndoAll, 1), policies.ActionUndoAll, "x"), true},
		"one try is left":                         {tried(failure(policies.ActionUndo, 2), policies.ActionUndo, "x"), false},
		"the default is three":                    {tried(failure(policies.ActionUndo, 0), policies.ActionUndo, "x", "y", "z"), true},
		"two of three":                            {tried(failure(policies.ActionUndo, 0), policies.ActionUndo, "x", "y"), false},
		"it is approved":                          {tried(approved, policies.ActionUndo, "x"), false},
		"it is tried again":                       {tried(again, policies.ActionUndo, "x"), false},
		"it completed here before":                {before, false},
		"it is the one that was undone":           {tried(failure(policies.ActionUndo, 1), policies.ActionUndo, "next"), false},
		"the policy undoes nothing any more":      {tried(failure(policies.ActionStop, 1), policies.ActionUndo, "x"), false},
		"what a person undid is no try":           {person, false},
		"the policy says nothing about a failure": {tried(policies.AddOnPolicySpec{}, policies.ActionUndo, "x"), false},
	} {
		t.Run(sentence, func(t *testing.T) {
			held := gate.New("logs", tc.policy, nil).Exhausted("ns/p", "next").Held
			assert.Equal(t, tc.waits, held != "", held)
			if tc.waits {
				assert.True(t, strings.HasPrefix(held, "waits for its turn in the rollout: AddOnPolicy logs undid "), held)
				assert.Contains(t, held, " contents in a row, and spec.onFailure.maxTries is ")
				assert.Contains(t, held, "; content next begins when spec.approved has it")
			}
		})
	}
}

// A cluster fails with a content of a template and a configuration. What was applied there before was undone or not; its
// own add-on may name a configuration in place of that of the rollout, so that nothing says which content it was a part of.
//
// Shows: policies/undo-never
// Shows: policies/undo-elsewhere
func TestWhatWasUndoneIsNotReturnedTo(t *testing.T) {
	tmpl, cfg, mine := fixture.Template("t"), fixture.DeploymentConfig("d"), fixture.DeploymentConfig("mine")
	of := func(hash string) []addonv1beta1.ConfigReference {
		return []addonv1beta1.ConfigReference{fixture.Desires(cfg, "all"), fixture.Desires(tmpl, hash)}
	}
	name := func(hash string) string { return gate.ContentName("logs", addonconfig.Fingerprint(of(hash))) }
	completed := func(hashes ...string) []policies.PlacementContents {
		p := policies.PlacementContents{Placement: "ns/p"}
		for _, hash := range hashes {
			p.Completed = append(p.Completed, gate.CompletedContent(name(hash), addonconfig.ChosenBy(of(hash))))
		}
		return []policies.PlacementContents{p}
	}
	undo := policies.AddOnPolicySpec{Undo: []string{name("before")}}
	for sentence, tc := range map[string]struct {
		policy *policies.AddOnPolicy
		done   []policies.PlacementContents
		here   []string
		own    bool
		to     string
	}{
		"nothing was undone":                    {policy: policy(policies.AddOnPolicySpec{}), done: completed("good"), to: "before"},
		"nothing was undone, and it has an own": {policy: policy(policies.AddOnPolicySpec{}), own: true, done: completed("good"), to: "before"},
		"a person undid it":                     {policy: policy(undo), done: completed("good"), to: "good"},
		"a person undid it, and it has an own":  {policy: policy(undo), own: true, done: completed("good"), to: "good"},
		"a person undid another one, and it has an own": {
			policy: policy(policies.AddOnPolicySpec{Undo: []string{name("x")}}), own: true, done: completed("good", "before"), to: "before",
		},
		"a person undid what fails, and it has an own": {
			policy: policy(policies.AddOnPolicySpec{Undo: []string{name("bad")}}), own: true, done: completed("good"), to: "before",
		},
		"nothing completed, and it has an own": {policy: policy(undo), own: true},
		"it was undone for all":                {policy: tried(policies.AddOnPolicySpec{}, policies.ActionUndoAll, name("before")), done: completed("good"), to: "good"},
		"it was undone on other clusters":      {policy: tried(policies.AddOnPolicySpec{}, policies.ActionUndo, name("before")), done: completed("good"), to: "before"},
		"it was undone on this one": {
			policy: tried(policies.AddOnPolicySpec{}, policies.ActionUndo, name("before")), here: []string{name("before")}, done: completed("good"), to: "good",
		},
		"it was undone on this one, which has an own": {
			policy: tried(policies.AddOnPolicySpec{}, policies.ActionUndo, name("before")), here: []string{name("before")}, own: true, done: completed("good"), to: "good",
		},
		"its agent says that it was": {
			policy: policy(policies.AddOnPolicySpec{}), here: []string{name("before")}, done: completed("good"), to: "before",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			p := tc.policy
			p.Name, p.Status.Placements = "logs", tc.done
			failing := fixture.Desires(tmpl, "bad")
			failing.LastAppliedConfig = fixture.Hashed(tmpl, "before")
			addOn := fixture.AddOn("c", fixture.Has(cfg, "all"), failing)
			if tc.own {
				addOn = fixture.AddOn("c", fixture.Has(mine, "own"), failing)
				addOn.Spec.Configs = []addonv1beta1.AddOnConfig{mine}
			}
			target := addonconfig.NewTarget(addonconfig.Inputs{
				AddOn: addOn, CMA: fixture.NewCMA(nil, fixture.Placement("p", tmpl, cfg)),
				States: addonconfig.States{tmpl: {Hash: "bad"}, cfg: {Hash: "all"}, mine: {Hash: "own"}},
			})
			how := gate.New("logs", p, nil).Undo("ns/p", name("bad"), tc.here)
			how.Failed = true
			to, known := how.Return(target, addOn.Status.ConfigReferences)
			assert.Equal(t, tc.to != "", known)
			if known {
				assert.Equal(t, tc.to, to[len(to)-1].SpecHash)
			}
		})
	}
}
