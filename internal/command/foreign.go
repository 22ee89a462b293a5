package command

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Foreign collects what arguments ask for that other programs with the same APIs have and this one has not: it is
// accepted, so that their command lines work here, and told once.
type Foreign struct{ notes []string }

// Notes returns what was asked for in vain, each with the reason, in the order of the arguments.
func (f *Foreign) Notes() []string { return slices.Clone(f.notes) }

// Note adds a note.
func (f *Foreign) Note(format string, args ...any) {
	if note := fmt.Sprintf(format, args...); !slices.Contains(f.notes, note) {
		f.notes = append(f.notes, note)
	}
}

// Accept has flags with a value accepted that have no effect, because of why. Help does not list them.
func (f *Foreign) Accept(flags *pflag.FlagSet, why string, names ...string) {
	for _, name := range names {
		flags.Var(&ignored{name: name, why: why, notes: f}, name, why)
		_ = flags.MarkHidden(name)
	}
}

// AcceptBool does the same with flags that need no value.
func (f *Foreign) AcceptBool(flags *pflag.FlagSet, why string, names ...string) {
	f.Accept(flags, why, names...)
	for _, name := range names {
		flags.Lookup(name).NoOptDefVal = strconv.FormatBool(true)
	}
}

// ignored is the value of a flag without an effect.
type ignored struct {
	name, why string
	notes     *Foreign
}

// String implements pflag.Value.
func (*ignored) String() string { return "" }

// Type implements pflag.Value.
func (*ignored) Type() string { return "string" }

// Set implements pflag.Value.
func (i *ignored) Set(string) error {
	i.notes.Note("--%s has no effect: %s", i.name, i.why)
	return nil
}

// Gates is the value of a flag that turns feature gates on and off: name=true or name=false, separated by commas.
type Gates struct {
	// Known are the names of all gates, each with what becomes of it.
	Known map[string]Gate
	// Notes collects what was asked for in vain.
	Notes *Foreign
}

// Gate is one feature gate.
type Gate struct {
	// Value is what the gate turns; nil where there is nothing to turn.
	Value *bool
	// On is what holds whatever the gate says, where there is nothing to turn.
	On bool
}

// all are the names that stand for many gates at once. Which of those here are of which stage is not ours to say.
var all = []string{"AllAlpha", "AllBeta"}

// String implements pflag.Value.
func (g *Gates) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(g.Known)) {
		if value := g.Known[name].Value; value != nil {
			parts = append(parts, name+"="+strconv.FormatBool(*value))
		}
	}
	return strings.Join(parts, ",")
}

// Type implements pflag.Value.
func (*Gates) Type() string { return "gates" }

// Set implements pflag.Value; what it does not name stays as it is.
func (g *Gates) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, value, found := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		on, err := strconv.ParseBool(strings.TrimSpace(value))
		if !found || err != nil {
			return fmt.Errorf("%q is not of the form name=true or name=false", part)
		}
		if slices.Contains(all, name) {
			g.Notes.Note("feature gate %s has no effect: name the gates one by one", name)
			continue
		}
		gate, known := g.Known[name]
		switch {
		case !known:
			return fmt.Errorf("unknown feature gate %q, known are %s", name,
				strings.Join(append(slices.Sorted(maps.Keys(g.Known)), all...), ", "))
		case gate.Value != nil:
			*gate.Value = on
		case gate.On != on:
			g.Notes.Note("feature gate %s=%t has no effect: here it is always %s", name, on,
				map[bool]string{true: "on", false: "off"}[gate.On])
		}
	}
	return nil
}
