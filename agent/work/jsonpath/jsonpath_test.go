package jsonpath

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	parser "k8s.io/client-go/util/jsonpath"
)

// searched returns an object with values of all kinds.
func searched() map[string]any {
	numbers := []any{map[string]any{"n": int64(1)}, map[string]any{"n": int64(2)}, map[string]any{"m": nil}}
	return map[string]any{"status": map[string]any{"numbers": numbers, "list": []any{
		map[string]any{"n": int64(1)}, map[string]any{"n": int64(2)}, map[string]any{"n": "text"},
		map[string]any{"deep": []any{[]any{int64(1), 0.5}, []any{}, nil, true, "é"}}, map[string]any{}, "", int64(7),
	}}}
}

// reference returns the values that the evaluator of client-go selects.
func reference(path string, object map[string]any) (found []any, err error) {
	program := parser.New("reference").AllowMissingKeys(true)
	if err := program.Parse("{" + path + "}"); err != nil {
		return nil, err
	}
	results, err := program.FindResults(object)
	if err != nil || len(results) == 0 {
		return nil, err
	}
	for _, value := range results[0] {
		found = append(found, value.Interface())
	}
	return found, nil
}

func TestAPathFindsWhatClientGoFinds(t *testing.T) {
	const list, numbers = ".status.list", ".status.numbers"
	for _, path := range []string{
		"", ".", "$", "@", ".status", "$.status", "['status']", ".none", ".none.deeper", ".status.list.n", ".*", ".*.*", "..", "..n",
		"..n..n", "..deep..", "..*", list + "[*]", list + "[*].n", list + "[0]", list + "[-1]", list + "[-1:]", list + "[0:2]",
		list + "[0:7:3]", list + "[0:0]", list + "[9]", list + "[2:1]", list + "[-9]", list + "[::-1]", list + "[0,1]",
		list + "[0,1]['n','n']", list + "['n']", list + "[*].deep[*]", list + "[*].deep[0][*]", list + "[*].deep[4].*",
		list + "[3].deep[*][0]", list + "[3].deep[1][0:0]", numbers + "[?(@.n)].n", list + "[?(@.n)]", numbers + "[?(@..n)]",
		numbers + "[?(@.n==1)].n", numbers + "[?(@.n!=1)].n", numbers + "[?(@.n<2)].n", numbers + "[?(@.n<=2)].n",
		numbers + "[?(@.n>1)].n", numbers + "[?(@.n>=1)].n", list + "[?(@.n==1)].n", numbers + `[?(@.n=="text")].n`, numbers + "[?(@.m)].m", numbers + "[?(@.m==1)]",
		list + "[*][?(@.n)]", list + "[?(@.deep[0])]", numbers + "[?(@['n','n']==1)]", numbers + "[?(1==1)]",
		numbers + "[?(true==true)]", numbers + "[?(@.n==@.none)]", numbers + "[?(@.n==@.n[0])]", numbers + "[?(@.none==@.n)]",
		numbers + "[?(@.n==@['n','n'])]", list + "[1::2]", list + "[-3:-1]", list + "[6]", list + "[6:7]", list + "[7]", list + "[7:7]", numbers + "[?(1.5<2.5)]", list + "[?(@.deep[9])]", numbers + "[?('a'=='a')]", "'text'", "1",
		"1.5", "true", list + "[0:2].n.x", "..list[0]", "..[0]", "..[*]", `..[?(@.n=="text")]`, list + "[3].deep[?(@==1)]", "range .status",
		"end", ".status[", "[?(@)]", ".status.list[0].n[0]", `['status']['list'][0]['n']`, `.sta\tus`, `.status .list`,
	} {
		t.Run(path, func(t *testing.T) {
			want, bad := reference(path, searched())
			parsed, err := Parse(path)
			var found []any
			if err == nil {
				found, err = parsed.Find(searched(), NewBudget())
			}
			if bad != nil {
				require.Error(t, err)
				return
			}
			if strings.HasPrefix(path, "range") {
				require.ErrorContains(t, err, "not supported")
				return
			}
			require.NoError(t, err)
			assert.ElementsMatch(t, want, found)
			if !strings.Contains(path, "*") && !strings.Contains(path, "..") {
				assert.True(t, slices.EqualFunc(want, found, assert.ObjectsAreEqual), "in the same order")
			}
		})
	}
}

func TestOnePathUsedByManyAtOnceFindsTheSame(t *testing.T) {
	parsed, err := Parse(`.status.list[?(@.n)].n`)
	require.NoError(t, err)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				found, _ := parsed.Find(searched(), NewBudget())
				assert.Equal(t, []any{int64(1), int64(2), "text"}, found)
			}
		})
	}
	all.Wait()
}

