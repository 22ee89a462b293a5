package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// What the schemas of the API module allow, and the Go types that they were made from do not. Schemas say "format:
// int32" and "format: date-time", which API servers do not check, or not as Go does.
const (
	minimum, maximum = "-2147483648", "2147483647"
	// durations are those of Go without a sign, so short that they do not overflow. They are written in the default, too.
	durations = `^(0|([0-9]{1,5}(\.[0-9]{1,9})?h|[0-9]{1,7}(\.[0-9]{1,9})?m|[0-9]{1,9}(\.[0-9]{1,9})?(s|ms|us|ns)){1,6})$`
	// times are those of RFC 3339 with capital letters, in the years 1000 to 8999: in UTC, as Go writes it again, a time
	// of the year 9999 or 0 may be one of the year 10000 or -1, which no API server takes (reconcile.PatchStatus).
	times = `^[1-8][0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?` +
		`(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	// exponents is how quantities end, exponent how those end that Go can compute.
	exponents = `([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+)))`
	exponent  = `([eE](\+|-)?[0-9]{1,2})`
)

// durationFields are the fields of type metav1.Duration, which are plain strings in schemas.
func durationFields() []string { return []string{"minSuccessTime"} }

// bounded returns a definition with bounds for everything that a schema allows and Go does not. All else stays as it
// is, byte for byte.
func bounded(raw []byte) []byte {
	raw = bytes.ReplaceAll(raw, []byte(exponents), []byte(exponent))
	lines := strings.Split(string(raw), "\n")
	var out []string
	for i, line := range lines {
		out = append(out, line)
		indent := len(line) - len(strings.TrimLeft(line, " "))
		var want [][2]string
		switch strings.TrimSpace(line) {
		case "format: int32":
			want = [][2]string{{"maximum", maximum}, {"minimum", minimum}}
		case "format: date-time":
			want = [][2]string{{"pattern", times}}
		case "x-kubernetes-int-or-string: true":
			if !isQuantity(block(lines, i, indent)) {
				want = [][2]string{{"maximum", maximum}, {"minimum", minimum}}
			}
		case "type: string":
			if isDuration(lines, i, indent) {
				want = [][2]string{{"pattern", durations}}
			}
		}
		have := block(lines, i, indent)
		for _, bound := range want {
			if !slices.ContainsFunc(have, func(key string) bool { return strings.HasPrefix(key, bound[0]+":") }) {
				out = append(out, strings.Repeat(" ", indent)+bound[0]+": "+bound[1])
			}
		}
	}
	return []byte(strings.Join(out, "\n"))
}

// block returns the keys of the mapping around a line, which all have its indent.
func block(lines []string, at, indent int) []string {
	inside := func(line string) bool {
		return strings.TrimSpace(line) == "" || strings.HasPrefix(line, strings.Repeat(" ", indent))
	}
	from, to := at, at
	for from > 0 && inside(lines[from-1]) {
		from--
	}
	for to+1 < len(lines) && inside(lines[to+1]) {
		to++
	}
	var keys []string
	for _, line := range lines[from : to+1] {
		if key := strings.TrimPrefix(line, strings.Repeat(" ", indent)); key != "" && key[0] != ' ' && key[0] != '-' {
			keys = append(keys, key)
		}
	}
	return keys
}

// isQuantity reports whether the keys of a schema are those of a resource.Quantity.
func isQuantity(keys []string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return strings.Contains(key, "numkMGTPE") })
}

// isDuration reports whether a line belongs to the schema of a field with a duration.
func isDuration(lines []string, at, indent int) bool {
	for i := at; i >= 0 && indent >= 2; i-- {
		line := lines[i]
		if len(line)-len(strings.TrimLeft(line, " ")) < indent && strings.TrimSpace(line) != "" {
			return slices.Contains(durationFields(), strings.TrimSuffix(strings.TrimSpace(line), ":"))
		}
	}
	return false
}

// check is a bound of one field, as a policy checks it.
type check struct {
	// path are the names of fields from the root; "[]" is each element of the list before it, "{}" each value of the map.
	path []string
	// good is a CEL expression about the value, which it calls %[1]s.
	good string
	// must says what the value must be, for people.
	must string
	// otherwise says why, for people; empty where a program in Go cannot read the object.
	otherwise string
	// apart reports whether the status has a subresource, so that a write changes either the status or all else.
	apart bool
}

// field returns the path as people write it.
func (c check) field() string {
	return strings.NewReplacer(".[]", "[]", ".{}", "{}").Replace(strings.Join(c.path, "."))
}

// expression returns the check as CEL. An object that was beyond the bound before may stay so: an edit of another field
// must be possible.
func (c check) expression() string {
	judged := fmt.Sprintf("(%s) ||\n(oldObject != null && !(%s))",
		c.about("object", c.path, 0), c.about("oldObject", c.path, 0))
	switch {
	case !c.apart:
		return judged
	case c.path[0] == "status":
		return "request.?subResource.orValue('') != 'status' || " + judged
	}
	return "request.?subResource.orValue('') == 'status' || " + judged
}

// about returns the check of a value at a path below root.
func (c check) about(root string, path []string, depth int) string {
	if len(path) == 0 {
		return fmt.Sprintf(c.good, root)
	}
	one := string(rune('a' + depth))
	switch path[0] {
	case "[]":
		return fmt.Sprintf("%s.all(%s, %s)", root, one, c.about(one, path[1:], depth+1))
	case "{}":
		return fmt.Sprintf("%s.all(%s, %s)", root, one, c.about(root+"["+one+"]", path[1:], depth+1))
	}
	next := root + "." + path[0]
	return fmt.Sprintf("!has(%s) || %s", next, c.about(next, path[1:], depth))
}
