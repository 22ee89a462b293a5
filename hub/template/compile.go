package template

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/message"
)

// Compiled is a template that is ready to be rendered for many clusters: it knows the places of its variables, and
// which of its objects are the same on all clusters. It is never changed, and several goroutines may use it at a time.
type Compiled struct {
	template  *Template
	manifests []manifest
	// optionManifests is the index of the manifest that each of the template's manifest configs is about; -1 for none.
	optionManifests []int
}

// manifest is an object of a template.
type manifest struct {
	// object is the same for all renderings where nothing below changes, so that callers may remember what they made of
	// it.
	object *unstructured.Unstructured
	// description is its kind, namespace and name as in the template.
	description string
	// below are the places that rendering changes.
	below []place
}

// place is a place in a manifest where something is replaced, or above such a place.
type place struct {
	// key is the key in an object; index is the position in a list, if the key is empty.
	key   string
	index int
	// name is the key where that has variables.
	name *text
	// value is the string that stands at the place, where it has variables or is to become a number or a boolean.
	value *text
	wants wanted
	// below are the places below this one, ordered by key.
	below []place
}

// Compile prepares a template for rendering. The template must not be changed afterwards.
func Compile(t *Template) *Compiled {
	c := &Compiled{template: t, manifests: make([]manifest, 0, len(t.Manifests))}
	for _, object := range t.Manifests {
		u := &unstructured.Unstructured{Object: object}
		c.manifests = append(c.manifests, manifest{
			object: u, description: describeObject(u), below: placesIn(object, typeOfKind(u.GetAPIVersion(), u.GetKind())),
		})
	}
	c.optionManifests = optionManifests(t)
	return c
}

// optionManifests returns the index of the first manifest that each of the manifest configs is about; -1 for none.
func optionManifests(t *Template) []int {
	if len(t.ManifestConfigs) == 0 {
		return nil
	}
	first := make(map[workv1.ResourceIdentifier]int, len(t.Manifests))
	for i, object := range t.Manifests {
		u := &unstructured.Unstructured{Object: object}
		plural, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind())
		id := workv1.ResourceIdentifier{
			Group: plural.Group, Resource: plural.Resource, Namespace: u.GetNamespace(), Name: u.GetName(),
		}
		if _, taken := first[id]; !taken {
			first[id] = i
		}
	}
	all := make([]int, 0, len(t.ManifestConfigs))
	for i := range t.ManifestConfigs {
		at, found := first[t.ManifestConfigs[i].ResourceIdentifier]
		if !found {
			at = -1
		}
		all = append(all, at)
	}
	return all
}

// weigh estimates how many bytes are taken beside the content of the template.
func (c *Compiled) weigh() int {
	sum := 0
	for i := range c.manifests {
		sum += weighPlaces(c.manifests[i].below)
	}
	return sum
}

func weighPlaces(all []place) int {
	const ofPlace, ofText, ofPart = 80, 48, 64
	sum := ofPlace * 2 * len(all) // a list grows by doubling
	for _, p := range all {
		for _, t := range []*text{p.name, p.value} {
			if t != nil {
				sum += ofText + ofPart*2*len(t.parts)
			}
		}
		sum += weighPlaces(p.below)
	}
	return sum
}

// Template returns the template that was compiled.
func (c *Compiled) Template() *Template { return c.template }

// placesIn returns the places in an object or a list of a type that rendering changes; nil is an unknown type.
func placesIn(value any, takes reflect.Type) []place {
	var all []place
	switch typed := value.(type) {
	case map[string]any:
		for key, item := range typed {
			p := place{key: key}
			if strings.Contains(key, openBraces) {
				name := parseText(key)
				p.name = &name
			}
			if p.lookAt(item, fieldType(takes, key)) || p.name != nil {
				all = append(all, p)
			}
		}
		slices.SortFunc(all, func(a, b place) int { return strings.Compare(a.key, b.key) })
	case []any:
		for i, item := range typed {
			p := place{index: i}
			if p.lookAt(item, itemType(takes)) {
				all = append(all, p)
			}
		}
	}
	return all
}

// lookAt completes a place, and reports whether rendering changes something there.
func (p *place) lookAt(value any, takes reflect.Type) bool {
	raw, isText := value.(string)
	if !isText {
		p.below = placesIn(value, takes)
		return len(p.below) > 0
	}
	p.wants = wantedBy(takes)
	variable := strings.Contains(raw, openBraces)
	if !variable && (p.wants.kind == wantsAnything || p.wants.kind == wantsIntegerOrText) {
		return false
	}
	parsed := parseText(raw)
	p.value = &parsed
	if parsed.isWhole() && parsed.parts[0].as.kind != wantsAnything {
		p.wants = parsed.parts[0].as
	}
	return true
}

