package bootstrap

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
)

// ReadFile returns the kubeconfig in a file with all files that it names inlined, and the paths of these files. It
// returns nil if the file does not exist, and an empty slice if it is empty.
func ReadFile(path string) (kubeconfig []byte, named []string, err error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return []byte{}, nil, nil // parsing it reports that
	}
	config, err := load(raw, path)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range fileFields(config) {
		named = append(named, *f.path)
	}
	if err := inline(config, filepath.Dir(path)); err != nil {
		return nil, named, fmt.Errorf("reading the files that it names: %w", err)
	}
	kubeconfig, err = clientcmd.Write(*config)
	return kubeconfig, named, err
}

// fileField is a field of a kubeconfig that names a file.
type fileField struct {
	// owner and name are the user or cluster and the name of the field.
	owner, name string
	path        *string
	// given is set where the content is there, too, and one of both is a mistake; put sets it.
	given bool
	put   func(content []byte)
}

// fileFields returns the fields of a kubeconfig that name a file.
func fileFields(config *clientcmdapi.Config) []fileField {
	var fields []fileField
	for name, c := range config.Clusters {
		fields = append(fields, fileField{
			fmt.Sprintf("cluster %q", name), "certificate-authority", &c.CertificateAuthority,
			len(c.CertificateAuthorityData) > 0, func(content []byte) { c.CertificateAuthorityData = content },
		})
	}
	for name, u := range config.AuthInfos {
		owner := fmt.Sprintf("user %q", name)
		fields = append(fields, fileField{
			owner, "client-certificate", &u.ClientCertificate,
			len(u.ClientCertificateData) > 0, func(content []byte) { u.ClientCertificateData = content },
		}, fileField{
			owner, "client-key", &u.ClientKey,
			len(u.ClientKeyData) > 0, func(content []byte) { u.ClientKeyData = content },
		}, fileField{
			owner, "tokenFile", &u.TokenFile,
			false, func(content []byte) { u.Token = string(bytes.TrimSpace(content)) },
		})
	}
	return slices.DeleteFunc(fields, func(f fileField) bool { return *f.path == "" })
}

// inline replaces the paths in a kubeconfig by the contents of the files.
func inline(config *clientcmdapi.Config, dir string) error {
	return eachFile(config, dir, func(root *os.Root, f fileField, path string) error {
		if f.given {
			return errors.New("its content is there, too")
		}
		content, err := root.ReadFile(path)
		if err != nil {
			return err
		}
		f.put(content)
		*f.path = ""
		return nil
	})
}

// checkLinks returns why a file that a kubeconfig names must not be read: there is none, or a link leads to it out of
// the directory. The author of a Secret makes no links, but others may write into a directory.
func checkLinks(config *clientcmdapi.Config, dir string) error {
	return eachFile(config, dir, func(root *os.Root, _ fileField, path string) error {
		_, err := root.Stat(path)
		return err
	})
}

// eachFile calls a function with each file that a loaded kubeconfig names, by its path in the directory. The root
// follows no link that leads out of it; those that a kubelet makes stay inside.
func eachFile(config *clientcmdapi.Config, dir string, do func(root *os.Root, f fileField, path string) error) error {
	fields := fileFields(config)
	if len(fields) == 0 {
		return nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for _, f := range fields {
		named := *f.path
		path, err := filepath.Rel(dir, named)
		if err == nil {
			err = do(root, f, path)
		}
		if err != nil {
			return fmt.Errorf("%s has %s %q: %w", f.owner, f.name, named, err)
		}
	}
	return nil
}

// load parses the content of a file; the paths in it become absolute. It leaves out what the current context does not
// lead to, and reads no file.
func load(raw []byte, path string) (*clientcmdapi.Config, error) {
	config, err := clientcmd.Load(raw)
	if err != nil {
		return nil, fmt.Errorf("it is no kubeconfig: %w", err)
	}
	config = inUse(config)
	if path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("finding its directory: %w", err)
	}
	if err := check(config, filepath.Dir(path)); err != nil {
		return nil, err
	}
	for _, c := range config.Clusters {
		c.LocationOfOrigin = path
	}
	for _, u := range config.AuthInfos {
		u.LocationOfOrigin = path
	}
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		return nil, fmt.Errorf("finding the files that it names: %w", err)
	}
	return config, nil
}

