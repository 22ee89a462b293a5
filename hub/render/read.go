package render

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/internal/message"
)

// File is a file with objects in YAML or JSON; several are separated by "---".
type File struct {
	// Name is the name of the file for messages.
	Name string
	// Text is its content.
	Text string
	// Stored are objects as a hub has them, instead of Text. It has checked them and set their defaults, and its
	// definitions may be later ones, so fields that are not known are no errors. They are changed, and one whose name an
	// object of a file has is left out.
	Stored []*unstructured.Unstructured
}

// found is an object of a file.
type found struct {
	*unstructured.Unstructured
	// file is the name of the file, and where that and the line at which the document with the object begins.
	file, where string
}

// groupKustomize is the group of the files that tell kustomize what to do; they are no objects of a hub.
const groupKustomize = "kustomize.config.k8s.io"

// read returns the objects of files: those of an API of OCM are checked and have their defaults. The error lists all
// that is wrong.
func read(files []File) ([]found, error) {
	known, err := shipped()
	if err != nil {
		return nil, err
	}
	var all []found
	var problems []error
	first := map[string]string{}
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b File) int { return cmp.Compare(len(a.Stored), len(b.Stored)) })
	for _, file := range files {
		objects, err := parse(file)
		if err != nil {
			problems = append(problems, err)
		}
		for _, object := range objects {
			if object.GroupVersionKind().Group == groupKustomize {
				continue
			}
			if err := file.check(known, object.Unstructured); err != nil {
				problems = append(problems, fmt.Errorf("%s: %s: %w", object.where, describe(object.Unstructured), err))
				continue
			}
			name := identity(object.Unstructured)
			earlier, taken := first[name]
			switch {
			case taken && file.Stored != nil:
				continue
			case taken:
				problems = append(problems, fmt.Errorf("%s: %s: it is in %s, too; remove one of the two", object.where,
					describe(object.Unstructured), earlier))
				continue
			}
			first[name] = object.where
			all = append(all, object)
		}
	}
	return all, errors.Join(problems...)
}

// Objects returns the objects of files, as they are rendered. The error lists all that is wrong with them.
func Objects(files []File) ([]*unstructured.Unstructured, error) {
	found, err := read(files)
	all := make([]*unstructured.Unstructured, 0, len(found))
	for _, object := range found {
		all = append(all, object.Unstructured)
	}
	return all, err
}

// check returns what is wrong with an object of the file, and sets its defaults.
func (f File) check(known definitions, u *unstructured.Unstructured) error {
	if f.Stored != nil {
		return nil
	}
	return check(known, u)
}

// check returns what is wrong with an object, and sets its defaults.
func check(known definitions, u *unstructured.Unstructured) error {
	var missing []string
	for _, need := range []struct{ path, value string }{
		{"apiVersion", u.GetAPIVersion()}, {"kind", u.GetKind()}, {"metadata.name", u.GetName()},
	} {
		if need.value == "" {
			missing = append(missing, need.path+": it is required")
		}
	}
	if len(missing) > 0 {
		return errors.New(strings.Join(missing, "; "))
	}
	if _, err := schema.ParseGroupVersion(u.GetAPIVersion()); err != nil {
		return fmt.Errorf("apiVersion: %w", err)
	}
	of, ours, err := known.find(u.GroupVersionKind())
	if err != nil || !ours {
		return err
	}
	return of.complete(u)
}

// identity is the same for two objects that a hub could not have at once.
func identity(u *unstructured.Unstructured) string {
	return u.GroupVersionKind().GroupKind().String() + " " + u.GetNamespace() + "/" + u.GetName()
}

// describe returns kind, namespace and name of an object.
func describe(u *unstructured.Unstructured) string {
	return message.Object(cmp.Or(u.GetKind(), "an object without a kind"), u.GetNamespace(), u.GetName())
}

// parse returns the objects of a file, those of lists one by one.
func parse(file File) ([]found, error) {
	var all []found
	for _, object := range file.Stored {
		all = append(all, found{Unstructured: object, file: file.Name, where: file.Name})
	}
	var problems []error
	var current strings.Builder
	begin, line := 1, 0
	take := func() {
		where := fmt.Sprintf("%s:%d", file.Name, begin)
		objects, err := parseDocument(current.String())
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", where, err))
		}
		for _, object := range objects {
			all = append(all, found{Unstructured: object, file: file.Name, where: where})
		}
		current.Reset()
		begin = line + 1
	}
	for part := range strings.Lines(file.Text) {
		line++
		if isSeparator(part) {
			take()
			continue
		}
		if blank := strings.TrimSpace(part) == "" || strings.HasPrefix(part, "#"); blank && current.Len() == 0 {
			begin = line + 1
			continue
		}
		current.WriteString(part)
	}
	take()
	return all, errors.Join(problems...)
}

// isSeparator reports whether a line separates documents.
func isSeparator(line string) bool {
	rest, separates := strings.CutPrefix(line, "---")
	rest = strings.TrimSpace(rest)
	return separates && (rest == "" || strings.HasPrefix(rest, "#"))
}

// parseDocument returns the objects of one document.
func parseDocument(text string) ([]*unstructured.Unstructured, error) {
	raw, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("it is no YAML: %w", err)
	}
	var content any
	if err := json.Unmarshal(raw, &content); err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	switch typed := content.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		if err := checkHead(typed); err != nil {
			return nil, err
		}
		return itemsOf(&unstructured.Unstructured{Object: typed})
	}
	return nil, fmt.Errorf("it is no object but %.40q", strings.TrimSpace(text))
}

// checkHead returns why the head of an object cannot be read: accessors take a value of another type for none.
func checkHead(object map[string]any) error {
	for _, field := range []string{"apiVersion", "kind"} {
		if value, isText := object[field].(string); object[field] != nil && !isText {
			return fmt.Errorf("%s: it is no text but %v", field, value)
		}
	}
	metadata, isMap := object["metadata"].(map[string]any)
	if object["metadata"] != nil && !isMap {
		return errors.New("metadata: it is no object")
	}
	for _, field := range []string{"name", "namespace"} {
		if _, isText := metadata[field].(string); metadata[field] != nil && !isText {
			return fmt.Errorf("metadata.%s: it is no text; put it in quotes", field)
		}
	}
	return nil
}

// itemsOf returns an object, or the items of a list.
func itemsOf(u *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if items, isList := u.Object["items"]; !isList || items == nil || !strings.HasSuffix(u.GetKind(), "List") {
		return []*unstructured.Unstructured{u}, nil
	}
	var all []*unstructured.Unstructured
	err := u.EachListItem(func(item runtime.Object) error {
		one, isObject := item.(*unstructured.Unstructured)
		if !isObject {
			return errors.New("an item is no object")
		}
		if err := checkHead(one.Object); err != nil {
			return err
		}
		all = append(all, one)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("items: %w", err)
	}
	return all, nil
}

// resources returns the resources that a kind may have: what a CustomResourceDefinition among the objects states, or
// else by the usual rule.
func resources(all []found) map[schema.GroupKind]string {
	of := map[schema.GroupKind]string{}
	for _, object := range all {
		kind := object.GroupVersionKind()
		if _, stated := of[kind.GroupKind()]; !stated {
			plural, _ := meta.UnsafeGuessKindToResource(kind)
			of[kind.GroupKind()] = plural.Resource
		}
	}
	for _, object := range all {
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
		plural, _, _ := unstructured.NestedString(object.Object, "spec", "names", "plural")
		if plural != "" {
			of[schema.GroupKind{Group: group, Kind: kind}] = plural
		}
	}
	return of
}
