package names_test

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/spokelet/spokelet/internal/names"
)

func TestTheRegisterOfConditionsIsUniqueAndSorted(t *testing.T) {
	owners := names.ConditionOwners()
	seen := map[names.ConditionOwner]bool{}
	for _, owner := range owners {
		assert.False(t, seen[owner], "%v stands twice", owner)
		seen[owner] = true
		assert.NotEmpty(t, owner.Kind)
		assert.Regexp(t, `^(agent|hub)\.[a-z]+$`, owner.Writer)
	}
	assert.True(t, slices.IsSortedFunc(owners, func(a, b names.ConditionOwner) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Type, b.Type), strings.Compare(a.Writer, b.Writer))
	}), "the register is ordered by kind, type and writer")
}

func TestAConditionHasOneWriterOnEachSide(t *testing.T) {
	// OCM shares these on one side: the hub itself knows two ways to tell the health of an add-on (the cluster
	// fell silent, the add-on's objects are looked at), and the ordinary reader sees one condition.
	shared := map[string]bool{"hub ManagedClusterAddOn Available": true}
	writers := map[string][]string{}
	for _, owner := range names.ConditionOwners() {
		side, _, _ := strings.Cut(owner.Writer, ".")
		key := strings.Join([]string{side, owner.Kind, owner.Type}, " ")
		writers[key] = append(writers[key], owner.Writer)
	}
	for key, all := range writers {
		if !shared[key] {
			assert.Len(t, all, 1, "%s", key)
		}
	}
}

func TestEveryNameIsOneThatKubernetesTakes(t *testing.T) {
	for name, value := range constants(t, "names.go") {
		switch {
		case strings.HasSuffix(value, "/"):
			assert.Empty(t, validation.IsDNS1123Subdomain(strings.TrimSuffix(value, "/")), name)
		case strings.HasPrefix(name, "Label"), strings.HasPrefix(name, "Annotation"), strings.HasPrefix(name, "Finalizer"):
			assert.Empty(t, validation.IsQualifiedName(value), "%s = %s", name, value)
		case strings.HasPrefix(name, "Namespace"):
			assert.Empty(t, validation.IsDNS1123Label(value), "%s = %s", name, value)
		default:
			assert.Empty(t, validation.IsDNS1123Subdomain(value), "%s = %s", name, value)
		}
	}
}

func TestNoTwoNamesAreTheSame(t *testing.T) {
	byValue := map[string]string{}
	for name, value := range constants(t, "names.go") {
		kind := regexp.MustCompile(`^[A-Z][a-z]+`).FindString(name)
		other, taken := byValue[kind+value]
		assert.False(t, taken, "%s and %s are both %s", name, other, value)
		byValue[kind+value] = name
	}
}

// constants reads the string constants of a file of this package.
func constants(t *testing.T, file string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	found := map[string]string{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, value := range spec.Values {
			if literal, ok := value.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				text, err := strconv.Unquote(literal.Value)
				require.NoError(t, err)
				found[spec.Names[i].Name] = text
			}
		}
		return true
	})
	require.NotEmpty(t, found)
	return found
}
