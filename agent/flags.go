package agent

import (
	"io"

	"github.com/spokelet/spokelet/internal/command"
)

// ParseFlags turns the arguments of a command line into a Config. The first argument may be the word agent. It returns
// pflag.ErrHelp when the arguments asked for help or for the version, which then stand in out.
func ParseFlags(args []string, out io.Writer) (Config, error) {
	config := DefaultConfig()
	program := command.Program{
		Name:  "spokelet",
		Story: "spokelet joins a managed cluster to its hub and serves its add-ons and works.",
		Verbs: []string{"agent"},
	}
	if err := program.Parse(args, out, config.AddFlags); err != nil {
		return Config{}, err
	}
	return config, nil
}
