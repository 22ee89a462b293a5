package change

import (
	"fmt"
	"strings"

	"github.com/gonvenience/ytbx"
	"github.com/homeport/dyff/pkg/dyff"
	yamlv3 "gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Field is a field of an object that differs. A list of named entries, such as containers, is compared by the names.
type Field struct {
	Kind Kind   `json:"change"`
	Path string `json:"path"`
	// From and To are the values as YAML; empty where there is none.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// fieldsOf returns the fields in which two objects of one name differ.
func fieldsOf(before, after *unstructured.Unstructured) ([]Field, error) {
	before, after = masks(before, after)
	from, err := document(before)
	if err != nil {
		return nil, err
	}
	to, err := document(after)
	if err != nil {
		return nil, err
	}
	report, err := dyff.CompareInputFiles(from, to, dyff.KubernetesEntityDetection(false), dyff.DetectRenames(false))
	if err != nil {
		return nil, fmt.Errorf("comparing the fields: %w", err)
	}
	var all []Field
	for _, diff := range report.Diffs {
		path := "the object"
		if diff.Path != nil {
			path = diff.Path.ToDotStyle()
		}
		for _, detail := range diff.Details {
			field := Field{Kind: Changed, Path: path}
			if field.From, err = text(detail.From); err != nil {
				return nil, err
			}
			if field.To, err = text(detail.To); err != nil {
				return nil, err
			}
			switch detail.Kind {
			case dyff.ADDITION:
				field.Kind = Added
			case dyff.REMOVAL:
				field.Kind = Removed
			}
			all = append(all, field)
		}
	}
	return all, nil
}

// document returns an object as dyff reads it.
func document(u *unstructured.Unstructured) (ytbx.InputFile, error) {
	raw, err := u.MarshalJSON() // JSON is YAML, with sorted keys.
	if err != nil {
		return ytbx.InputFile{}, fmt.Errorf("encoding an object: %w", err)
	}
	var node yamlv3.Node
	if err := yamlv3.Unmarshal(raw, &node); err != nil {
		return ytbx.InputFile{}, fmt.Errorf("decoding an object: %w", err)
	}
	block(&node)
	return ytbx.InputFile{Documents: []*yamlv3.Node{&node}}, nil
}

// block gives a node the style of YAML that people write.
func block(node *yamlv3.Node) {
	node.Style = 0
	for _, child := range node.Content {
		block(child)
	}
}

// text returns a node as YAML; empty for none.
func text(node *yamlv3.Node) (string, error) {
	if node == nil {
		return "", nil
	}
	var out strings.Builder
	encoder := yamlv3.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(node); err != nil {
		return "", fmt.Errorf("encoding a value: %w", err)
	}
	return strings.TrimSuffix(out.String(), "\n"), encoder.Close()
}
