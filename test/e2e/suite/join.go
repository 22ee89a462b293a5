package suite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/e2e/cluster"
)

const (
	// HubManager is the name of the Deployment of the hub manager in names.NamespaceHub.
	HubManager = "spokelet-hub"
	// Agent is the name of the Deployment of the agent in names.NamespaceAgent.
	Agent = "klusterlet-agent"
	// tokenLifetime is how long the tokens of ServiceAccounts are valid, such as the one with which a cluster joins.
	tokenLifetime = time.Hour
)

// HubObjects returns all that is applied to a hub, with a tag of our images.
func (f *Fleet) HubObjects(tag string) ([]*unstructured.Unstructured, error) {
	definitions, err := f.Manifests("crds/hub")
	if err != nil {
		return nil, err
	}
	manager, err := f.Render(Overlay{Name: "hub-overlay", Base: "hub", Tag: tag})
	return append(definitions, manager...), err
}

// InstallHub installs or upgrades the hub manager, and waits until it is ready.
func (f *Fleet) InstallHub(ctx context.Context, tag string) error {
	objects, err := f.HubObjects(tag)
	if err != nil {
		return err
	}
	if err := Apply(ctx, f.Hub(), objects); err != nil {
		return err
	}
	return WaitDeployment(ctx, f.Hub(), names.NamespaceHub, HubManager)
}

