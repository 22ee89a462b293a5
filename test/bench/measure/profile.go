package measure

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// profileSeconds is how long a profile lasts; a shorter step leaves the rest of it empty.
const profileSeconds = 6

// ProfileServer writes a profile of the processor time that an API server uses in the next six seconds to a file.
func ProfileServer(ctx context.Context, config *rest.Config, file string) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	raw, err := client.RESTClient().Get().AbsPath("/debug/pprof/profile").
		Param("seconds", strconv.Itoa(profileSeconds)).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("getting %s: %w", filepath.Base(file), err)
	}
	return os.WriteFile(file, raw, 0o600)
}
