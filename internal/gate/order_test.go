package gate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/policies"
)

// order returns the order of "a>b b>c?": a depends on b, and b on c where a cluster has it. "!" brings one along.
func order(text string) gate.Order {
	of := map[string]*policies.AddOnPolicy{}
	var names []string
	for _, edge := range strings.Fields(text) {
		from, to, _ := strings.Cut(edge, ">")
		d := policies.Dependency{Name: strings.TrimRight(to, "?!"), Install: strings.HasSuffix(to, "!")}
		if strings.HasSuffix(to, "?") {
			d.Type = policies.DependencyOptional
		}
		if of[from] == nil {
			of[from] = &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: from}}
			names = append(names, from)
		}
		of[from].Spec.DependsOn = append(of[from].Spec.DependsOn, d)
	}
	all := make([]policies.AddOnPolicy, 0, len(names))
	for _, name := range names {
		all = append(all, *of[name])
	}
	return gate.NewOrder(all)
}

// Shows: policies/depends-cycle
func TestWhichDependenciesCannotBeFollowed(t *testing.T) {
	for sentence, tc := range map[string]struct{ order, addOn, missing, problem string }{
		"none":                                {"", "a", "", ""},
		"those of others":                     {"b>c c>b", "a", "", ""},
		"a chain":                             {"a>b b>c", "a", "", ""},
		"two ways to one":                     {"a>b a>c b>d c>d", "a", "", ""},
		"a cycle of two":                      {"b>a a>b", "b", "", "a > b > a"},
		"a cycle of three, the same for each": {"c>a a>b b>c", "c", "", "a > b > c > a"},
		"the shortest of two cycles":          {"a>b b>c c>a a>d d>a", "a", "", "a > d > a"},
		"an optional dependency makes a cycle, too":  {"a>b? b>a", "a", "", "a > b > a"},
		"one that depends on a cycle is not in it":   {"a>b b>c c>b", "a", "", ""},
		"a name without a definition":                {"a>b a>c", "a", "c", "it depends on c, of which there is no ClusterManagementAddOn"},
		"also where it does without it":              {"a>b?", "a", "b", "it depends on b, of which there is no ClusterManagementAddOn"},
		"a dependency of a dependency is its matter": {"a>b b>c", "a", "c", ""},
	} {
		got := order(tc.order).Problem(tc.addOn, func(name string) bool { return name != tc.missing })
		if tc.problem == "" {
			assert.Empty(t, got, sentence)
		}
		assert.Contains(t, got, tc.problem, sentence)
	}
}

func TestWhatDependsOnAnAddOn(t *testing.T) {
	for sentence, tc := range map[string]struct {
		order, addOn string
		dependents   []gate.Dependent
		before       []string
	}{
		"nothing":                {order: "a>b", addOn: "a"},
		"one":                    {order: "a>b", addOn: "b", dependents: []gate.Dependent{{Name: "a"}}},
		"several":                {order: "c>b? a>b!", addOn: "b", dependents: []gate.Dependent{{Name: "a", Installs: true}, {Name: "c", Optional: true}}},
		"a cycle orders nothing": {order: "a>b b>a", addOn: "b"},
		"nor a longer one, and who is not in it goes first": {
			order: "a>b b>c c>a d>b b>e", addOn: "b", dependents: []gate.Dependent{{Name: "d"}},
		},
	} {
		o := order(tc.order)
		assert.Equal(t, tc.dependents, o.Dependents(tc.addOn), sentence)
	}
}

func TestAPolicyThatIsBeingDeletedOrdersNothing(t *testing.T) {
	now := metav1.Now()
	p := policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: "a", DeletionTimestamp: &now}}
	p.Spec.DependsOn = []policies.Dependency{{Name: "b"}}
	assert.Empty(t, gate.NewOrder([]policies.AddOnPolicy{p}).Named("b"))
}

func TestWhoseCyclesAChangeMayMakeOrBreakUp(t *testing.T) {
	for name, want := range map[string][]string{
		"c": {"c", "b", "d", "a"}, "a": {"a"}, "x": {"x", "y"}, "y": {"y", "x"}, "unknown": {"unknown"},
	} {
		assert.Equal(t, want, order("a>b b>c d>c x>y y>x").Above(name), name)
	}
}