// step returns a place as a step of a JSON path.
func (p *place) step() string {
	switch {
	case p.name == nil && p.key == "":
		return "[" + strconv.Itoa(p.index) + "]"
	case isVariableName(strings.ReplaceAll(p.key, "-", "_")):
		return "." + p.key
	}
	return "[" + strconv.Quote(p.key) + "]"
}

// substitution replaces the variables in one manifest and collects the problems.
type substitution struct {
	// values returns the value of a variable; inNames the one that counts within names of objects.
	values, inNames func(name string) (string, bool)

	report func(path, message string)
	// full reports whether no more problems are kept.
	full func() bool
	// steps lead to the current place in the manifest.
	steps []*place
	// missing reports that a variable has no value.
	missing bool
	// left is how many bytes the values of variables may still take in the manifests of this rendering.
	left *int
}

// maxValues is how many bytes the values of variables may take in the manifests of an add-on for one cluster. A short
// template with a long value would otherwise take the memory of the hub manager before it is found too large for works.
const maxValues = 4 << 20

// spend reports whether there is room for a value, and reports the first one for which there is none.
func (s *substitution) spend(bytes int) bool {
	before := *s.left
	*s.left = max(before-bytes, -1)
	if before >= 0 && *s.left < 0 {
		s.problem(fmt.Sprintf("the values of variables take more than %d bytes in the manifests for this cluster",
			maxValues))
	}
	return *s.left >= 0
}

// object returns an object with its variables replaced. It shares with the original what does not change.
func (s *substitution) object(from map[string]any, below []place) map[string]any {
	to := maps.Clone(from)
	for i := range below {
		if below[i].name != nil {
			delete(to, below[i].key)
		}
	}
	for i := range below {
		p := &below[i]
		s.steps = append(s.steps, p)
		key := p.key
		if p.name != nil {
			key, _ = s.expand(p.name, true)
			if _, taken := to[key]; taken {
				s.problem(fmt.Sprintf("its key becomes %s, which stands there already", message.Quote(key)))
			}
		}
		to[key] = s.value(from[p.key], p)
		s.steps = s.steps[:len(s.steps)-1]
	}
	return to
}

func (s *substitution) list(from []any, below []place) []any {
	to := slices.Clone(from)
	for i := range below {
		p := &below[i]
		s.steps = append(s.steps, p)
		to[p.index] = s.value(from[p.index], p)
		s.steps = s.steps[:len(s.steps)-1]
	}
	return to
}

// value returns what stands at a place afterwards.
func (s *substitution) value(from any, p *place) any {
	if p.value != nil {
		return s.scalar(p)
	}
	switch typed := from.(type) {
	case map[string]any:
		if len(p.below) > 0 {
			return s.object(typed, p.below)
		}
	case []any:
		if len(p.below) > 0 {
			return s.list(typed, p.below)
		}
	}
	return from
}

// scalar returns the string at a place with its variables replaced, as what the field takes.
func (s *substitution) scalar(p *place) any {
	whole := p.value.isWhole()
	value, complete := s.expand(p.value, !whole)
	if !complete {
		return value
	}
	converted, problem := p.wants.convert(value)
	switch {
	case problem == "":
	case whole:
		s.problem(fmt.Sprintf("%s, the value of variable %s, %s", shortened(value), p.value.parts[0].name, problem))
	default:
		s.problem(shortened(value) + " " + problem)
	}
	return converted
}

// expand replaces the variables in a text; plain forbids to state types.
func (s *substitution) expand(t *text, plain bool) (string, bool) {
	if plain {
		for _, p := range t.parts {
			if p.as.kind != wantsAnything {
				s.problem(fmt.Sprintf("{{%s}} must be the whole value: a type is for a value alone; write {{%s}}",
					p.source, p.name))
			}
		}
	}
	inName := !t.isWhole() && s.atName()
	value := func(p part) (got string, found bool) {
		of := s.values
		if inName && !p.isNamespace() {
			of = s.inNames
		}
		if got, found = of(p.name); found && !s.spend(len(got)) {
			got = ""
		}
		return got, found
	}
	return t.expand(value, func(p part) {
		s.missing = true
		s.problem(missingMessage(p.source))
	})
}

// atName reports whether the current place has the name of an object, or is in the list of the names of a rule.
func (s *substitution) atName() bool {
	at := s.steps[len(s.steps)-1]
	if at.key == "" && len(s.steps) > 1 {
		return s.steps[len(s.steps)-2].key == "resourceNames"
	}
	return at.key == "name" || strings.HasSuffix(at.key, "Name")
}

// problem reports a problem at the current place, whose path may be long.
func (s *substitution) problem(text string) {
	path := ""
	if !s.full() {
		path = s.path()
	}
	s.report(path, text)
}

func (s *substitution) path() string {
	var path strings.Builder
	for _, p := range s.steps {
		path.WriteString(p.step())
	}
	return path.String()
}
