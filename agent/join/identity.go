package join

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/issue"
)

const (
	// agentNameLength is the number of characters of a random agent name.
	agentNameLength = 5
	// reservedClusterName is the name whose group would be the group of all clusters.
	reservedClusterName = "managed-clusters"
)

// CheckClusterName returns an error that begins with the name if a cluster cannot have it.
func CheckClusterName(name string) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("%q cannot be the name of a namespace on the hub: %s",
			name, strings.Join(problems, "; "))
	}
	if name == reservedClusterName {
		return fmt.Errorf("%q is reserved: its group would be the group of all clusters", name)
	}
	return nil
}

// ResolveIdentity returns the identity of the agent: each name comes from the flag, else from the first of the Secrets
// that has it, else from random. The error names the name that is not acceptable.
func ResolveIdentity(flags, random csr.Identity, secrets ...*corev1.Secret) (csr.Identity, error) {
	id := flags
	for _, secret := range secrets {
		if secret == nil {
			continue
		}
		if id.Cluster == "" {
			id.Cluster = string(secret.Data[csr.KeyClusterName])
		}
		if id.Agent == "" {
			id.Agent = string(secret.Data[csr.KeyAgentName])
		}
	}
	if id.Cluster == "" {
		id.Cluster = random.Cluster
	}
	if id.Agent == "" {
		id.Agent = random.Agent
	}
	return id, checkIdentity(id)
}

func checkIdentity(id csr.Identity) error {
	if err := CheckClusterName(id.Cluster); err != nil {
		return fmt.Errorf("cluster name %w", err)
	}
	if id.Agent == "" || strings.Contains(id.Agent, ":") {
		return fmt.Errorf("agent name %q must not be empty nor contain a colon: it is a part of a user name", id.Agent)
	}
	return nil
}

// Identify resolves the identity of the agent and makes sure that it stays the same: a random name is stored in the
// Secret of the pending key before it is used. key names the credential Secret. c must not read from a cache.
func Identify(
	ctx context.Context, c client.Client, key types.NamespacedName, flags csr.Identity,
) (csr.Identity, error) {
	var found []*corev1.Secret
	nobody := csr.ForCluster("", "")
	pendingName, formerName := issue.PendingName(nobody, key.Name), issue.PendingName(nobody, "")
	for _, name := range []string{key.Name, pendingName, formerName} {
		secret, err := readSecret(ctx, c, types.NamespacedName{Namespace: key.Namespace, Name: name})
		if err != nil {
			return csr.Identity{}, fmt.Errorf("looking for the names of a former agent: %w", err)
		}
		if name == formerName && name != pendingName && !issue.IsFormer(secret) {
			continue // the pending key of another agent in this namespace
		}
		found = append(found, secret)
	}
	random := csr.Identity{Cluster: string(uuid.NewUUID()), Agent: rand.String(agentNameLength)}
	id, err := ResolveIdentity(flags, random, found...)
	if err != nil {
		return csr.Identity{}, err
	}
	if id.Cluster != random.Cluster && id.Agent != random.Agent {
		return id, nil
	}
	pending := found[1]
	if pending == nil {
		pending = issue.PendingSecret(csr.ForCluster(id.Cluster, id.Agent), key.Namespace, key.Name)
	}
	if err := storeIdentity(ctx, c, pending, id); err != nil {
		return csr.Identity{}, fmt.Errorf("storing the random names: %w", err)
	}
	return id, nil
}

// storeIdentity writes the names to the Secret of the pending key.
func storeIdentity(ctx context.Context, c client.Client, pending *corev1.Secret, id csr.Identity) error {
	if pending.Data == nil {
		pending.Data = map[string][]byte{}
	}
	pending.Data[csr.KeyClusterName] = []byte(id.Cluster)
	pending.Data[csr.KeyAgentName] = []byte(id.Agent)
	return write(ctx, c, pending)
}

// write updates a Secret that was read, and creates one that was not.
func write(ctx context.Context, c client.Client, secret *corev1.Secret) error {
	if secret.ResourceVersion == "" {
		return c.Create(ctx, secret)
	}
	return c.Update(ctx, secret)
}

// readSecret returns nil for a Secret that does not exist; the caller may change the result.
func readSecret(ctx context.Context, r client.Reader, key types.NamespacedName) (*corev1.Secret, error) {
	var secret corev1.Secret
	switch err := r.Get(ctx, key, &secret); {
	case apierrors.IsNotFound(err):
		return nil, nil // no Secret is a good answer
	case err != nil:
		return nil, fmt.Errorf("reading secret %s: %w", key, err)
	}
	return secret.DeepCopy(), nil
}
