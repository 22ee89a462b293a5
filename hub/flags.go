package hub

import (
	"io"

	"github.com/spokelet/spokelet/internal/command"
)

// ParseFlags turns the arguments of a command line into a Config. It returns
// pflag.ErrHelp when the arguments asked for help or for the version, which then stand in out.
func ParseFlags(args []string, out io.Writer) (Config, error) {
	config := DefaultConfig()
	program := command.Program{
		Name:  "spokelet-hub",
		Story: "spokelet-hub manages the clusters of a fleet and their add-ons.",
	}
	if err := program.Parse(args, out, config.AddFlags); err != nil {
		return Config{}, err
	}
	return config, nil
}