func TestSlicesOfLists(t *testing.T) {
	object := map[string]any{"l": []any{int64(0), int64(1), int64(2), int64(3)}}
	for path, c := range map[string]struct {
		want  []any
		fails string
	}{
		"[0]":      {want: []any{int64(0)}},
		"[3]":      {want: []any{int64(3)}},
		"[-1]":     {want: []any{int64(3)}},
		"[-4]":     {want: []any{int64(0)}},
		"[4]":      {fails: "array index out of bounds: index 4, length 4"},
		"[4:2]":    {fails: "array index out of bounds: index 4, length 4"},
		"[5]":      {fails: "array index out of bounds: index 5, length 4"},
		"[-5]":     {fails: "array index out of bounds: index -1, length 4"},
		"[0:4]":    {want: []any{int64(0), int64(1), int64(2), int64(3)}},
		"[0:5]":    {fails: "array index out of bounds: index 4, length 4"},
		"[1:-1]":   {want: []any{int64(1), int64(2)}},
		"[0:-4]":   {want: nil},
		"[1:-4]":   {fails: "starting index 1 is greater than ending index 0"},
		"[1:-5]":   {fails: "array index out of bounds: index -2, length 4"},
		"[3:1]":    {fails: "starting index 3 is greater than ending index 1"},
		"[2:2]":    {want: nil},
		"[0:4:3]":  {want: []any{int64(0), int64(3)}},
		"[0:4:1]":  {want: []any{int64(0), int64(1), int64(2), int64(3)}},
		"[0:4:0]":  {fails: "step must be > 0"},
		"[0:4:-1]": {fails: "step must be > 0"},
	} {
		t.Run(path, func(t *testing.T) {
			parsed, err := Parse(".l" + path)
			require.NoError(t, err)
			found, err := parsed.Find(object, NewBudget())
			if c.fails != "" {
				require.ErrorContains(t, err, c.fails)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, found)
		})
	}
}

func TestTheCostOfAPathIsSubtractedFromTheBudget(t *testing.T) {
	object := map[string]any{
		"a": map[string]any{"b": "x", "c": []any{int64(1), int64(2), int64(3)}}, "text": "four",
	}
	for path, cost := range map[string]int{
		// Each node of a path visits its input once, and a list of nodes its input once more.
		"":          1,
		".a":        2,
		".a.b":      3,
		".a.none.x": 3,
		".*":        4,
		".a.*":      5,
		".text.*":   7,
		".a.c[0:3]": 7,
		".a.c[1:3]": 6,
		".a.c[*]":   7,
		".a['b']":   3,
	} {
		t.Run(path, func(t *testing.T) {
			parsed, err := Parse(path)
			require.NoError(t, err)
			budget := NewBudget()
			_, err = parsed.Find(object, budget)
			require.NoError(t, err)
			assert.Equal(t, cost, maxAllVisits-budget.left)

			budget.left = cost
			_, err = parsed.Find(object, budget)
			require.NoError(t, err, "a budget that just suffices")
			assert.Zero(t, budget.left)
			budget.left = cost - 1
			_, err = parsed.Find(object, budget)
			require.ErrorContains(t, err, "and those before it look at more than 1000000 values")
			assert.Zero(t, budget.left, "never below zero")
		})
	}
}

func TestOnePathMayNotUseUpTheBudgetOfAll(t *testing.T) {
	items := make([]any, maxVisits)
	parsed, err := Parse(".l[*]")
	require.NoError(t, err)
	budget := NewBudget()
	_, err = parsed.Find(map[string]any{"l": items}, budget)
	require.ErrorContains(t, err, "the JSON path \".l[*]\" looks at more than 250000 values")
	assert.Equal(t, maxAllVisits-maxVisits, budget.left)
	budget.left = maxVisits
	_, err = parsed.Find(map[string]any{"l": items}, budget)
	require.ErrorContains(t, err, "the JSON path \".l[*]\" looks at more than 250000 values", "alone it is too expensive")
	assert.Zero(t, budget.left)
}

func TestTheLengthOfExpressions(t *testing.T) {
	require.NoError(t, CheckLength("JSON path", strings.Repeat("x", MaxLength)))
	err := CheckLength("JSON path", strings.Repeat("x", MaxLength+1))
	require.ErrorContains(t, err, `the JSON path that begins with "xxx`)
	require.ErrorContains(t, err, "has 4097 bytes, more than the limit of 4096")
	assert.Less(t, len(err.Error()), 400)
	assert.Equal(t, `"a\"b"`, Quote(`a"b`))
	assert.Len(t, Quote(strings.Repeat("x", 300)), maxQuoted+2)
}

func TestValuesAreDescribed(t *testing.T) {
	for want, value := range map[string]any{
		"a list": []any{}, "a map": map[string]any{}, "a number with a fraction": 0.5, "a string": "x", "a bool": true,
	} {
		assert.Equal(t, want, Describe(value))
	}
}