// Parse returns the client configuration of a kubeconfig that was not read from a file, so it can name none.
func Parse(raw []byte) (*rest.Config, error) {
	config, err := clientcmd.Load(raw)
	if err != nil {
		return nil, fmt.Errorf("it is no kubeconfig: %w", err)
	}
	config = inUse(config)
	if err := check(config, ""); err != nil {
		return nil, err
	}
	return clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
}

// inUse returns the part of a kubeconfig to which its current context leads.
func inUse(config *clientcmdapi.Config) *clientcmdapi.Config {
	used := clientcmdapi.NewConfig()
	used.CurrentContext = config.CurrentContext
	current := config.Contexts[config.CurrentContext]
	if current == nil {
		return used
	}
	used.Contexts[config.CurrentContext] = current
	if c := config.Clusters[current.Cluster]; c != nil {
		used.Clusters[current.Cluster] = c
	}
	if u := config.AuthInfos[current.AuthInfo]; u != nil {
		used.AuthInfos[current.AuthInfo] = u
	}
	return used
}

// check returns why a kubeconfig must not be used. Its author is not the owner of the pod: it starts no program there,
// and it names only files that came with it, in the directory dir. An empty dir means that none did.
func check(config *clientcmdapi.Config, dir string) error {
	for name, u := range config.AuthInfos {
		if u.Exec != nil {
			return fmt.Errorf("user %q has exec, which would run a program in the pod of the agent: use a token or a client "+
				"certificate", name)
		}
		if u.AuthProvider != nil {
			return fmt.Errorf("user %q has an auth-provider, which is not supported: use a token or a client certificate", name)
		}
	}
	for name, c := range config.Clusters {
		if err := checkAddresses(name, c); err != nil {
			return err
		}
	}
	for _, f := range fileFields(config) {
		if !within(*f.path, dir) {
			return fmt.Errorf("%s has %s %q: %s", f.owner, f.name, *f.path, elsewhere(dir))
		}
	}
	return nil
}

// checkAddresses returns why the addresses of a cluster must not be used. They are logged, and errors of client-go
// quote them, so a password in that of the server is refused, and that of a proxy is not told.
func checkAddresses(name string, c *clientcmdapi.Cluster) error {
	server, err := url.Parse(c.Server)
	switch {
	case err != nil:
		return fmt.Errorf("the server of cluster %q cannot be parsed: write it as https://HOST:PORT", name)
	case server.User != nil:
		return fmt.Errorf("the server of cluster %q has a user, and the address of a server is logged: use a token or a "+
			"client certificate", name)
	}
	if proxy, err := url.Parse(c.ProxyURL); c.ProxyURL != "" && (err != nil || proxy.Host == "") {
		return fmt.Errorf("the proxy-url of cluster %q cannot be parsed: write it as http://HOST:PORT", name)
	}
	return nil
}

// within reports whether a path of a kubeconfig leads into its directory, or is empty.
func within(file, dir string) bool {
	if file == "" || dir == "" {
		return file == ""
	}
	if filepath.IsAbs(file) {
		relative, err := filepath.Rel(dir, file)
		if err != nil {
			return false
		}
		file = relative
	}
	return filepath.IsLocal(file)
}

// elsewhere returns what to do about a path that leads out of the directory.
func elsewhere(dir string) string {
	if dir == "" {
		return "put the content into the kubeconfig, which is read without files"
	}
	return "put the file into " + dir + ", or its content into the kubeconfig"
}

// RESTConfig returns the client configuration of the kubeconfig raw, which was read from a file, if clients can be made
// of it. A token in a file beside it is read again now and then, because a user who keeps the file replaces it.
func RESTConfig(raw []byte, path string) (*rest.Config, error) {
	config, err := load(raw, path)
	if err != nil {
		return nil, err
	}
	if err := checkLinks(config, filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("finding the files that it names: %w", err)
	}
	made, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	if _, err := rest.HTTPClientFor(made); err != nil {
		return nil, fmt.Errorf("building a client: %w", err)
	}
	if _, _, err := rest.DefaultServerURL(made.Host, "", schema.GroupVersion{}, true); err != nil {
		return nil, fmt.Errorf("reading the address of the server: %w", err)
	}
	return made, rereadToken(made, filepath.Dir(path), clock.RealClock{})
}
