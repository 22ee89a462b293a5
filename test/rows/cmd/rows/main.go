// Rows writes the tests into the tables of behaviours, and the flags into their page.
package main

import (
	"fmt"
	"os"

	"github.com/spokelet/spokelet/test/reference"
	"github.com/spokelet/spokelet/test/rows"
	"github.com/spokelet/spokelet/test/sandbox"
)

func main() {
	root, err := sandbox.ModuleRoot()
	if err == nil {
		err = rows.Update(root)
	}
	if err == nil {
		err = reference.UpdateFlags(root)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
