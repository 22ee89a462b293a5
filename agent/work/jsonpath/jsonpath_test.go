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

// searched is an object with something of everything, in which each map has one key that is looked for in order.
func searched() map[string]any {
	numbers := []any{map[string]any{"n": int64(1)}, map[string]any{"n": int64(2)}, map[string]any{"m": nil}}
	return map[string]any{"status": map[string]any{"numbers": numbers, "list": []any{
		map[string]any{"n": int64(1)}, map[string]any{"n": int64(2)}, map[string]any{"n": "text"},
		map[string]any{"deep": []any{[]any{int64(1), 0.5}, []any{}, nil, true, "é"}}, map[string]any{}, "", int64(7),
	}}}
}

// reference is what the evaluator of client-go finds.
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
		numbers + "[?(true==true)]", numbers + "[?(1.5<2.5)]", list + "[?(@.deep[9])]", numbers + "[?('a'=='a')]", "'text'", "1",
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
