// Command gen writes the CustomResourceDefinitions that we ship, taken from the API module that go.mod pins, with
// bounds for what Go cannot read, and a policy with the same bounds.
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
	if err == nil {
		err = writePolicies("manifests/crds", "manifests/hub")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}
