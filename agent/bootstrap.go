package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/agent/join"
	"github.com/spokelet/spokelet/csr"
)

// secretEntry starts an entry of --bootstrap-kubeconfigs that names a Secret.
const secretEntry = "secret:"

// bootstrap is the way to a hub that a phase begins with.
type bootstrap struct {
	// source is where the bootstrap kubeconfig came from.
	source bootstrapSource
	// kubeconfig is self-contained; nil when there is none.
	kubeconfig []byte
	// server is the hub that it leads to; without a bootstrap kubeconfig, the one of the stored credential.
	server csr.HubServer
}

// bootstrapSource says where a bootstrap kubeconfig comes from: a file, or a Secret in the agent's namespace.
type bootstrapSource struct {
	file   string
	secret types.NamespacedName
}

// sources are the bootstrap kubeconfigs of a configuration, in the order of preference.
func (c *Config) sources() []bootstrapSource {
	if !c.Gates.MultipleHubs {
		return []bootstrapSource{c.source(c.BootstrapKubeconfig)}
	}
	list := make([]bootstrapSource, 0, len(c.BootstrapKubeconfigs))
	for _, entry := range c.BootstrapKubeconfigs {
		list = append(list, c.source(entry))
	}
	return list
}

func (c *Config) source(entry string) bootstrapSource {
	source := bootstrapSource{secret: types.NamespacedName{Namespace: c.Namespace, Name: c.BootstrapSecret}}
	if name, ok := strings.CutPrefix(entry, secretEntry); ok {
		source.secret.Name = name
		return source
	}
	source.file = entry
	return source
}

// String names the source in errors.
func (s bootstrapSource) String() string {
	if s.file != "" {
		return s.file
	}
	return "in Secret " + s.secret.String()
}

// finding is what was found at a source of a bootstrap kubeconfig.
type finding struct {
	bootstrap
	// files are the files that were read or would have been: the kubeconfig and what it names.
	files []string
	// problem says why it leads to no hub; nil when it does.
	problem error
}

// errNoBootstrap is the problem of a source where there is nothing.
var errNoBootstrap = errors.New("does not exist")

// same reports whether two looks at one source found the same.
func (f finding) same(other finding) bool {
	return bytes.Equal(f.kubeconfig, other.kubeconfig) && fmt.Sprint(f.problem) == fmt.Sprint(other.problem)
}

// look reads a bootstrap kubeconfig with all files that it names inlined. What is wrong with it is part of the finding;
// an error means that it is not known what stands there now. r reads Secrets.
func (s bootstrapSource) look(ctx context.Context, r client.Reader) (finding, error) {
	found := finding{bootstrap: bootstrap{source: s}}
	var broken error
	if s.file != "" {
		found.files = []string{s.file}
		found.kubeconfig, broken = s.readFile(&found)
	} else {
		data, err := s.readSecret(ctx, r)
		if err != nil {
			return found, err
		}
		found.kubeconfig = data
	}
	switch {
	case broken != nil:
		found.problem = fmt.Errorf("bootstrap kubeconfig %s: %w", s, broken)
	case found.kubeconfig == nil:
		found.problem = fmt.Errorf("bootstrap kubeconfig %s %w", s, errNoBootstrap)
	default:
		found.server, found.problem = s.parse(found.kubeconfig)
	}
	return found, nil
}

// readFile returns nil when there is no file.
func (s bootstrapSource) readFile(found *finding) ([]byte, error) {
	raw, err := os.ReadFile(s.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return []byte{}, nil // which says so when it is parsed
	}
	config, err := clientcmd.Load(raw)
	if err != nil {
		return nil, fmt.Errorf("it is no kubeconfig: %w", err)
	}
	locate(config, s.file)
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		return nil, fmt.Errorf("finding the files that it names: %w", err)
	}
	found.files = append(found.files, namedFiles(config)...)
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return nil, fmt.Errorf("reading the files that it names: %w", err)
	}
	return clientcmd.Write(*config)
}

// locate says where a kubeconfig was read from, as paths in it are relative to that.
func locate(config *clientcmdapi.Config, file string) {
	for _, c := range config.Clusters {
		c.LocationOfOrigin = file
	}
	for _, u := range config.AuthInfos {
		u.LocationOfOrigin = file
	}
	for _, c := range config.Contexts {
		c.LocationOfOrigin = file
	}
}

// namedFiles returns the files that a kubeconfig names.
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

// readSecret returns nil when there is no Secret.
func (s bootstrapSource) readSecret(ctx context.Context, r client.Reader) ([]byte, error) {
	var secret corev1.Secret
	switch err := r.Get(ctx, s.secret, &secret); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the bootstrap kubeconfig %s: %w", s, err)
	}
	if data, ok := secret.Data[csr.KeyKubeconfig]; ok {
		return append([]byte{}, data...), nil
	}
	return []byte{}, nil
}

// parse reads how the hub is reached; the error says what is wrong with the bootstrap kubeconfig and where it is.
func (s bootstrapSource) parse(kubeconfig []byte) (csr.HubServer, error) {
	server, err := join.ParseBootstrap(kubeconfig, s.String())
	if err != nil {
		return csr.HubServer{}, err
	}
	if _, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig); err != nil {
		return csr.HubServer{}, fmt.Errorf("bootstrap kubeconfig %s: %w", s, err)
	}
	return server, nil
}

// lookAll looks at all sources.
func lookAll(ctx context.Context, sources []bootstrapSource, r client.Reader) ([]finding, error) {
	found := make([]finding, 0, len(sources))
	for _, source := range sources {
		one, err := source.look(ctx, r)
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return found, nil
}

// problems says in one line what is wrong with each source; empty when all are good.
func problems(found []finding) string {
	var told []string
	for _, one := range found {
		if one.problem != nil {
			told = append(told, one.problem.Error())
		}
	}
	return strings.Join(told, "; ")
}

// anyUsable reports whether one of the sources leads to a hub.
func anyUsable(found []finding) bool {
	return slices.ContainsFunc(found, func(f finding) bool { return f.problem == nil })
}

// sameFindings reports whether nothing changed between two looks.
func sameFindings(a, b []finding) bool { return slices.EqualFunc(a, b, finding.same) }

// leadsElsewhere tells why a member of the hub server cannot stay one, by what the bootstrap kubeconfigs say now; empty
// when it can. New credentials in a bootstrap kubeconfig are no reason. Nor is one that is gone or cannot be read: it
// does not say that the hub is another.
func leadsElsewhere(server csr.HubServer, now []finding) string {
	var other []string
	for _, one := range now {
		switch {
		case errors.Is(one.problem, errNoBootstrap):
		case one.problem != nil, one.server.Equal(server):
			return ""
		default:
			other = append(other, fmt.Sprintf("bootstrap kubeconfig %s to %s (%s)", one.source, one.server.Server,
				one.server.Cluster))
		}
	}
	if len(other) == 0 {
		return ""
	}
	return fmt.Sprintf("no bootstrap kubeconfig leads to hub %s (%s) in the way that is used; now leads %s",
		server.Server, server.Cluster, strings.Join(other, ", "))
}
