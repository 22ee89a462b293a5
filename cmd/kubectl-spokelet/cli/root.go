package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/show"
)

// The exit statuses.
const (
	statusWell       = 0
	statusProblem    = 1
	statusUse        = 2
	statusBlind      = 3
	statusOutOfTime  = 4
	nameOfProgram    = "kubectl spokelet"
	defaultNamespace = "default"
)

var (
	// errProblem ends a command that found a problem, which it has printed.
	errProblem = errors.New("a problem was found")
	// errBlind ends a command that could not look at anything that it was asked for.
	errBlind = errors.New("nothing could be read")
	// errPart ends a command that found nothing wrong in what it could read, and could not read all.
	errPart = errors.New("what could not be read may hide problems")
	// errOutOfTime ends a command whose --wait ran out.
	errOutOfTime = errors.New("the time to wait ran out")
	// errUse is in errors about a wrong use.
	errUse = errors.New("wrong use")
)

// Plugin is how the program was started.
type Plugin struct {
	Streams genericiooptions.IOStreams
	// Environment returns the value of a variable.
	Environment func(string) string
	// Now returns the time.
	Now func() time.Time
	// Pause waits, or returns the error of a context that ends before.
	Pause func(context.Context, time.Duration) error

	command *cobra.Command
	// present is the clock where Now is that of a bundle; nil elsewhere.
	present func() time.Time

	// again reports that an answer replaces one before it, and progress tells what is read for it.
	again    bool
	progress progress

	config *genericclioptions.ConfigFlags
	from   string
	output string
}

// New returns the program of this process.
func New() *Plugin {
	p := &Plugin{
		Streams:     genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		Environment: os.Getenv, Now: time.Now, Pause: pause,
	}
	p.Init()
	return p
}

// Init makes the commands, which write to the streams.
func (p *Plugin) Init() { p.command = p.root() }

// Run runs the arguments of a command line and returns the exit status.
func (p *Plugin) Run(ctx context.Context, args []string) int {
	p.command.SetArgs(args)
	err := p.command.ExecuteContext(ctx)
	p.progress.clear()
	if err != nil && err.Error() != errProblem.Error() { // Else the answer says it.
		p.warn(err)
	}
	return statusOf(err)
}

// statusOf returns the exit status for the error of a command.
func statusOf(err error) int {
	switch {
	case err == nil:
		return statusWell
	case errors.Is(err, errProblem):
		return statusProblem
	case errors.Is(err, errOutOfTime):
		return statusOutOfTime
	case errors.Is(err, errBlind), errors.Is(err, errPart), isUnanswered(err), isUnreached(err):
		return statusBlind
	}
	return statusUse
}

// isUnanswered reports whether a hub does not answer, or not this user.
func isUnanswered(err error) bool {
	return errors.Is(err, fleet.ErrUnreachable) || errors.Is(err, fleet.ErrRefused)
}

// isUnreached reports whether a managed cluster does not answer, or not this user.
func isUnreached(err error) bool {
	return errors.Is(err, fleet.ErrClusterUnreachable) || errors.Is(err, fleet.ErrClusterRefused)
}

// root returns the command with all its commands.
func (p *Plugin) root() *cobra.Command {
	root := &cobra.Command{
		Use: "kubectl-spokelet", Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: nameOfProgram},
		Short: "Says what is wrong with a fleet of clusters and their add-ons, where, and what to do",
		Long: "kubectl spokelet reads a hub that speaks the APIs of Open Cluster Management and says what is wrong with " +
			"its clusters and add-ons, where, and what to do. Only approve writes to the hub.\n\nThe exit status is 0 " +
			"where all is well, 1 where a problem was found, 2 for a wrong use, 3 where it could not look, or could not " +
			"read all that may hide a problem, and 4 where --wait ran out.",
		SilenceErrors: true, SilenceUsage: true,
	}
	root.SetIn(p.Streams.In)
	root.SetOut(p.Streams.Out)
	root.SetErr(p.Streams.ErrOut)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w: %w", errUse, err) })
	p.config = genericclioptions.NewConfigFlags(true)
	p.config.AddFlags(root.PersistentFlags())
	root.PersistentFlags().StringVar(&p.from, "from", "", "read this bundle instead of a hub (see bundle)")
	root.PersistentFlags().StringVarP(&p.output, "output", "o", "", "json, yaml, name or wide; empty means text")
	root.AddCommand(p.check(), p.get(), p.tree(), p.why(), p.bundle(), p.diff(), p.render(), p.rollout(), p.versions())
	root.AddCommand(p.approve())
	root.AddCommand(p.trace(), p.events(), p.logs(), p.dashboard())
	return root
}

// reader returns a reader of the hub of the flags, or of the bundle that they name.
func (p *Plugin) reader() (*fleet.Reader, error) {
	if err := p.validOutput(); err != nil {
		return nil, err
	}
	if p.from != "" {
		bundle, err := fleet.OpenBundle(p.from)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errBlind, err)
		}
		taken := bundle.Taken()
		p.present, p.Now = p.Now, func() time.Time { return taken }
		return &fleet.Reader{Source: bundle}, nil
	}
	r, err := readerOf(p.config, false)
	if err == nil {
		p.progress = progress{now: p.Now, since: p.Now()}
		if show.IsTerminal(p.Streams.ErrOut) {
			p.progress.out = p.Streams.ErrOut
		}
		r.Progress = p.progress.told
	}
	return r, err
}

// hubOf returns the API server that flags lead to.
func hubOf(flags *genericclioptions.ConfigFlags) (*fleet.Hub, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("%w: reading the kubeconfig: %w", errUse, err)
	}
	return fleet.NewHub(config)
}

// namespace returns the namespace of the flags or of the context of the kubeconfig.
func (p *Plugin) namespace() (string, error) {
	if p.from != "" && *p.config.Namespace == "" {
		return defaultNamespace, nil
	}
	return p.liveNamespace()
}

// liveNamespace is namespace for a command that asks an API server also beside a bundle.
func (p *Plugin) liveNamespace() (string, error) {
	if *p.config.Namespace != "" {
		return *p.config.Namespace, nil
	}
	namespace, _, err := p.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("%w: reading the kubeconfig: %w", errUse, err)
	}
	return namespace, nil
}

// terminal returns the terminal that answers are written to.
func (p *Plugin) terminal() show.Terminal {
	p.progress.clear()
	t := show.New(p.Streams.Out, p.Environment, p.Now())
	t.Bundle = p.from != ""
	if p.again && p.asText() {
		t.Again()
	}
	return t
}
