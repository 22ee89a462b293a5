package command

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	eventsv1client "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Foreign collects the flags and feature gates that were given and have no effect here: those of OCM's programs, and
// those that are not known, because an operator of a later release passes them. They are accepted, so that command
// lines of these programs work, and told: in the log, as a metric, in /readyz?verbose, and what is not known by an
// Event, too.
type Foreign struct {
	// Strict makes Err return what is not known.
	Strict bool

	notes []Note
}

// Note is one flag or feature gate that was given and has no effect.
type Note struct {
	// Flag is the flag with its dashes, and Reason why it has no effect.
	Flag, Reason string
	// Unknown reports whether it is not known at all.
	Unknown bool
}

// noEffect is the annotation of a flag that has no effect; its value is the reason.
const noEffect = "spokelet.io/no-effect"

// Notes returns the notes in the order of the arguments, each once.
func (f *Foreign) Notes() []Note { return f.notes }

// Log logs the notes.
func (f *Foreign) Log(ctx context.Context) {
	for _, note := range f.notes {
		ctrl.LoggerFrom(ctx).Info("a flag has no effect", "flag", note.Flag, "reason", note.Reason, "known", !note.Unknown)
	}
}

// Lines returns the notes as sentences, for /readyz?verbose.
func (f *Foreign) Lines() []string {
	var lines []string
	for _, note := range f.notes {
		lines = append(lines, note.Flag+" has no effect: "+note.Reason)
	}
	return lines
}

// Note adds a note, unless the flag has one.
func (f *Foreign) Note(flag, reason string) { f.add(Note{Flag: flag, Reason: reason}) }

// Unknown adds a note about what is not known, unless the flag has one.
func (f *Foreign) Unknown(flag, reason string) {
	f.add(Note{Flag: flag, Reason: reason, Unknown: true})
}

// Driver replaces the value of a flag that names a driver by the first of those that are known, and notes that, unless
// the value is one of them.
func (f *Foreign) Driver(flag string, value *string, known ...string) {
	if slices.Contains(known, *value) {
		return
	}
	f.Unknown(flag, fmt.Sprintf("unknown driver %s, so it is %s", message.Quote(*value), known[0]))
	*value = known[0]
}

// add adds a note. What is told comes from the arguments: it is one line, and short.
func (f *Foreign) add(note Note) {
	note.Flag = message.OneLine(message.Cut(note.Flag, maxSetting))
	note.Reason = message.OneLine(message.Cut(note.Reason, maxNote))
	if !slices.ContainsFunc(f.notes, func(has Note) bool { return has.Flag == note.Flag }) {
		f.notes = append(f.notes, note)
	}
}

// unknown returns what is not known, as "--flag: reason".
func (f *Foreign) unknown() []string {
	var all []string
	for _, note := range f.notes {
		if note.Unknown {
			all = append(all, note.Flag+": "+note.Reason)
		}
	}
	return all
}

// Err returns what is not known as an error where Strict is set; nil where it is not, and where all is known.
func (f *Foreign) Err() error {
	if unknown := f.unknown(); f.Strict && len(unknown) > 0 {
		return errors.New(strings.Join(unknown, "\n"))
	}
	return nil
}

// Count registers metric spokelet_foreign_settings: how many of the settings have no effect.
func (f *Foreign) Count(registerer prometheus.Registerer) error {
	gauge, err := reconcile.RegisterMetric(registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "spokelet_foreign_settings",
		Help: "Flags and feature gates that were given and have no effect here: known ones of OCM, and unknown ones.",
	}, []string{"state"}))
	if err != nil {
		return fmt.Errorf("registering the metric of settings without an effect: %w", err)
	}
	unknown := len(f.unknown())
	gauge.WithLabelValues("unknown").Set(float64(unknown))
	gauge.WithLabelValues("known").Set(float64(len(f.notes) - unknown))
	return nil
}

// maxSetting is how many bytes of the name of a setting are told.
const maxSetting = 200

// ReasonUnknownSettings is the reason of the Event about settings that are not known.
const ReasonUnknownSettings = "UnknownSettings"

const (
	// maxTold is how many settings the Event names, and maxNote how many bytes its note may have, of 1,024.
	maxTold = 5
	maxNote = 1000
)

// Event returns an Event about the pod of this process that names what is not known; nil where all is known, and
// outside of a pod. controller is who reports it.
func (f *Foreign) Event(controller, namespace string, now time.Time) *eventsv1.Event {
	unknown, pod := f.unknown(), pod()
	if len(unknown) == 0 || pod == "" {
		return nil
	}
	return &eventsv1.Event{
		// As other Events are called. The API server takes no generateName that ends with a dot.
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s.%x", pod, now.UnixNano())},
		EventTime:  metav1.NewMicroTime(now), ReportingController: controller, ReportingInstance: pod,
		Type: corev1.EventTypeWarning, Reason: ReasonUnknownSettings, Action: "Start",
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: pod},
		Note: message.Cut("settings have no effect, because this version does not know them: "+
			message.List(unknown, maxTold, "; "), maxNote),
	}
}

// Tell creates the Event of what is not known, if there is one. Where this process may not create it, the log says so.
func (f *Foreign) Tell(ctx context.Context, config *rest.Config, event *eventsv1.Event) {
	if event == nil {
		return
	}
	events, err := eventsv1client.NewForConfig(config)
	if err == nil {
		_, err = events.Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{})
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("cannot record the Event about unknown settings", "problem", err.Error())
	}
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
