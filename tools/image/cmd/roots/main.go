// Command roots prints the root certificates of the images, for the Dockerfile.
package main

import (
	"fmt"
	"os"

	"github.com/spokelet/spokelet/tools/image/roots"
)

func main() {
	bundle, err := roots.PEM()
	if err == nil {
		_, err = os.Stdout.Write(bundle)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "roots:", err)
		os.Exit(1)
	}
}
