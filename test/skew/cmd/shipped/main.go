// Shipped prints what the version ships that it is built from, as JSON: lists of YAML documents. It is copied into
// other versions and built there, so it uses nothing but four functions of package manifests.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spokelet/spokelet/manifests"
)

func main() {
	err := json.NewEncoder(os.Stdout).Encode(map[string][][]byte{
		"HubCRDs": manifests.CRDs(), "Hub": manifests.Hub(),
		"SpokeCRDs": manifests.SpokeCRDs(), "Klusterlet": manifests.Klusterlet(),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
