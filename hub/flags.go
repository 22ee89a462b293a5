package hub

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/pflag"

	"github.com/spokelet/spokelet/hub/render"
	"github.com/spokelet/spokelet/internal/command"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
)

// programName is the name of the program.
const programName = "spokelet-hub"

// Main runs the program with the arguments of a command line until ctx ends: the hub manager, or the subcommand
// "render", which needs no hub. It returns pflag.ErrHelp when the arguments ask for help, for the version or for the
// policies, which are written to out.
func Main(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if len(args) > 0 && args[0] == "render" {
		return render.Program{Name: programName}.Command(ctx, args[1:], in, out)
	}
	config, err := ParseFlags(args, out)
	if err != nil {
		return err
	}
	return Run(ctx, config)
}

// ParseFlags parses the arguments of a command line. It returns pflag.ErrHelp when they ask for help, for the version
// or for the policies, which are written to out.
func ParseFlags(args []string, out io.Writer) (Config, error) {
	config := DefaultConfig()
	program := command.Program{
		Name: programName,
		Story: "spokelet-hub manages the clusters of a fleet and their add-ons.\n\"spokelet-hub render\" prints what " +
			"add-ons would deploy, from files; see spokelet-hub render --help.",
		Verbs: []string{"controller", "manager"},
	}
	if len(args) > 0 && slices.Contains(program.Verbs, args[0]) {
		args = args[1:]
	}
	printed, account := false, names.ServiceAccountManager
	bind := func(f *pflag.FlagSet) {
		config.AddFlags(f)
		f.BoolVar(&printed, "print-policies", printed,
			"print the admission policies for a hub manager in --namespace under --service-account, and exit")
		f.StringVar(&account, "service-account", account,
			"ServiceAccount of the hub manager, for --print-policies; otherwise the API server returns it")
	}
	if err := program.Parse(args, out, bind); err != nil {
		return Config{}, err
	}
	config.adopt()
	if printed {
		return Config{}, printPolicies(out, config.Namespace, account)
	}
	return config, nil
}

// printPolicies writes the policies as one stream of YAML documents. It returns pflag.ErrHelp, because there is nothing
// to run.
func printPolicies(out io.Writer, namespace, account string) error {
	for _, file := range policiesFor(namespace, account) {
		if _, err := fmt.Fprintf(out, "---\n%s", file); err != nil {
			return fmt.Errorf("printing the policies: %w", err)
		}
	}
	return pflag.ErrHelp
}

// policiesFor returns the policies for a hub manager under a ServiceAccount.
func policiesFor(namespace, account string) [][]byte {
	return manifests.PoliciesFor(namespace, account, names.ServiceAccountAddons)
}
