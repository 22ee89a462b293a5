package hub

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/pflag"

	"github.com/spokelet/spokelet/hub/render"
	"github.com/spokelet/spokelet/internal/command"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
)

// programName is the name of the program.
const programName = "spokelet-hub"

// Main runs the program with the command line of the process until ctx ends: the hub manager, or the subcommand
// "render", which needs no hub. It prints the error that ended it, and returns the exit status.
func Main(ctx context.Context) int {
	return command.ExitStatus(programName, start(ctx, os.Args[1:]), os.Stderr)
}

// start is Main for arguments. The error is pflag.ErrHelp when there was nothing to run.
func start(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == "render" {
		return render.Program{Name: programName}.Command(ctx, args[1:], os.Stdin, os.Stdout)
	}
	config, err := ParseFlags(args, os.Stdout)
	if err != nil {
		return err
	}
	return Run(ctx, config)
}

// ParseFlags parses the arguments of a command line. It returns pflag.ErrHelp when they ask for help, for the
// version, the policies or the definitions, which are written to out.
func ParseFlags(args []string, out io.Writer) (Config, error) {
	config := DefaultConfig()
	program := command.Program{
		Name: programName,
		Story: "spokelet-hub manages the clusters of a fleet and their add-ons.\n\"spokelet-hub render\" prints what " +
			"add-ons would deploy, from files; see spokelet-hub render --help.",
		Verbs: []string{"controller", "manager"}, Foreign: &config.foreign.notes,
	}
	if len(args) > 0 && slices.Contains(program.Verbs, args[0]) {
		args = args[1:]
	}
	printed, crds, account := false, false, names.ServiceAccountManager
	bind := func(f *pflag.FlagSet) {
		config.AddFlags(f)
		f.BoolVar(&printed, "print-policies", printed,
			"print the admission policies for a hub manager in --namespace under --service-account, and exit")
		f.BoolVar(&crds, "print-crds", crds,
			"print the CustomResourceDefinitions of the hub, without their conversion, and exit")
		f.StringVar(&account, "service-account", account,
			"ServiceAccount of the hub manager, for --print-policies; otherwise the API server returns it")
	}
	if err := program.Parse(args, out, bind); err != nil {
		return Config{}, err
	}
	config.adopt()
	switch {
	case printed:
		return Config{}, printAll(out, policiesFor(config.Namespace, account))
	case crds:
		return Config{}, printAll(out, manifests.CRDs())
	}
	return config, config.foreign.notes.Err()
}

// printAll writes files as one stream of YAML documents. It returns pflag.ErrHelp, because there is nothing to run.
func printAll(out io.Writer, files [][]byte) error {
	for _, file := range files {
		if _, err := fmt.Fprintf(out, "---\n%s", file); err != nil {
			return fmt.Errorf("printing YAML: %w", err)
		}
	}
	return pflag.ErrHelp
}
