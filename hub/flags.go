package hub

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/spokelet/spokelet/internal/version"
)

// ParseFlags turns the arguments of a command line into a Config. It returns pflag.ErrHelp when the arguments asked for
// help or for the version, which then stand in out.
func ParseFlags(args []string, out io.Writer) (Config, error) {
	config := DefaultConfig()
	flags := pflag.NewFlagSet("spokelet-hub", pflag.ContinueOnError)
	flags.SetOutput(out)
	flags.SortFlags = false
	config.AddFlags(flags)
	showVersion := flags.Bool("version", false, "print the version and exit")
	flags.Usage = func() {
		fmt.Fprintf(out, "spokelet-hub manages the clusters of a fleet and their add-ons.\n\n"+
			"Usage:\n  spokelet-hub [flags]\n\nFlags:\n%s", flags.FlagUsages())
	}
	if err := flags.Parse(args); err != nil {
		return Config{}, err
	}
	if *showVersion {
		fmt.Fprintln(out, "spokelet-hub", version.String())
		return Config{}, pflag.ErrHelp
	}
	if rest := flags.Args(); len(rest) > 0 {
		return Config{}, fmt.Errorf("arguments that are no flags: %s", strings.Join(rest, " "))
	}
	return config, nil
}
