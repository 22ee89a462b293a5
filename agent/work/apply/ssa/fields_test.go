package ssa

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"
)

// decoded decodes a JSON or YAML value into the types of an unstructured object; the empty text is nil.
func decoded(t *testing.T, text string) any {
	t.Helper()
	return object(t, "{apiVersion: v1, kind: X, v: "+strings.TrimSpace(text)+"}").Object["v"]
}

// fields decodes a set of fields.
func fields(t *testing.T, text string) *fieldpath.Set {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	set, readable := fieldsOf(&metav1.ManagedFieldsEntry{FieldsV1: metav1.NewFieldsV1(string(raw))})
	require.True(t, readable)
	return set
}

// The sets of list elements in these tests: an element by its key, by two keys, and by its value.
const (
	byName  = `{'k:{"name":"a"}': `
	byPort  = `{'k:{"port":80,"protocol":"TCP"}': `
	byValue = `{'v:"a"': `
)

func TestWhoseFieldsTheyAre(t *testing.T) {
	entry := func(manager, operation, subresource string) *metav1.ManagedFieldsEntry {
		return &metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation), Subresource: subresource,
		}
	}
	for name, c := range map[string]struct {
		entry            *metav1.ManagedFieldsEntry
		applied, written bool
	}{
		"applied by the manager":              {entry("m", "Apply", ""), true, false},
		"applied by another":                  {entry("n", "Apply", ""), false, false},
		"applied to a subresource":            {entry("m", "Apply", "status"), false, false},
		"written by the manager":              {entry("m", "Update", ""), false, false},
		"written by the agent":                {entry("work-agent", "Update", ""), false, true},
		"written to a subresource":            {entry("work-agent", "Update", "status"), false, false},
		"applied by the agent":                {entry("work-agent", "Apply", ""), false, false},
		"written to a subresource by another": {entry("n", "Update", "scale"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.applied, isApplied(c.entry, "m"))
			assert.Equal(t, c.written, isWritten(c.entry))
		})
	}
	_, readable := fieldsOf(&metav1.ManagedFieldsEntry{})
	assert.False(t, readable, "an entry without fields")
}

func TestWhichItemAnElementNames(t *testing.T) {
	for name, c := range map[string]struct {
		set, list       string
		lenient, strict int
	}{
		"by its key":                        {byName + `{}}`, `[{name: b}, {name: a}]`, 1, 1},
		"no item has the key":               {byName + `{}}`, `[{name: b}]`, -1, -1},
		"an item without the key":           {byName + `{}}`, `[{other: a}]`, 0, -1},
		"an item that is no map":            {byName + `{}}`, `[a]`, -1, -1},
		"by two keys":                       {byPort + `{}}`, `[{port: 80, protocol: UDP}, {port: 80, protocol: TCP}]`, 1, 1},
		"one key is left to the API server": {byPort + `{}}`, `[{port: 81}, {port: 80}]`, 1, -1},
		"by its value":                      {byValue + `{}}`, `[b, a]`, 1, 1},
		"by another value":                  {byValue + `{}}`, `[b, {name: a}]`, -1, -1},
		"a field names no item":             {`{"f:a": {}}`, `[a, {a: a}]`, -1, -1},
		"an empty list":                     {byName + `{}}`, `[]`, -1, -1},
	} {
		t.Run(name, func(t *testing.T) {
			list, _ := decoded(t, c.list).([]any)
			element := elements(fields(t, c.set))[0]
			for lenient, want := range map[bool]int{true: c.lenient, false: c.strict} {
				item, at := locate(list, element, lenient)
				assert.Equal(t, want, at)
				if at >= 0 {
					assert.Equal(t, list[at], item)
				}
			}
		})
	}
}

