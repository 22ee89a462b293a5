package addon_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/names"
)

// Shows: hub/library-merge
func TestMergeValues(t *testing.T) {
	tests := map[string]struct{ first, second, want addon.Values }{
		"nothing is nothing":            {nil, nil, addon.Values{}},
		"the later value counts":        {addon.Values{"a": 1}, addon.Values{"a": 2}, addon.Values{"a": 2}},
		"other values stay":             {addon.Values{"a": 1}, addon.Values{"b": 2}, addon.Values{"a": 1, "b": 2}},
		"maps are merged at any depth":  {nested("a", 1), nested("b", 2), addon.Values{"m": map[string]any{"n": map[string]any{"a": 1, "b": 2}}}},
		"lists are replaced":            {addon.Values{"a": []any{1}}, addon.Values{"a": []any{2}}, addon.Values{"a": []any{2}}},
		"a map replaces a text":         {addon.Values{"m": "x"}, nested("b", 2), nested("b", 2)},
		"a text replaces a map":         {nested("a", 1), addon.Values{"m": "x"}, addon.Values{"m": "x"}},
		"values in values are maps":     {addon.Values{"m": addon.Values{"a": 1}}, addon.Values{"m": addon.Values{"b": 2}}, addon.Values{"m": map[string]any{"a": 1, "b": 2}}},
		"nil is a value":                {addon.Values{"a": 1}, addon.Values{"a": nil}, addon.Values{"a": nil}},
		"maps of a Go type are no maps": {addon.Values{"a": map[string]string{"x": "1"}}, addon.Values{"a": map[string]string{"y": "2"}}, addon.Values{"a": map[string]string{"y": "2"}}},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) { assert.Equal(t, tc.want, addon.MergeValues(tc.first, tc.second)) })
	}
}

func nested(name string, value any) addon.Values {
	return addon.Values{"m": map[string]any{"n": map[string]any{name: value}}}
}

// Shows: hub/library-merge
func FuzzMergeValuesChangesNoInput(f *testing.F) {
	f.Add(`{"a":{"b":1,"l":[{"x":1}]}}`, `{"a":{"b":{"c":2}}}`, `{"a":{"l":[]}}`)
	f.Add(`{}`, `{"a":null}`, `{"a":{"b":[1,[2]]}}`)
	f.Fuzz(func(t *testing.T, a, b, c string) {
		var all, copies []addon.Values
		for _, text := range []string{a, b, c} {
			var values, same addon.Values
			if json.Unmarshal([]byte(text), &values) != nil || json.Unmarshal([]byte(text), &same) != nil {
				return
			}
			all, copies = append(all, values), append(copies, same)
		}
		merged := addon.MergeValues(all...)
		if !reflect.DeepEqual(merged, addon.MergeValues(copies...)) {
			t.Fatal("two merges of the same values differ")
		}
		if !reflect.DeepEqual(merged, addon.MergeValues(merged)) || !reflect.DeepEqual(merged,
			addon.MergeValues(addon.MergeValues(all[0], all[1]), all[2])) {
			t.Fatal("the result is not that of the steps")
		}
		scribble(map[string]any(merged))
		if !reflect.DeepEqual(all, copies) {
			t.Fatal("the result shares memory with an input, or an input was changed")
		}
	})
}

// scribble changes every map and list.
func scribble(value any) {
	switch typed := value.(type) {
	case map[string]any:
		for _, item := range typed {
			scribble(item)
		}
		typed["scribble"] = true
	case []any:
		for i, item := range typed {
			scribble(item)
			typed[i] = "scribble"
		}
	}
}

// Shows: hub/library-annotation
func TestValuesFromTheAnnotation(t *testing.T) {
	tests := map[string]struct {
		text  string
		want  addon.Values
		fails bool
	}{
		"without it there are none":       {"", nil, false},
		"numbers stay whole":              {`{"replicas":1000000,"share":0.5}`, addon.Values{"replicas": int64(1000000), "share": 0.5}, false},
		"values may be nested":            {`{"global":{"a":"b"}}`, addon.Values{"global": map[string]any{"a": "b"}}, false},
		"what is no object is an error":   {`["a"]`, nil, true},
		"what is cut off is an error":     {`{"a":`, nil, true},
		"what follows an object is wrong": {`{} {}`, nil, true},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			r := request(t)
			r.AddOn.Annotations[names.AnnotationValues] = tc.text
			got, err := addon.GetValuesFromAddonAnnotation(t.Context(), r)
			assert.Equal(t, tc.fails, err != nil)
			assert.Equal(t, tc.fails, addon.IsInvalid(err))
			assert.Equal(t, tc.want, got)
		})
	}
}

// Shows: hub/library-structs
func TestStructsInListsAndMapsAreValues(t *testing.T) {
	type port struct{ Number int }
	type settings struct {
		ByName   map[string]port
		Several  map[string][]port
		Pointers []*port
		None     *port
		Nobody   []*port
		Labels   map[string]string
		At       time.Time
		Any      any
	}
	at := time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC)
	one := map[string]any{"Number": 1}
	assert.Equal(t, addon.Values{
		"ByName": map[string]any{"a": one}, "Several": map[string]any{"a": []any{one}}, "Pointers": []any{one, (*port)(nil)},
		"None": (*port)(nil), "Nobody": []any{}, "Labels": map[string]string{"l": "v"}, "At": at, "Any": "x",
	}, addon.StructToValues(settings{
		ByName: map[string]port{"a": {1}}, Several: map[string][]port{"a": {{1}}}, Pointers: []*port{{1}, nil},
		Labels: map[string]string{"l": "v"}, At: at, Any: "x",
	}))
}

// Shows: hub/library-structs
func TestStructsAreValues(t *testing.T) {
	type container struct {
		Name  string `json:"name"`
		Ports []int  `json:"ports,omitempty"`
	}
	type settings struct {
		Image      string      `json:"image"`
		Main       container   `json:"main"`
		Containers []container `json:"containers"`
		hidden     string
	}
	in := settings{Image: "i", Main: container{Name: "m", Ports: []int{1}}, Containers: []container{{Name: "a"}}, hidden: "h"}
	assert.Equal(t, addon.Values{
		"Image": "i", "Main": map[string]any{"Name": "m", "Ports": []int{1}},
		"Containers": []any{map[string]any{"Name": "a", "Ports": []int(nil)}},
	}, addon.StructToValues(&in))
	assert.Equal(t, addon.Values{}, addon.StructToValues("text"))
	assert.Equal(t, addon.Values{}, addon.StructToValues(nil))
	got, err := addon.JSONStructToValues(in)
	require.NoError(t, err)
	assert.Equal(t, addon.Values{
		"image": "i", "main": map[string]any{"name": "m", "ports": []any{int64(1)}},
		"containers": []any{map[string]any{"name": "a"}},
	}, got)
	_, err = addon.JSONStructToValues([]string{"no struct"})
	require.ErrorContains(t, err, "[]string")
}
