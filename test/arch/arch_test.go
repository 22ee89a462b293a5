package arch

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"

	"github.com/spokelet/spokelet/internal/names"
)

// load reads names, imports and source of all packages of this module; nested modules are not among them.
func load(t *testing.T) (graph, []source) {
	t.Helper()
	loaded, err := packages.Load(&packages.Config{
		Context: t.Context(), Dir: "../..", Mode: packages.NeedName | packages.NeedImports | packages.NeedFiles,
	}, "./...")
	require.NoError(t, err)
	require.NotEmpty(t, loaded)
	g := graph{}
	var sources []source
	for _, p := range loaded {
		for _, problem := range p.Errors {
			assert.NotEqual(t, packages.ParseError, problem.Kind, "%s: %s", p.PkgPath, problem)
		}
		if len(p.GoFiles) == 0 {
			continue
		}
		imports := make([]string, 0, len(p.Imports))
		for path := range p.Imports {
			imports = append(imports, below(path))
		}
		slices.Sort(imports)
		g[below(p.PkgPath)] = imports
		s, err := parseSource(below(p.PkgPath), p.Name, p.GoFiles)
		require.NoError(t, err)
		sources = append(sources, s)
	}
	return g, sources
}

// below cuts the path of this module off a package path.
func below(path string) string { return strings.TrimPrefix(path, module+"/") }

func TestTheModuleKeepsItsShape(t *testing.T) {
	g, sources := load(t)

	t.Run("imports", func(t *testing.T) {
		for _, violation := range judge(g, append(workRules(), importRules...)) {
			t.Error(violation)
		}
		for path := range g {
			if name, inside := strings.CutPrefix(path, "agent/work/"); inside && workImports[name] == nil {
				t.Errorf("%s: a package inside agent/work has a place in workImports", path)
			}
		}
	})
	checks := map[string]struct {
		check func(source) []string
		// tests says that test code is checked as well.
		tests bool
	}{
		"package names":                  {check: source.checkName, tests: true},
		"package comments":               {check: source.checkComment, tests: true},
		"lengths":                        {check: source.checkLengths, tests: true},
		"exported variables":             {check: source.checkVariables},
		"decisions are pure":             {check: source.checkPurity},
		"clock, context, end of process": {check: source.checkCalls},
		"one of each":                    {check: source.checkOneOfEach},
	}
	for name, c := range checks {
		t.Run(name, func(t *testing.T) {
			for _, s := range sources {
				if !c.tests && !matchesAny(production, s.path) {
					continue
				}
				for _, violation := range c.check(s) {
					t.Error(violation)
				}
			}
		})
	}
	t.Run("writers of conditions", func(t *testing.T) { checkWriters(t, g, sources) })
}

// reconcilerOf returns the package of the reconciler that a package is part of: the second folder, such as agent/work for
// agent/work/status.
func reconcilerOf(path string) string {
	parts := strings.SplitN(path, "/", 3)
	return strings.Join(parts[:min(2, len(parts))], "/")
}

// checkWriters compares the register of conditions with the packages: every writer exists, and a package that writes a
// condition out in full is in the register for it.
func checkWriters(t *testing.T, g graph, sources []source) {
	t.Helper()
	registered := map[string]map[string]bool{}
	for _, owner := range names.ConditionOwners() {
		path := strings.ReplaceAll(owner.Writer, ".", "/")
		if _, exists := g[path]; !exists {
			t.Errorf("the register says that %s writes %s of %s, but there is no such package",
				owner.Writer, owner.Type, owner.Kind)
		}
		if registered[path] == nil {
			registered[path] = map[string]bool{}
		}
		registered[path][owner.Type] = true
	}
	var ofNames map[string]string
	for _, s := range sources {
		if s.path == "internal/names" {
			ofNames = s.constants()
		}
	}
	for _, s := range sources {
		if !matchesAny([]string{"agent/*", "hub/*"}, s.path) {
			continue
		}
		writer := reconcilerOf(s.path)
		if writer == "hub/fleet" { // It knows what hub/placement writes of a Placement, and how others read it.
			writer = "hub/placement"
		}
		for kind, place := range s.conditionTypes(ofNames) {
			if !registered[writer][kind] {
				t.Errorf("%s: condition %s is written by %s, which internal/names/conditions.go does not say: add "+
					"{\"<kind of the object>\", \"%s\", \"%s\"} to ConditionOwners there", place, kind, writer,
					kind, strings.ReplaceAll(writer, "/", "."))
			}
		}
	}
}
