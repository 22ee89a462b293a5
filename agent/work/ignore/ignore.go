package ignore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/jsonpath"
	"github.com/spokelet/spokelet/internal/message"
)

// Fields returns a copy of an object without the fields of the entries that have the condition. The default condition
// of an entry is OnSpokePresent. A StoppedError means that the context ended; any other error is about the entries.
func Fields(ctx context.Context, object map[string]any, entries []workv1.IgnoreField,
	when workv1.IgnoreFieldsCondition,
) (map[string]any, error) {
	within, cancel := context.WithTimeoutCause(ctx, jqTotal, errJQTotal)
	defer cancel()
	budget := jsonpath.NewBudget()
	rest := runtime.DeepCopyJSON(object)
	for i := range entries {
		entry := &entries[i]
		switch entry.Condition {
		case when:
		case "":
			if when != workv1.IgnoreFieldsConditionOnSpokePresent {
				continue
			}
		case workv1.IgnoreFieldsConditionOnSpokePresent, workv1.IgnoreFieldsConditionOnSpokeChange:
			continue
		default:
			return nil, fmt.Errorf("the condition %q is unknown; use OnSpokePresent or OnSpokeChange", entry.Condition)
		}
		var err error
		if rest, err = ignoreEntry(within, rest, entry, budget); err != nil {
			return nil, err
		}
	}
	if err := sameIdentity(object, rest); err != nil {
		return nil, err
	}
	return rest, nil
}

// ignoreEntry removes the fields of one entry from an object.
func ignoreEntry(ctx context.Context, object map[string]any, entry *workv1.IgnoreField, budget *jsonpath.Budget,
) (map[string]any, error) {
	for _, path := range entry.JSONPaths {
		if err := ignorePath(object, path, budget); err != nil {
			return nil, err
		}
	}
	var err error
	if len(entry.JSONPointers) > 0 {
		if object, err = ignorePointers(object, entry.JSONPointers); err != nil {
			return nil, err
		}
	}
	for _, expression := range entry.JQPathExpressions {
		if object, err = ignoreJQ(ctx, object, expression); err != nil {
			return nil, err
		}
	}
	return object, nil
}

// sameIdentity returns an error if the rest does not identify the same object any more.
func sameIdentity(full, rest map[string]any) error {
	name := func(object map[string]any, key string) any {
		meta, _ := object["metadata"].(map[string]any)
		return meta[key]
	}
	if full["apiVersion"] != rest["apiVersion"] || full["kind"] != rest["kind"] ||
		name(full, "name") != name(rest, "name") || name(full, "namespace") != name(rest, "namespace") {
		return errors.New("apiVersion, kind, metadata.name and metadata.namespace cannot be ignored")
	}
	return nil
}

// ignorePath removes the field at the end of a JSON path from every map that the rest of the path selects. A path that
// selects nothing is not an error. A path that cannot be parsed, or that does not end in a field of a map, is one.
func ignorePath(object map[string]any, path string, budget *jsonpath.Budget) error {
	if err := jsonpath.CheckLength("JSON path", path); err != nil {
		return err
	}
	parent, field, err := splitPath(path)
	if err != nil {
		return err
	}
	parents := []any{object}
	if parent != "" {
		parsed, err := jsonpath.Parse(parent)
		if err != nil {
			return fmt.Errorf("the JSON path %s: %w", jsonpath.Quote(path), err)
		}
		if parents, err = parsed.Find(object, budget); err != nil {
			return fmt.Errorf("the JSON path %s: %w", jsonpath.Quote(path), err)
		}
	}
	for _, found := range parents {
		switch found := found.(type) {
		case nil:
		case map[string]any:
			delete(found, field)
		default:
			return fmt.Errorf("the JSON path %s means a field of something that has none; "+
				"only fields of maps can be ignored", jsonpath.Quote(path))
		}
	}
	return nil
}

// splitPath splits a JSON path into the path of the parent, which is empty for the object itself, and the name of a
// field.
func splitPath(path string) (parent, field string, err error) {
	bare := strings.TrimPrefix(strings.TrimSpace(path), "$")
	if inner, ok := strings.CutSuffix(bare, "']"); ok {
		at := strings.LastIndex(inner, "['")
		if at < 0 {
			return "", "", fmt.Errorf("the JSON path %s cannot be parsed: the bracket is not opened", jsonpath.Quote(path))
		}
		bare = inner[:at] + "." + inner[at+len("['"):]
	}
	at := -1
	depth := 0
	for i := 0; i < len(bare); i++ {
		switch bare[i] {
		case '\\':
			i++
		case '[':
			depth++
		case ']':
			depth--
		case '.':
			if depth == 0 {
				at = i
			}
		}
	}
	if at < 0 || (bare[0] != '.' && bare[0] != '[') {
		return "", "", fmt.Errorf("the JSON path %s cannot be parsed: it must begin with a dot", jsonpath.Quote(path))
	}
	parent, field = bare[:at], strings.ReplaceAll(bare[at+1:], `\`, "")
	switch {
	case field == "":
		return "", "", fmt.Errorf("the JSON path %s cannot be parsed: it ends in a dot", jsonpath.Quote(path))
	case field == "*" || strings.ContainsAny(field, "[]"):
		return "", "", fmt.Errorf("the JSON path %s does not end in the name of a field; "+
			"use a JSON pointer or a jq expression for elements of lists", jsonpath.Quote(path))
	}
	return parent, field, nil
}

// ignorePointers removes the values at JSON pointers (RFC 6901). A missing value is not an error.
func ignorePointers(object map[string]any, pointers []string) (map[string]any, error) {
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding the manifest: %w", err)
	}
	removals := make([]map[string]string, len(pointers))
	for i, pointer := range pointers {
		if err := jsonpath.CheckLength("JSON pointer", pointer); err != nil {
			return nil, err
		}
		if !strings.HasPrefix(pointer, "/") {
			return nil, fmt.Errorf("the JSON pointer %s must begin with a slash", jsonpath.Quote(pointer))
		}
		removals[i] = map[string]string{"op": "remove", "path": pointer}
	}
	operations, err := json.Marshal(removals)
	if err != nil {
		return nil, fmt.Errorf("encoding the JSON pointers: %w", err)
	}
	options := jsonpatch.NewApplyOptions()
	options.AllowMissingPathOnRemove = true
	patch, err := jsonpatch.DecodePatch(operations)
	if err == nil {
		raw, err = patch.ApplyWithOptions(raw, options)
	}
	if err != nil {
		return nil, fmt.Errorf("one of the JSON pointers cannot be removed: %s", message.Cut(err.Error(), message.MaxCause))
	}
	rest := map[string]any{}
	if err := utiljson.Unmarshal(raw, &rest); err != nil {
		return nil, fmt.Errorf("decoding what the JSON pointers left: %w", err)
	}
	return rest, nil
}
