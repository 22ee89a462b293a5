// Command gen writes the CustomResourceDefinitions that we ship, taken from the API module that go.mod pins.
// Run it from the module root: go run ./manifests/gen
package main

import (
	"context"
	"fmt"
	"os"
)

func main() {
	from, err := moduleDir(context.Background())
	if err == nil {
		err = write(from, "manifests/crds")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}
