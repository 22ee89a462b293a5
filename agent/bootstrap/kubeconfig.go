package bootstrap

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
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
	named = namedFiles(config)
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return nil, named, fmt.Errorf("reading the files that it names: %w", err)
	}
	kubeconfig, err = clientcmd.Write(*config)
	return kubeconfig, named, err
}

// load parses the content of a file; the paths in it become absolute.
func load(raw []byte, path string) (*clientcmdapi.Config, error) {
	config, err := clientcmd.Load(raw)
	if err != nil {
		return nil, fmt.Errorf("it is no kubeconfig: %w", err)
	}
	for _, c := range config.Clusters {
		c.LocationOfOrigin = path
	}
	for _, u := range config.AuthInfos {
		u.LocationOfOrigin = path
	}
	for _, c := range config.Contexts {
		c.LocationOfOrigin = path
	}
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		return nil, fmt.Errorf("finding the files that it names: %w", err)
	}
	return config, nil
}

// namedFiles returns the paths of the files that a kubeconfig names.
func namedFiles(config *clientcmdapi.Config) []string {
	var files []string
	for _, c := range config.Clusters {
		files = append(files, c.CertificateAuthority)
	}
	for _, u := range config.AuthInfos {
		files = append(files, u.ClientCertificate, u.ClientKey)
	}
	return slices.DeleteFunc(files, func(file string) bool { return file == "" })
}

// RESTConfig returns the client configuration of the kubeconfig raw, which was read from a file.
func RESTConfig(raw []byte, path string) (*rest.Config, error) {
	config, err := load(raw, path)
	if err != nil {
		return nil, err
	}
	return clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
}
