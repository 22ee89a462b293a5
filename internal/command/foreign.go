package command

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Foreign collects the flags and feature gates of OCM's programs that were given and have no effect here. They are
// accepted, so that command lines of these programs work, and logged once.
type Foreign struct{ notes []Note }

// Note is one flag or feature gate that was given and has no effect.
type Note struct {
	// Flag is the flag with its dashes, and Reason why it has no effect.
	Flag, Reason string
}

// noEffect is the annotation of a flag that has no effect; its value is the reason.
const noEffect = "spokelet.io/no-effect"

// Notes returns the notes in the order of the arguments, each once.
func (f *Foreign) Notes() []Note { return f.notes }

// Log logs the notes.
func (f *Foreign) Log(ctx context.Context) {
	for _, note := range f.notes {
		ctrl.LoggerFrom(ctx).Info("a flag has no effect", "flag", note.Flag, "reason", note.Reason)
	}
}

// Note adds a note, unless the flag has one.
func (f *Foreign) Note(flag, reason string) {
	for _, note := range f.notes {
		if note.Flag == flag {
			return
		}
	}
	f.notes = append(f.notes, Note{Flag: flag, Reason: reason})
}

// Accept adds flags with a value that have no effect for a reason. Help does not list them.
func (f *Foreign) Accept(flags *pflag.FlagSet, reason string, names ...string) {
	for _, name := range names {
		flag := flags.VarPF(&ignored{flag: "--" + name, reason: reason, notes: f}, name, "", reason)
		flag.Hidden, flag.Annotations = true, map[string][]string{noEffect: {reason}}
	}
}

// AcceptBool does the same with flags that need no value.
func (f *Foreign) AcceptBool(flags *pflag.FlagSet, reason string, names ...string) {
	f.Accept(flags, reason, names...)
	for _, name := range names {
		flags.Lookup(name).NoOptDefVal = strconv.FormatBool(true)
	}
}

// ignored is the value of a flag without an effect.
type ignored struct {
	flag, reason string
	notes        *Foreign
}

// String implements pflag.Value.
func (*ignored) String() string { return "" }

// Type implements pflag.Value.
func (*ignored) Type() string { return "string" }

// Set implements pflag.Value.
func (i *ignored) Set(string) error {
	i.notes.Note(i.flag, i.reason)
	return nil
}

// Complaints are what is wrong with the values of flags.
type Complaints struct{ all []error }

// About complains about a flag.
func (c *Complaints) About(flag, format string, args ...any) {
	c.Add(fmt.Errorf("--%s: %s", flag, fmt.Sprintf(format, args...)))
}

// Add adds an error that names its flag; nil adds nothing.
func (c *Complaints) Add(err error) { c.all = append(c.all, err) }

// Number is the value of a flag, with the least value that it takes.
type Number struct {
	Flag         string
	Value, Least float64
}

// Numbers complains about the values that are too low.
func (c *Complaints) Numbers(numbers ...Number) {
	for _, number := range numbers {
		if math.IsNaN(number.Value) || number.Value < number.Least {
			c.About(number.Flag, "must not be below %v", number.Least)
		}
	}
}

// Err returns all complaints at once; nil when there are none.
func (c *Complaints) Err() error { return errors.Join(c.all...) }
