package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spokelet/spokelet/hub/render"
)

// render returns the command that prints what add-ons of files deploy, without a hub: that of the hub manager.
func (p *Plugin) render() *cobra.Command {
	return &cobra.Command{
		Use: "render -f FILE", Short: "Print what add-ons of files deploy, without a hub",
		DisableFlagParsing: true, // The flags are those of spokelet-hub render.
		RunE: func(c *cobra.Command, args []string) error {
			err := render.Program{Name: nameOfProgram}.Command(c.Context(), args, p.Streams.In, p.Streams.Out)
			if err == nil || errors.Is(err, pflag.ErrHelp) {
				return nil
			}
			return fmt.Errorf("%w: %w", errUse, err)
		},
	}
}
