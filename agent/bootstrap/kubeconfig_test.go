package bootstrap

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// withUser returns a kubeconfig with a user, and with whatever else is given for the cluster.
func withUser(user, more string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Config
current-context: hub
clusters: [{name: hub, cluster: {server: "https://hub.example.com:6443"%s}}]
users: [{name: u, user: {%s}}]
contexts: [{name: hub, context: {cluster: hub, user: u}}]
`, more, user)
}

// Shows: security/kubeconfigs-read-no-files
func TestAKubeconfigOfOthersStartsNoProgramAndReadsNoFileOfThePod(t *testing.T) {
	const podToken = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, tc := range map[string]struct {
		content string
		// want is in the problem of file and Secret; inFile, if given, in that of the file.
		want string
		// inDirectory says that a file may have it, where the file that it names is beside it.
		inDirectory bool
	}{
		"a program": {
			withUser("exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, interactiveMode: Never}", ""),
			`user "u" has exec`, false,
		},
		"an auth-provider":     {withUser("auth-provider: {name: oidc}", ""), `user "u" has an auth-provider`, false},
		"the token of the pod": {withUser("tokenFile: "+podToken, ""), `user "u" has tokenFile "` + podToken, false},
		"a token by a path that leads out": {
			withUser("tokenFile: ../token", ""), `user "u" has tokenFile "../token"`, false,
		},
		"a certificate elsewhere": {
			withUser("client-certificate: /etc/tls.crt, client-key-data: YQ==", ""), `has client-certificate "/etc/tls.crt"`, false,
		},
		"a key elsewhere": {
			withUser("client-certificate-data: YQ==, client-key: a/../../tls.key", ""), `has client-key "a/../../tls.key"`, false,
		},
		"a CA elsewhere": {
			withUser("token: t", ", certificate-authority: "+podToken), `cluster "hub" has certificate-authority`, false,
		},
		"a token beside it": {withUser("tokenFile: beside", ""), `user "u" has tokenFile "beside"`, true},
		"a CA beside it": {
			withUser("token: t", ", certificate-authority: beside"), `cluster "hub" has certificate-authority "beside"`, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "kubeconfig")
			require.NoError(t, os.WriteFile(filepath.Join(dir, "beside"), authority, 0o600))
			found := readFile(t, path, tc.content)
			_, restErr := RESTConfig([]byte(tc.content), path)
			if tc.inDirectory {
				require.NoError(t, found.Problem)
				require.NoError(t, restErr)
				assert.NotContains(t, string(found.Kubeconfig), dir, "what the file names is in it")
				assert.Equal(t, []string{path, filepath.Join(dir, "beside")}, found.Files)
			} else {
				require.ErrorContains(t, found.Problem, path)
				require.ErrorContains(t, found.Problem, tc.want)
				require.ErrorContains(t, restErr, tc.want)
			}
			assertSecretRefused(t, tc.content, tc.want)
		})
	}
}

// A link in the directory is no way out of it. Those that a kubelet makes for the files of a Secret stay inside, and are
// followed, also when it replaces the Secret.
// Shows: security/kubeconfigs-read-no-files
func TestAKubeconfigOfOthersReadsNoFileOfThePodByALink(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(outside, []byte("of the pod"), 0o600))
	dir := t.TempDir()
	path := filepath.Join(dir, "kubeconfig")
	link := func(to, name string) { require.NoError(t, os.Symlink(to, filepath.Join(dir, name))) }
	up, err := filepath.Rel(dir, outside)
	require.NoError(t, err)
	link(outside, "absolute")
	link(up, "relative")
	link(filepath.Dir(up), "folder")
	link("absolute", "twice")
	for _, file := range []string{"absolute", "relative", "folder/token", "twice", filepath.Join(dir, "relative")} {
		for field, content := range map[string]string{
			"tokenFile":             withUser("tokenFile: "+file, ""),
			"client-key":            withUser("client-certificate-data: YQ==, client-key: "+file, ""),
			"client-certificate":    withUser("client-key-data: YQ==, client-certificate: "+file, ""),
			"certificate-authority": withUser("token: t", ", certificate-authority: "+file),
		} {
			t.Run(field+" "+file, func(t *testing.T) {
				kubeconfig, _, err := readContent(t, path, content)
				require.ErrorContains(t, err, "path escapes from parent")
				require.ErrorContains(t, err, "has "+field)
				assert.Empty(t, kubeconfig)
				_, err = RESTConfig([]byte(content), path)
				require.ErrorContains(t, err, "path escapes from parent")
			})
		}
	}

	kubelet := func(version, token string) {
		require.NoError(t, os.Mkdir(filepath.Join(dir, version), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, version, "token"), []byte(token), 0o600))
		link(version, "..data_tmp")
		require.NoError(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	kubelet("..1", "one")
	link("..data/token", "token")
	content := withUser("tokenFile: token", "")
	for _, version := range []string{"one", "two"} {
		if version == "two" {
			kubelet("..2", version)
		}
		kubeconfig, named, err := readContent(t, path, content)
		require.NoError(t, err)
		assert.Contains(t, string(kubeconfig), "token: "+version)
		assert.Equal(t, []string{filepath.Join(dir, "token")}, named)
		config, err := RESTConfig([]byte(content), path)
		require.NoError(t, err)
		assert.Equal(t, "Bearer "+version, sentWith(t, config))
	}
}

// readContent reads a file with that content.
func readContent(t *testing.T, path, content string) (kubeconfig []byte, named []string, err error) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return ReadFile(path)
}

func TestOnlyWhatTheCurrentContextLeadsToIsRead(t *testing.T) {
	content := strings.Replace(withUser("token: t", ""), "users: [",
		"users: [{name: other, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: x}}}, ", 1)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, readFile(t, path, content).Problem)
	config, err := Parse([]byte(content))
	require.NoError(t, err)
	assert.Equal(t, "t", config.BearerToken)
}

// FuzzKubeconfig reads kubeconfigs that another client wrote. Whatever is accepted starts no program, and names no file
// outside of its directory.
func FuzzKubeconfig(f *testing.F) {
	f.Add([]byte(withUser("token: t", "")), "kubeconfig")
	f.Add([]byte(withUser("tokenFile: /etc/token", "")), "/spoke/config/kubeconfig")
	f.Add([]byte(withUser("tokenFile: /spoke/config/../token", "")), "/spoke/config/kubeconfig")
	f.Add([]byte(withUser("client-certificate: tls.crt, client-key: ./../tls.key", "")), "/spoke/config/kubeconfig")
	f.Add([]byte(withUser("exec: {command: x}", ", certificate-authority: a/b")), "/a")
	f.Add([]byte("apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: null}]"), "/")
	f.Fuzz(func(t *testing.T, raw []byte, path string) {
		if config, err := load(raw, path); err == nil {
			absolute, err := filepath.Abs(path)
			require.NoError(t, err)
			for _, f := range fileFields(config) {
				relative, err := filepath.Rel(filepath.Dir(absolute), *f.path)
				require.NoError(t, err)
				assert.True(t, filepath.IsLocal(relative), "%s is in the directory of %s", *f.path, path)
			}
			for _, u := range config.AuthInfos {
				assert.Nil(t, u.Exec)
				assert.Nil(t, u.AuthProvider)
			}
		}
		config, err := Parse(raw)
		if err != nil {
			return
		}
		assert.Nil(t, config.ExecProvider)
		assert.Nil(t, config.AuthProvider)
		for _, file := range []string{config.BearerTokenFile, config.CAFile, config.CertFile, config.KeyFile} {
			assert.Empty(t, file)
		}
	})
}
