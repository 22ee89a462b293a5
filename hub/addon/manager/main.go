package manager

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/render"
	"github.com/spokelet/spokelet/internal/command"
)

// Main is the program of an author: it builds the add-ons, parses the command line, and returns the exit code, which is
// 0, or 1 after an error that it printed. Without a subcommand it runs the add-ons until it is told to end (SIGTERM or
// SIGINT). The subcommand rbac prints the rights that the program needs on the hub, and render prints what the add-ons
// would deploy, from files and without a hub.
func Main(agents ...func() (addon.Agent, error)) int {
	p := program{name: filepath.Base(os.Args[0]), args: os.Args[1:], in: os.Stdin, out: os.Stdout}
	return command.ExitStatus(p.name, p.run(ctrl.SetupSignalHandler(), agents), os.Stderr)
}

// program is how a program of add-ons was started.
type program struct {
	name string
	args []string
	in   io.Reader
	out  io.Writer
}

// run is Main for this start. The error is pflag.ErrHelp when there was nothing to run.
func (p program) run(ctx context.Context, build []func() (addon.Agent, error)) error {
	agents := make([]addon.Agent, 0, len(build))
	for _, function := range build {
		agent, err := function()
		if err != nil {
			return fmt.Errorf("building an add-on: %w", err)
		}
		agents = append(agents, agent)
	}
	own, err := newAddOns(agents)
	if err != nil {
		return err
	}
	verb, args, action := "", p.args, Run
	if len(args) > 0 && slices.Contains([]string{verbRights, verbRender}, args[0]) {
		verb, args = args[0], args[1:]
	}
	switch verb {
	case verbRender:
		return render.Program{Name: p.name, Agents: own, AddOns: own.names}.Command(ctx, args, p.in, p.out)
	case verbRights:
		action = func(_ context.Context, c Config, agents ...addon.Agent) error { return printRights(p.out, c, agents) }
	}
	config := DefaultConfig(agents...)
	command := command.Program{
		Name: p.name, Story: story(p.name, verb, agents), Verbs: []string{verbRights, verbRender},
	}
	if err := command.Parse(args, p.out, config.AddFlags); err != nil {
		return err
	}
	return action(ctx, config, agents...)
}

// The subcommands of a program.
const (
	// verbRights prints the rights of the program.
	verbRights = "rbac"
	// verbRender prints what the add-ons would deploy.
	verbRender = "render"
)

// story describes the program for its help.
func story(program, verb string, agents []addon.Agent) string {
	if verb == verbRights {
		return program + " " + verb + " prints the ServiceAccount, roles and bindings that this program needs on the hub."
	}
	text := program + " runs the add-on"
	if len(agents) > 1 {
		text += "s"
	}
	for i, agent := range agents {
		if i > 0 {
			text += ","
		}
		text += " " + agent.About().Name
	}
	return text + " on the hub.\n\"" + program + " rbac\" prints the rights that it needs there, \"" + program +
		" render\" what it would deploy, from files."
}
