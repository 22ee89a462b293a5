package klusterlet

import (
	"bytes"
	"embed"
	"fmt"
	"text/template"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

//go:embed templates
var templates embed.FS

// Klusterlet is one Klusterlet with its agents.
type Klusterlet struct {
	// Name is the name of the Klusterlet. Names of Deployments, ServiceAccounts and roles begin with it.
	Name string
	// Namespace is the namespace of the agents on the cluster that they run on; in hosted mode, OCM gives it the name of
	// the Klusterlet.
	Namespace string
	// ManagedNamespace is the namespace of the ServiceAccounts on the managed cluster in hosted mode.
	ManagedNamespace string
	// Cluster is the name of the managed cluster on the hub.
	Cluster string
	// UID is the UID of the Klusterlet, by which the AppliedManifestWorks of its agents are owned.
	UID string
	// Image is the image of the agents.
	Image string
	// Replicas is the number of pods of each Deployment.
	Replicas int
	// Hosted is set in the modes Hosted and SingletonHosted.
	Hosted bool
	// Singleton is set in the modes Singleton and SingletonHosted, where one agent does registration and works.
	Singleton bool
	// Settings are what is set beyond that.
	Settings Settings
	// HostingCluster is the name on the hub of the cluster that the agents run on, for a Klusterlet that reports it;
	// empty reports nothing.
	HostingCluster string
}

// The Secrets in the namespace of the agents that the operator or a person creates.
const (
	// SecretBootstrap has the bootstrap kubeconfig.
	SecretBootstrap = "bootstrap-hub-kubeconfig"
	// SecretHub becomes the credential for the hub.
	SecretHub = "hub-kubeconfig-secret"
	// SecretManagedRegistration has, in hosted mode, the kubeconfig of the managed cluster for the registration agent.
	SecretManagedRegistration = "external-managed-kubeconfig-registration"
	// SecretManagedWork has it for the work agent.
	SecretManagedWork = "external-managed-kubeconfig-work"
	// SecretManagedAgent has it for a singleton.
	SecretManagedAgent = "external-managed-kubeconfig-agent"
)

// RegistrationAccount and WorkAccount are the names of the ServiceAccounts; a singleton has the latter only.
func (k Klusterlet) RegistrationAccount() string {
	if k.Singleton {
		return k.WorkAccount()
	}
	return k.Name + "-registration-sa"
}

// WorkAccount is the ServiceAccount of the agent that does works.
func (k Klusterlet) WorkAccount() string { return k.Name + "-work-sa" }

// Deployments renders the Deployments of the agents: registration and work, or the singleton.
func (k Klusterlet) Deployments() ([]*appsv1.Deployment, error) {
	files := []string{"registration.yaml", "work.yaml"}
	if k.Singleton {
		files = []string{"singleton.yaml"}
	}
	list := make([]*appsv1.Deployment, 0, len(files))
	for _, file := range files {
		data, err := k.render(file)
		if err != nil {
			return nil, err
		}
		var deployment appsv1.Deployment
		if err := yaml.UnmarshalStrict(data, &deployment); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		list = append(list, &deployment)
	}
	return list, nil
}

// Management renders namespace, ServiceAccounts and rights on the cluster that the agents run on.
func (k Klusterlet) Management() ([]byte, error) { return k.render("management.yaml") }

// Managed renders namespace, ServiceAccounts and rights on the managed cluster. Outside hosted mode that is the cluster
// that the agents run on.
func (k Klusterlet) Managed() ([]byte, error) {
	if !k.Hosted {
		k.ManagedNamespace = k.Namespace
	}
	return k.render("managed.yaml")
}

func (k Klusterlet) render(file string) ([]byte, error) {
	t, err := template.New(file).ParseFS(templates, "templates/"+file, "templates/arguments.yaml")
	if err != nil {
		return nil, fmt.Errorf("reading the template %s: %w", file, err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, k); err != nil {
		return nil, fmt.Errorf("rendering %s: %w", file, err)
	}
	return out.Bytes(), nil
}