// The part changes when a user changes or takes over anything of it, and not otherwise.
func TestCommon(t *testing.T) {
	for name, c := range map[string]struct{ live, wanted, set, want string }{
		"a whole value":                     {`x`, `y`, `{}`, `x`},
		"an empty value that exists":        {`{a: 1}`, `{}`, `{}`, `true`},
		"an empty value that does not":      {``, `{}`, `{}`, `false`},
		"a map":                             {`{a: 1, b: 2, c: 3, d: 4}`, `{a: 0, b: 0, e: 0}`, `{"f:a": {}, "f:c": {}, "f:e": {}}`, `{a: 1}`},
		"a map of which the set has no key": {`{a: 1}`, `{a: 0}`, `{"f:b": {}}`, `{}`},
		"no map any more":                   {`x`, `{a: 0}`, `{"f:a": {}}`, `{}`},
		"a list": {
			`[{name: b}, {name: a, x: 1, y: 2}]`, `[{name: a, x: 0}, {name: c}]`,
			`{'k:{"name":"a"}': {"f:x": {}, "f:y": {}}, 'k:{"name":"b"}': {}, 'k:{"name":"c"}': {}}`, `['[name="a"]', {x: 1}]`,
		},
		"the first item":                  {`[{name: a, x: 1}]`, `[{name: a, x: 0}]`, byName + `{"f:x": {}}}`, `['[name="a"]', {x: 1}]`},
		"an item that the list lost":      {`[]`, `[{name: a}]`, byName + `{"f:x": {}}}`, `[]`},
		"an item that nobody wants":       {`[{name: a}]`, `[]`, byName + `{"f:x": {}}}`, `[]`},
		"a scalar of which there is more": {`x`, `y`, `{"f:a": {}}`, `x`},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, decoded(t, c.want), common(decoded(t, c.live), decoded(t, c.wanted), fields(t, c.set)))
		})
	}
}