// AgentObjects returns all that is applied to a managed cluster, with a tag of our images.
func (f *Fleet) AgentObjects(name, tag string) ([]*unstructured.Unstructured, error) {
	definitions, err := f.Manifests("crds/spoke")
	if err != nil {
		return nil, err
	}
	patch := fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, namespace: %s}, spec: {template:
  {spec: {containers: [{name: agent, env: [{name: CLUSTER_NAME, value: %s}]}]}}}}`, Agent, names.NamespaceAgent, name)
	agent, err := f.Render(Overlay{Name: "klusterlet-overlay", Base: "klusterlet", Tag: tag, Patches: []string{patch}})
	return append(definitions, agent...), err
}

// InstallAgent installs or upgrades the agent of a cluster with that name on the managed cluster, with a kubeconfig to
// join the hub. It does not wait, because an agent is ready only when its cluster has been accepted.
func (f *Fleet) InstallAgent(ctx context.Context, name, tag string) error {
	return f.InstallAgentOn(ctx, f.Managed(), name, tag)
}

// InstallAgentOn does that on any cluster of the fleet, with further flags.
func (f *Fleet) InstallAgentOn(ctx context.Context, c *cluster.Cluster, name, tag string, flags ...string) error {
	objects, err := f.AgentObjects(name, tag)
	if err != nil {
		return err
	}
	if err := AddFlags(objects, flags...); err != nil {
		return err
	}
	if err := Apply(ctx, c, objects); err != nil {
		return err
	}
	kubeconfig, err := f.BootstrapKubeconfig(ctx)
	if err != nil {
		return err
	}
	return PutKubeconfig(ctx, c, names.NamespaceAgent, names.SecretBootstrap, kubeconfig)
}

// AddFlags adds flags to the first container of each Deployment.
func AddFlags(objects []*unstructured.Unstructured, flags ...string) error {
	for _, o := range objects {
		if o.GetKind() != "Deployment" || len(flags) == 0 {
			continue
		}
		containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		if err != nil || len(containers) == 0 {
			return fmt.Errorf("reading the containers of %s: %w", Describe(o), err)
		}
		container, ok := containers[0].(map[string]any)
		if !ok {
			return fmt.Errorf("%s has a container that is no object", Describe(o))
		}
		args, _, err := unstructured.NestedStringSlice(container, "args")
		if err != nil {
			return fmt.Errorf("reading the arguments of %s: %w", Describe(o), err)
		}
		if err := unstructured.SetNestedStringSlice(container, slices.Concat(args, flags), "args"); err != nil {
			return fmt.Errorf("setting the arguments of %s: %w", Describe(o), err)
		}
		if err := unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", "containers"); err != nil {
			return fmt.Errorf("setting the containers of %s: %w", Describe(o), err)
		}
	}
	return nil
}

// PutKubeconfig creates or replaces a Secret with a kubeconfig.
func PutKubeconfig(ctx context.Context, c *cluster.Cluster, namespace, name string, kubeconfig []byte) error {
	secret := object("v1", "Secret", namespace, name)
	secret.Object["stringData"] = map[string]any{"kubeconfig": string(kubeconfig)}
	return Apply(ctx, c, []*unstructured.Unstructured{secret})
}

// DeleteCluster deletes a ManagedCluster and waits until it is gone, with its add-ons and works. Then it deletes the
// namespace of the cluster, which the hub manager leaves to its administrator.
func (f *Fleet) DeleteCluster(ctx context.Context, name string) error {
	for _, left := range []*unstructured.Unstructured{
		object(clusterv1.GroupVersion.String(), "ManagedCluster", "", name), object("v1", "Namespace", "", name),
	} {
		if err := Delete(ctx, f.Hub(), []*unstructured.Unstructured{left}); err != nil {
			return err
		}
	}
	return nil
}

// object returns an object without content.
func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// BootstrapKubeconfig returns a kubeconfig of the hub with which a cluster joins, at the address that pods of other
// clusters reach.
func (f *Fleet) BootstrapKubeconfig(ctx context.Context) ([]byte, error) {
	return AccountKubeconfig(ctx, f.Hub(), names.NamespaceBootstrap, names.ServiceAccountBootstrap)
}

// AccountKubeconfig returns a kubeconfig of a ServiceAccount, with a new token, at the address that pods of other
// clusters reach.
func AccountKubeconfig(ctx context.Context, c *cluster.Cluster, namespace, name string) ([]byte, error) {
	token, err := AccountToken(ctx, c, namespace, name)
	if err != nil {
		return nil, err
	}
	return withToken(c, token)
}

// AccountClient returns a client of a ServiceAccount.
func AccountClient(ctx context.Context, c *cluster.Cluster, namespace, name string) (client.Client, error) {
	token, err := AccountToken(ctx, c, namespace, name)
	if err != nil {
		return nil, err
	}
	config := rest.AnonymousClientConfig(c.Admin)
	config.BearerToken = token
	return client.New(config, client.Options{Scheme: c.Client.Scheme()})
}

// AccountToken returns a new token of a ServiceAccount.
func AccountToken(ctx context.Context, c *cluster.Cluster, namespace, name string) (string, error) {
	lifetime := int64(tokenLifetime.Seconds())
	token, err := c.Kube.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &lifetime},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("creating a token of ServiceAccount %s/%s: %w", namespace, name, err)
	}
	return token.Status.Token, nil
}

// withToken returns the internal kubeconfig of a cluster with a token in place of the administrator's certificate.
func withToken(c *cluster.Cluster, token string) ([]byte, error) {
	text, err := c.InternalKubeconfig()
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.Load(text)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of cluster %s: %w", c.Name, err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	}
	content, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return content, nil
}

// Join accepts a cluster as an administrator of the hub does: its request, and the cluster itself with some labels. It
// waits until the cluster is available.
func (f *Fleet) Join(ctx context.Context, name string, labels map[string]string) error {
	if err := f.approve(ctx, name); err != nil {
		return err
	}
	err := cluster.Until(ctx, "ManagedCluster "+name+" to be accepted", func(ctx context.Context) error {
		var found clusterv1.ManagedCluster
		if err := f.Hub().Client.Get(ctx, client.ObjectKey{Name: name}, &found); err != nil {
			return err
		}
		found.Spec.HubAcceptsClient = true
		merged := maps.Clone(found.Labels)
		if merged == nil {
			merged = map[string]string{}
		}
		maps.Copy(merged, labels)
		found.Labels = merged
		return f.Hub().Client.Update(ctx, &found)
	})
	if err != nil {
		return err
	}
	return f.WaitClusterAvailable(ctx, name)
}

// Requests counts the certificate requests of a cluster and its add-ons that the hub knows.
func (f *Fleet) Requests(ctx context.Context, name string) (int, error) {
	list, err := f.Hub().Kube.CertificatesV1().CertificateSigningRequests().List(ctx,
		metav1.ListOptions{LabelSelector: names.LabelClusterName + "=" + name})
	if err != nil {
		return 0, fmt.Errorf("listing the certificate requests of cluster %s: %w", name, err)
	}
	return len(list.Items), nil
}

// approve waits for the request of an agent for its first certificate, and approves it.
func (f *Fleet) approve(ctx context.Context, name string) error {
	return cluster.Until(ctx, "the certificate request of cluster "+name, func(ctx context.Context) error {
		requests := f.Hub().Kube.CertificatesV1().CertificateSigningRequests()
		found, err := requests.List(ctx, metav1.ListOptions{LabelSelector: names.LabelClusterName + "=" + name})
		if err != nil {
			return err
		}
		if len(found.Items) == 0 {
			return errors.New("there is none yet")
		}
		for i := range found.Items {
			request := &found.Items[i]
			if slices.ContainsFunc(request.Status.Conditions, isDecision) {
				continue
			}
			request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
				Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "E2E",
				Message: "approved as by a person",
			})
			if _, err := requests.UpdateApproval(ctx, request.Name, request, metav1.UpdateOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
}

func isDecision(c certificatesv1.CertificateSigningRequestCondition) bool {
	return c.Type == certificatesv1.CertificateApproved || c.Type == certificatesv1.CertificateDenied
}
