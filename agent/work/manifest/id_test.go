package manifest

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	workv1 "open-cluster-management.io/api/work/v1"
)

func TestAnIDIsReadable(t *testing.T) {
	for want, id := range map[string]ID{
		"configmaps default/x":       {Resource: "configmaps", Namespace: "default", Name: "x"},
		"deployments.apps default/x": {Group: "apps", Resource: "deployments", Namespace: "default", Name: "x"},
		"namespaces x":               {Resource: "namespaces", Name: "x"},
	} {
		assert.Equal(t, want, id.String())
	}
}

func FuzzGlob(f *testing.F) {
	for _, seed := range [][2]string{
		{"*", ""}, {"a*", "abc"}, {"*c", "abc"}, {"a*c", "ac"}, {"a*b*c", "aXbYc"}, {"a.c", "abc"}, {"", ""}, {"", "a"},
		{"a*a", "a"}, {"**", "x"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if strings.ContainsAny(text+pattern, "\n") {
			return
		}
		parts := strings.Split(pattern, "*")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		want, err := regexp.Compile("^(?s:" + strings.Join(parts, ".*") + ")$")
		if err != nil {
			return
		}
		assert.Equal(t, want.MatchString(text), glob(pattern, text), "%q against %q", pattern, text)
	})
}

// Shows: work/rank
func TestRank(t *testing.T) {
	kinds := []string{"Namespace", "ClusterRole", "ServiceAccount", "ConfigMap", "Service", "Deployment", "APIService", "X", ""}
	for i := 1; i < len(kinds); i++ {
		assert.Less(t, Rank(kinds[i-1]), Rank(kinds[i]), "%s before %s", kinds[i-1], kinds[i])
	}
	assert.Equal(t, Rank("Namespace"), Rank("CustomResourceDefinition"))
	assert.Equal(t, rankOther, Rank("Ingress"))
}

// Shows: work/hub-hash
func TestOptions(t *testing.T) {
	update := &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeServerSideApply}
	read := &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReadOnly}
	known := []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}}
	id := ID{Group: "apps", Resource: "deployments", Namespace: "default", Name: "web"}
	match := func(namespace, name string) workv1.ResourceIdentifier {
		return workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: namespace, Name: name}
	}
	for name, c := range map[string]struct {
		configs  []workv1.ManifestConfigOption
		strategy workv1.UpdateStrategyType
		feedback []workv1.FeedbackRule
	}{
		"without configuration it is Update": {strategy: workv1.UpdateStrategyTypeUpdate},
		"the first strategy and the first rules win independently": {
			configs: []workv1.ManifestConfigOption{
				{ResourceIdentifier: match("*", "other")}, {ResourceIdentifier: match("def*", "*"), UpdateStrategy: read},
				{ResourceIdentifier: match("default", "web"), UpdateStrategy: update, FeedbackRules: known},
			},
			strategy: workv1.UpdateStrategyTypeReadOnly, feedback: known,
		},
		"a strategy without type is Update": {
			configs: []workv1.ManifestConfigOption{{
				ResourceIdentifier: match("default", "web"), UpdateStrategy: &workv1.UpdateStrategy{},
			}},
			strategy: workv1.UpdateStrategyTypeUpdate,
		},
		"an empty namespace means objects of the cluster only": {
			configs:  []workv1.ManifestConfigOption{{ResourceIdentifier: match("", "web"), UpdateStrategy: read}},
			strategy: workv1.UpdateStrategyTypeUpdate,
		},
		"another resource does not match": {
			configs: []workv1.ManifestConfigOption{{
				ResourceIdentifier: workv1.ResourceIdentifier{Resource: "deployments", Namespace: "*", Name: "*"},
				UpdateStrategy:     read,
			}},
			strategy: workv1.UpdateStrategyTypeUpdate,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := optionsFor(c.configs, id)
			assert.Equal(t, c.strategy, got.Strategy.Type)
			assert.Equal(t, c.feedback, got.Feedback)
		})
	}
}

// Shows: work/owned-by
func TestOwnedBy(t *testing.T) {
	id := ID{Resource: "configmaps", Namespace: "default", Name: "x"}
	rule := workv1.OrphaningRule{Resource: "configmaps", Namespace: "default", Name: "x"}
	star := workv1.OrphaningRule{Resource: "configmaps", Namespace: "default", Name: "*"}
	selective := func(policy workv1.DeletePropagationPolicyType, rules ...workv1.OrphaningRule) *workv1.DeleteOption {
		return &workv1.DeleteOption{
			PropagationPolicy: policy, SelectivelyOrphan: &workv1.SelectivelyOrphan{OrphaningRules: rules},
		}
	}
	for name, c := range map[string]struct {
		option *workv1.DeleteOption
		want   bool
	}{
		"no option owns":           {nil, true},
		"foreground owns":          {selective(workv1.DeletePropagationPolicyTypeForeground, rule), true},
		"orphan does not":          {selective(workv1.DeletePropagationPolicyTypeOrphan), false},
		"a rule that matches":      {selective(workv1.DeletePropagationPolicyTypeSelectivelyOrphan, rule), false},
		"rules know no stars":      {selective(workv1.DeletePropagationPolicyTypeSelectivelyOrphan, star), true},
		"an empty policy selects":  {selective("", rule), false},
		"selective without a list": {&workv1.DeleteOption{PropagationPolicy: "SelectivelyOrphan"}, true},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, Owned(c.option, id)) })
	}
}
