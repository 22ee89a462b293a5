package policy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// set contains policies and bindings by name.
type set struct {
	policies map[string]*admissionregistrationv1.ValidatingAdmissionPolicy
	bindings map[string]*admissionregistrationv1.ValidatingAdmissionPolicyBinding
}

func newSet() set {
	return set{
		policies: map[string]*admissionregistrationv1.ValidatingAdmissionPolicy{},
		bindings: map[string]*admissionregistrationv1.ValidatingAdmissionPolicyBinding{},
	}
}

// parse decodes YAML files that contain only policies and bindings.
func parse(files [][]byte) (set, error) {
	all := newSet()
	for _, file := range files {
		documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(file)))
		for {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return set{}, fmt.Errorf("splitting the policies: %w", err)
			}
			if err := all.add(document); err != nil {
				return set{}, err
			}
		}
	}
	return all, nil
}

// add adds one YAML document to the set; an empty one is ignored.
func (s set) add(document []byte) error {
	var object map[string]any
	if err := yaml.Unmarshal(document, &object); err != nil {
		return fmt.Errorf("decoding a policy: %w", err)
	}
	if len(object) == 0 {
		return nil
	}
	switch kind := object["kind"]; kind {
	case "ValidatingAdmissionPolicy":
		var policy admissionregistrationv1.ValidatingAdmissionPolicy
		if err := yaml.UnmarshalStrict(document, &policy); err != nil {
			return fmt.Errorf("decoding a policy: %w", err)
		}
		s.policies[policy.Name] = &policy
	case "ValidatingAdmissionPolicyBinding":
		var binding admissionregistrationv1.ValidatingAdmissionPolicyBinding
		if err := yaml.UnmarshalStrict(document, &binding); err != nil {
			return fmt.Errorf("decoding a binding: %w", err)
		}
		s.bindings[binding.Name] = &binding
	default:
		return fmt.Errorf("decoding a policy: %v is none", kind)
	}
	return nil
}