func TestInForce(t *testing.T) {
	for name, c := range map[string]struct {
		live, wanted, full, set string
		want                    bool
	}{
		"a whole value":                     {`1`, `1`, ``, `{}`, true},
		"a quantity in other words":         {`"1"`, `1000m`, ``, `{}`, true},
		"another value":                     {`1`, `2`, ``, `{}`, false},
		"nothing instead of an empty value": {``, `{}`, ``, `{}`, false},
		"nothing where nothing is wanted":   {``, ``, ``, `{}`, true},
		"a value where nothing is wanted":   {`1`, ``, ``, `{}`, true},
		"a map":                             {`{a: 1, x: 9}`, `{a: 1}`, `{a: 1}`, `{"f:a": {}}`, true},
		"no map":                            {`1`, `{a: 1}`, `{a: 1}`, `{"f:a": {}}`, false},
		"a field with another value":        {`{a: 2}`, `{a: 1}`, `{a: 1}`, `{"f:a": {}}`, false},
		"a field that others have":          {`{a: 1, b: 1}`, `{a: 1, b: 1}`, `{a: 1, b: 1}`, `{"f:a": {}}`, false},
		"null is nothing":                   {`{a: 1}`, `{a: 1, b: null}`, `{a: 1}`, `{"f:a": {}}`, true},
		"a field of the full manifest":      {`{a: 1, b: 1}`, `{a: 1}`, `{a: 1, b: 2}`, `{"f:a": {}, "f:b": {}}`, true},
		"a field that the manifest lost":    {`{a: 1, b: 1}`, `{a: 1}`, `{a: 1}`, `{"f:a": {}, "f:b": {}}`, false},
		"a list element in a map":           {`{a: 1}`, `{a: 1}`, `{a: 1}`, `{"f:a": {}, 'v:"x"': {}}`, false},
		"a list":                            {`[{name: b}, {name: a, x: 1}]`, `[{name: a, x: 1}]`, `[{name: a, x: 1}]`, byName + `{"f:name": {}, "f:x": {}}}`, true},
		"a list whose item is the first":    {`[{name: a, x: 1}]`, `[{name: a, x: 1}]`, `[{name: a, x: 1}]`, byName + `{"f:name": {}, "f:x": {}}}`, true},
		"no list":                           {`1`, `[{name: a}]`, `[{name: a}]`, byName + `{"f:name": {}}}`, false},
		"an item with another value":        {`[{name: a, x: 2}]`, `[{name: a, x: 1}]`, `[{name: a, x: 1}]`, byName + `{"f:name": {}, "f:x": {}}}`, false},
		"an item that is gone":              {`[]`, `[{name: a}]`, `[{name: a}]`, byName + `{"f:name": {}}}`, false},
		"an item that others have":          {`[{name: a}, {name: b}]`, `[{name: a}, {name: b}]`, `[{name: a}, {name: b}]`, byName + `{"f:name": {}}}`, false},
		"an item of the full manifest":      {`[{name: a}]`, `[]`, `[{name: a}]`, byName + `{"f:name": {}}}`, true},
		"an item that the manifest lost":    {`[{name: a}]`, `[]`, `[]`, byName + `{"f:name": {}}}`, false},
		"a scalar whose fields the set has": {`1`, `1`, `1`, `{"f:a": {}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := inForce(decoded(t, c.live), decoded(t, c.wanted), decoded(t, c.full), fields(t, c.set))
			assert.Equal(t, c.want, got)
		})
	}
}

func TestRetain(t *testing.T) {
	for name, c := range map[string]struct{ live, base, full, mine, others, want string }{
		"a field that only we have":     {`{a: 1, b: 9}`, `{a: 2}`, `{a: 2, b: 2}`, `{"f:a": {}, "f:b": {}}`, `{}`, `{a: 2, b: 9}`},
		"a field that others share":     {`{a: 1, b: 9}`, `{a: 2}`, `{a: 2, b: 2}`, `{"f:a": {}, "f:b": {}}`, `{"f:b": {}}`, ``},
		"a field that only others have": {`{a: 1, b: 9}`, `{a: 2}`, `{a: 2, b: 2}`, `{"f:a": {}}`, `{"f:b": {}}`, ``},
		"a field that is gone":          {`{a: 1}`, `{a: 2}`, `{a: 2, b: 2}`, `{"f:a": {}, "f:b": {}}`, `{}`, ``},
		"a field the manifest lost":     {`{a: 1, b: 9}`, `{a: 2}`, `{a: 2}`, `{"f:a": {}, "f:b": {}}`, `{}`, ``},
		"no map to keep it in":          {`{b: 9}`, `x`, `{b: 2}`, `{"f:b": {}}`, `{}`, ``},
		"two fields deeper down": {
			`{m: {a: 9, b: 9}, n: {a: 9}}`, `{m: {}, n: {}}`, `{m: {a: 2, b: 2}, n: {}}`,
			`{"f:m": {"f:a": {}, "f:b": {}}, "f:n": {"f:a": {}}}`, `{"f:m": {"f:b": {}}}`, `{m: {a: 9}, n: {}}`,
		},
		"a map of which others share a part": {
			`{m: {a: 9, b: 9, c: 9}}`, `{}`, `{m: {a: 2, b: 2}}`, `{"f:m": {"f:a": {}, "f:b": {}, "f:d": {}}}`, `{"f:m": {"f:b": {}}}`,
			`{m: {a: 9}}`,
		},
		"a map of which others share all": {
			`{m: {a: 9}}`, `{}`, `{m: {a: 2}}`, `{"f:m": {"f:a": {}}}`, `{"f:m": {"f:a": {}}}`, ``,
		},
		"a part of a map that only we have": {
			`{m: {a: 9, b: 9}}`, `{}`, `{m: {a: 2}}`, `{"f:m": {"f:a": {}, "f:c": {}}}`, `{}`, `{m: {a: 9}}`,
		},
		"an item that only we have": {
			`[{name: b}, {name: a, x: 9, y: 9}]`, `[]`, `[{name: a, x: 2}]`, byName + `{"f:name": {}, "f:x": {}}}`, `{}`, `[{name: a, x: 9}]`,
		},
		"the first item": {
			`[{name: a, x: 9}]`, `[]`, `[{name: a, x: 2}]`, byName + `{"f:name": {}, "f:x": {}}}`, `{}`, `[{name: a, x: 9}]`,
		},
		"an item of which others share the name": {
			`[{name: a, x: 9}]`, `[]`, `[{name: a, x: 2}]`, byName + `{"f:name": {}, "f:x": {}}}`, byName + `{"f:name": {}}}`,
			`[{name: a, x: 9}]`,
		},
		"an item that others share": {
			`[{name: a}]`, `[]`, `[{name: a}]`, byName + `{"f:name": {}}}`, byName + `{"f:name": {}}}`, ``,
		},
		"an item the manifest lost": {`[{name: a}]`, `[]`, `[]`, byName + `{"f:name": {}}}`, `{}`, ``},
		"an item that is gone":      {`[]`, `[]`, `[{name: a}]`, byName + `{"f:name": {}}}`, `{}`, ``},
		"no list to keep it in":     {`[{name: a}]`, `x`, `[{name: a}]`, byName + `{"f:name": {}}}`, `{}`, ``},
		"a field of an item": {
			`[{name: a, x: 9}]`, `[{name: a}]`, `[{name: a, x: 2}]`, byName + `{"f:name": {}, "f:x": {}}}`, `{}`, `[{name: a, x: 9}]`,
		},
		"two items, one of them changed": {
			`[{name: a, x: 9}, {name: b}]`, `[{name: a}, {name: b}]`, `[{name: a, x: 2}, {name: b}]`,
			`{'k:{"name":"a"}': {"f:name": {}, "f:x": {}}, 'k:{"name":"b"}': {"f:name": {}}}`, `{}`, `[{name: a, x: 9}, {name: b}]`,
		},
		"a list of which others share an item": {
			`{l: [a, b]}`, `{}`, `{l: [a, b]}`, `{"f:l": {'v:"a"': {}, 'v:"b"': {}, 'v:"c"': {}}}`, `{"f:l": {'v:"b"': {}}}`, `{l: [a]}`,
		},
		"a list of which others share all": {
			`{l: [a]}`, `{}`, `{l: [a]}`, `{"f:l": {'v:"a"': {}}}`, `{"f:l": {'v:"a"': {}}}`, ``,
		},
		"a list that only we have": {
			`{l: [b, a]}`, `{}`, `{l: [a]}`, `{"f:l": {'v:"a"': {}, 'v:"c"': {}}}`, `{}`, `{l: [a]}`,
		},
		"a scalar":                 {`1`, `2`, `3`, `{}`, `{}`, ``},
		"a null that others share": {`{m: {a: null, b: 9}}`, `{}`, `{m: {a: 1}}`, `{"f:m": {"f:a": {}}}`, `{"f:m": {"f:b": {}}}`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			base := decoded(t, c.base)
			got, some := retain(decoded(t, c.live), base, decoded(t, c.full), ownership{fields(t, c.mine), fields(t, c.others)})
			assert.Equal(t, c.want != "", some)
			if c.want == "" {
				assert.Equal(t, decoded(t, c.base), got)
				return
			}
			assert.Equal(t, decoded(t, c.want), got)
		})
	}
}

func TestPart(t *testing.T) {
	live := decoded(t, `{a: 1, m: {x: 1, y: 2}, l: [{name: b}, {name: a, x: 1}], s: [a], w: {z: 1}}`)
	raw, err := json.Marshal(map[string]any{
		"f:a": map[string]any{}, "f:gone": map[string]any{}, "f:m": map[string]any{"f:x": map[string]any{}},
		"f:l": map[string]any{`k:{"name":"a"}`: map[string]any{"f:x": map[string]any{}}, `k:{"name":"c"}`: map[string]any{}},
		"f:s": map[string]any{`v:"a"`: map[string]any{}}, "f:w": map[string]any{},
	})
	require.NoError(t, err)
	got := Part(live, &metav1.ManagedFieldsEntry{FieldsV1: metav1.NewFieldsV1(string(raw))})
	assert.Equal(t, decoded(t, `{a: 1, m: {x: 1}, l: [{x: 1}], s: [a], w: {z: 1}}`), got)
	assert.Nil(t, Part(live, &metav1.ManagedFieldsEntry{FieldsV1: metav1.NewFieldsV1(`[`)}))
	assert.Equal(t, "x", Part("x", &metav1.ManagedFieldsEntry{FieldsV1: metav1.NewFieldsV1(string(raw))}))
}
