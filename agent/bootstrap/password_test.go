package bootstrap

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What the agent says about a kubeconfig is logged and is on its health endpoint, and the address of the hub is in every
// line of the log.
func TestAPasswordInAKubeconfigIsNotTold(t *testing.T) {
	const password = "s3cret"
	for name, content := range map[string]string{
		"of a proxy that is wrong":  withUser("token: t", `, proxy-url: "http://user:`+password+`@proxy.example.com:31x"`),
		"of a server that is wrong": strings.Replace(withUser("token: t", ""), "https://", "https://user:"+password+"@x:31x/", 1),
		"of the server": `
apiVersion: v1
kind: Config
current-context: hub
clusters: [{name: hub, cluster: {server: "https://user:` + password + `@hub.example.com:6443"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: hub, context: {cluster: hub, user: u}}]
`,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kubeconfig")
			_, parsed := Parse([]byte(content))
			_, loaded := RESTConfig([]byte(content), path)
			require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
			found, err := Source{File: path}.Read(t.Context(), nil)
			require.NoError(t, err)
			for _, err := range []error{parsed, loaded, found.Problem} {
				require.Error(t, err, "the address is told")
				assert.NotContains(t, err.Error(), password)
			}
		})
	}
}
