package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spokelet/spokelet/internal/version"
)

// namespaceFile is where a pod finds the name of its namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Program describes a program for its help.
type Program struct {
	// Name is the name of the program.
	Name string
	// Story is a sentence about it.
	Story string
	// Verbs are the words that may stand before the flags. The caller of Parse removes them first.
	Verbs []string
	// Foreign takes flags that are not known, unless --strict-flags says that they are an error; nil refuses them.
	Foreign *Foreign
}

// ExitStatus prints the error with which a program ended, and returns its exit status: 1, or 0 where there is no error
// or there was nothing to run.
func ExitStatus(program string, err error, errs io.Writer) int {
	if err == nil || errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	fmt.Fprintf(errs, "%s: %v\n", program, err)
	return 1
}

// Parse binds flags and parses the arguments with them. It returns pflag.ErrHelp when the arguments asked for help or
// for the version, which then are in out.
func (p Program) Parse(args []string, out io.Writer, bind func(*pflag.FlagSet)) error {
	flags := pflag.NewFlagSet(p.Name, pflag.ContinueOnError)
	flags.SetOutput(out)
	flags.SortFlags = false
	bind(flags)
	showVersion := flags.Bool("version", false, "print the version and exit")
	if p.Foreign != nil {
		flags.BoolVar(&p.Foreign.Strict, "strict-flags", p.Foreign.Strict,
			"end with an error where a flag, a feature gate or a driver is not known; without it, that is told in the log, an "+
				"Event, metric spokelet_foreign_settings and /readyz?verbose")
		flags.ParseErrorsAllowlist.UnknownFlags = true
		noteUnknown(flags, args, p.Foreign)
	}
	flags.Usage = func() {
		fmt.Fprintf(out, "%s\n\nUsage:\n  %s [flags]\n\nFlags:\n%s", p.Story, p.call(), flags.FlagUsages())
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *showVersion {
		fmt.Fprintln(out, p.Name, version.String())
		return pflag.ErrHelp
	}
	if rest := flags.Args(); len(rest) > 0 {
		return fmt.Errorf("arguments that are no flags: %s", strings.Join(rest, " "))
	}
	return nil
}

// noteUnknown notes the flags among the arguments that are not known. The word after an unknown flag without a value is
// taken for its value, as the library does.
func noteUnknown(flags *pflag.FlagSet, args []string, foreign *Foreign) {
	for n := 0; n < len(args) && args[n] != "--"; n++ {
		given, _, hasValue := strings.Cut(args[n], "=")
		var flag *pflag.Flag
		switch name := strings.TrimPrefix(given, "--"); {
		case name != given:
			flag = flags.Lookup(name)
		case len(given) > 1 && given[0] == '-':
			flag, hasValue = flags.ShorthandLookup(given[1:2]), hasValue || len(given) > len("-v")
			given = given[:2] // The rest may be a value, which is not told.
		default:
			continue
		}
		switch {
		case flag == nil && given != "--help" && given != "-h":
			foreign.Unknown(given, "unknown flag, see --help")
		case flag != nil && !hasValue && flag.NoOptDefVal == "":
			n++
		}
	}
}

// call returns how the program is called, without its flags.
func (p Program) call() string {
	if len(p.Verbs) == 0 {
		return p.Name
	}
	return p.Name + " [" + strings.Join(p.Verbs, "|") + "]"
}

// Environment returns a variable of the environment; empty without one. Only composition roots read them, and by this.
func Environment(name string) string {
	return os.Getenv(name) //nolint:forbidigo // the one place that reads it
}

// Namespace returns the namespace that a program works in: POD_NAMESPACE, or that of its pod, or fallback.
func Namespace(fallback string) string {
	if namespace := Environment("POD_NAMESPACE"); namespace != "" {
		return namespace
	}
	if data, err := os.ReadFile(namespaceFile); err == nil && len(data) > 0 {
		return strings.TrimSpace(string(data))
	}
	return fallback
}

// pod returns the name of the pod of this process; empty outside of a pod, and where no variable has it and the pod
// uses the network of its node.
func pod() string {
	if name := Environment("POD_NAME"); name != "" {
		return name
	}
	if _, err := os.Stat(namespaceFile); err != nil {
		return ""
	}
	return Environment("HOSTNAME")
}

// Identity returns the name of this process for its Leases. A pod that knows its name keeps it when its container is
// restarted: the process before it is dead, so its Leases need not expire.
func Identity() (string, error) {
	if pod := Environment("POD_NAME"); pod != "" {
		return pod, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("looking up the host name: %w", err)
	}
	return host + "_" + string(uuid.NewUUID()), nil
}

// WithLogger returns a context with a logger: the one that ctx has, or a new one that writes one line of key=value
// pairs per entry to out, up to a verbosity, and that the libraries with a logger of their own use too. Neither writes
// the bodies or the headers of requests, whatever the verbosity; see maxVerbosity.
func WithLogger(ctx context.Context, out io.Writer, verbosity int) context.Context {
	if logger, err := logr.FromContext(ctx); err == nil {
		if logger.GetSink() == nil {
			return ctx
		}
		return ctrl.LoggerInto(ctx, capped(logger))
	}
	level := slog.Level(-min(verbosity, maxVerbosity))
	logger := capped(logr.FromSlogHandler(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level})))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger.WithName("client"))
	return ctrl.LoggerInto(ctx, logger)
}
