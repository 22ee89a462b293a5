// Command house prints the size and the shape of packages: of those that are given as patterns of the go command, and
// otherwise of all that is shipped.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spokelet/spokelet/test/arch/measure"
)

func main() {
	if err := measure.Run(context.Background(), os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
