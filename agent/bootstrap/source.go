package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/issue"
)

// Source is the place of a bootstrap kubeconfig: a file, or a Secret in the agent's namespace.
type Source struct {
	// File is the path of the file; empty means the Secret.
	File string
	// Secret is the Secret whose key kubeconfig is the bootstrap kubeconfig.
	Secret types.NamespacedName
}

// String names the source in errors.
func (s Source) String() string {
	if s.File != "" {
		return s.File
	}
	return "in Secret " + s.Secret.String()
}

// Target is a hub, and the credential with which the cluster can join it.
type Target struct {
	// Source is where the bootstrap kubeconfig was read.
	Source Source
	// Kubeconfig is self-contained; nil means that there is none, and only a stored credential leads to the hub.
	Kubeconfig []byte
	// Server is the hub.
	Server issue.HubServer
}

// Candidate has what a Source contained at one moment.
type Candidate struct {
	Target
	// Files are the files that were read or missing: the kubeconfig and the files that it names.
	Files []string
	// Problem is why the kubeconfig leads to no hub; nil when it does.
	Problem error
}

// errMissing is the problem of a source that does not exist.
var errMissing = errors.New("does not exist")

// same reports whether a source has not changed between two reads.
func (c Candidate) same(other Candidate) bool {
	return bytes.Equal(c.Kubeconfig, other.Kubeconfig) && fmt.Sprint(c.Problem) == fmt.Sprint(other.Problem)
}

// Read reads the bootstrap kubeconfig, with all files that it names inlined. A kubeconfig that is missing or broken is
// a Candidate with a Problem; an error means that its content is unknown. r reads Secrets.
func (s Source) Read(ctx context.Context, r client.Reader) (Candidate, error) {
	found := Candidate{Target: Target{Source: s}}
	var broken error
	if s.File != "" {
		var named []string
		found.Kubeconfig, named, broken = ReadFile(s.File)
		found.Files = append([]string{s.File}, named...)
	} else {
		data, err := s.readSecret(ctx, r)
		if err != nil {
			return found, err
		}
		found.Kubeconfig = data
	}
	switch {
	case broken != nil:
		found.Problem = fmt.Errorf("bootstrap kubeconfig %s: %w", s, broken)
	case found.Kubeconfig == nil:
		found.Problem = fmt.Errorf("bootstrap kubeconfig %s %w", s, errMissing)
	default:
		found.Server, found.Problem = s.parse(found.Kubeconfig)
	}
	return found, nil
}

// readSecret returns nil if the Secret does not exist.
func (s Source) readSecret(ctx context.Context, r client.Reader) ([]byte, error) {
	var secret corev1.Secret
	switch err := r.Get(ctx, s.Secret, &secret); {
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

// parse returns the hub of a kubeconfig. The error names the source.
func (s Source) parse(kubeconfig []byte) (issue.HubServer, error) {
	server, err := issue.ParseHubServer(kubeconfig)
	if err == nil {
		_, err = Parse(kubeconfig)
	}
	if err != nil {
		return issue.HubServer{}, fmt.Errorf("bootstrap kubeconfig %s: %w", s, err)
	}
	return server, nil
}

// ReadAll reads all sources.
func ReadAll(ctx context.Context, sources []Source, r client.Reader) ([]Candidate, error) {
	found := make([]Candidate, 0, len(sources))
	for _, source := range sources {
		one, err := source.Read(ctx, r)
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return found, nil
}

// Problems returns the problems of all candidates in one line; empty when there are none.
func Problems(candidates []Candidate) string {
	var problems []string
	for _, one := range candidates {
		if one.Problem != nil {
			problems = append(problems, one.Problem.Error())
		}
	}
	return strings.Join(problems, "; ")
}

// AnyUsable reports whether one of the candidates leads to a hub.
func AnyUsable(candidates []Candidate) bool {
	return slices.ContainsFunc(candidates, func(c Candidate) bool { return c.Problem == nil })
}

// Same reports whether no source has changed between two reads.
func Same(a, b []Candidate) bool { return slices.EqualFunc(a, b, Candidate.same) }

// Moved returns why the agent cannot stay a member of the hub server, given what the sources contain now; empty when it
// can. Another credential in a bootstrap kubeconfig is no reason. Nor is a source that is missing or broken: it does
// not prove that the hub is another one.
func Moved(server issue.HubServer, now []Candidate) string {
	var other []string
	for _, one := range now {
		switch {
		case errors.Is(one.Problem, errMissing):
		case one.Problem != nil, one.Server.Equal(server):
			return ""
		default:
			other = append(other, fmt.Sprintf("bootstrap kubeconfig %s to %s (%s)", one.Source, one.Server.Server,
				one.Server.Cluster))
		}
	}
	if len(other) == 0 {
		return ""
	}
	return fmt.Sprintf("no bootstrap kubeconfig leads to hub %s (%s) in the way that is used; now leads %s",
		server.Server, server.Cluster, strings.Join(other, ", "))
}
