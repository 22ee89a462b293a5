package template

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/message"
)

// maxProblems is the number of problems that an error has and lists.
const maxProblems = 20

// Problem is an error in a template.
type Problem struct {
	// Manifest is the index of the manifest in the template, from 0.
	Manifest int
	// Object is kind, namespace and name of the manifest as in the template.
	Object string
	// Path is the place in the manifest as a JSON path; empty means the manifest as a whole.
	Path string
	// Message describes the error.
	Message string
}

// String returns the problem in one line.
func (p Problem) String() string {
	where := fmt.Sprintf("manifest %d (%s)", p.Manifest, p.Object)
	if p.Path != "" {
		where += ", " + p.Path
	}
	return where + ": " + p.Message
}

// ProblemsError lists the errors in a template. It is an addon.InvalidError.
type ProblemsError struct {
	// Template is the name of the AddOnTemplate.
	Template string
	// Hint is the remedy; it may be empty.
	Hint string
	// Problems are the first of all, ordered by manifest and path.
	Problems []Problem
	// All is how many there are.
	All int
}

// Error implements error.
func (e *ProblemsError) Error() string {
	texts := make([]string, 0, len(e.Problems))
	for _, problem := range e.Problems {
		texts = append(texts, problem.String())
	}
	text := fmt.Sprintf("AddOnTemplate %s cannot be rendered: %s", e.Template,
		message.ListOf(texts, e.All, "; "))
	if e.Hint != "" {
		text += ". " + e.Hint
	}
	return text
}

// Unwrap makes the error an addon.InvalidError.
func (e *ProblemsError) Unwrap() error { return &addon.InvalidError{Message: e.Error()} }

// describeObject returns kind, namespace and name of an object.
func describeObject(u *unstructured.Unstructured) string {
	return message.Cut(message.Object(cmp.Or(u.GetKind(), "no kind"), u.GetNamespace(), u.GetName()), message.MaxCause)
}
