package fleet_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

const guideAddon = "hello-template"

// TestTheExampleOfTheDeveloperGuide installs the hello-template example as it is in the developer guide, in
// v1alpha1, with only the image changed, on both clusters.
// Shows: registration/end-to-end-certificate
func TestTheExampleOfTheDeveloperGuide(t *testing.T) {
	f := shared.fleet
	ca := createWhatTheGuideRefersTo(t, f)
	for _, file := range []string{"template.yaml", "config.yaml", "management.yaml"} {
		require.NoError(t, f.Hub.Apply(t.Context(), testdata(t, file)), file)
	}
	t.Cleanup(func() { removeGuideExample(t, f) })
	for _, cluster := range f.Clusters() {
		addon := bytes.ReplaceAll(testdata(t, "addon.yaml"), []byte("namespace: cluster1"), []byte("namespace: "+cluster.Name))
		require.NoError(t, f.Hub.Apply(t.Context(), addon))
	}

	for _, cluster := range f.Clusters() {
		eventually(t, "hello-template on "+cluster.Name, func(ctx context.Context) error {
			return errors.Join(startPods(ctx, cluster), rolledOut(ctx, f, cluster.Name, guideAddon))
		})
		assertDeployed(t, cluster)
		assertHubCredential(t, f, cluster)
		assertCustomCredential(t, cluster, ca)
		assertReadsBackInBothVersions(t, f, cluster.Name)
	}
}

// createWhatTheGuideRefersTo creates what the guide leaves to the user, and nothing else: the roles with the grant that
// the guide shows, and the CA with the grant to read it. It returns the CA's certificate.
func createWhatTheGuideRefersTo(t *testing.T, f *fleet.Fleet) *x509.Certificate {
	t.Helper()
	ca, err := sandbox.NewCA("signer-test", nil)
	require.NoError(t, err)
	configMaps := func(verbs ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs}}
	}
	reader := metav1.ObjectMeta{Name: "read-ca", Namespace: "test-namespace"}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "test-namespace"}},
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "cm-admin"},
			Rules:      configMaps("get", "list", "watch", "create", "update", "patch", "delete"),
		},
		&rbacv1.ClusterRoleBinding{ // the grant as it is in the guide; it covers cm-reader, too
			ObjectMeta: metav1.ObjectMeta{Name: "addon-manager-cm-admin"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cm-admin"},
			Subjects: []rbacv1.Subject{
				{Kind: "ServiceAccount", Namespace: names.NamespaceHub, Name: names.ServiceAccountAddons},
			},
		},
		&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Name: "cm-reader", Namespace: "open-cluster-management"},
			Rules:      configMaps("get", "list", "watch"),
		},
		ca.Secret("test-namespace", "ca-secret", "hello-template"),
		&rbacv1.Role{ObjectMeta: reader, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"ca-secret"}, Verbs: []string{"get"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: reader,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "read-ca"},
			Subjects: []rbacv1.Subject{
				{Kind: "ServiceAccount", Namespace: names.NamespaceHub, Name: names.ServiceAccountAddons},
			},
		},
	} {
		require.NoError(t, f.HubClient.Create(t.Context(), object))
		t.Cleanup(func() {
			assert.NoError(t, client.IgnoreNotFound(f.HubClient.Delete(context.WithoutCancel(t.Context()), object)))
		})
	}
	return ca.Certificate
}

// startPods reports the pods of the example as ready, which no kubelet does here.
func startPods(ctx context.Context, cluster *fleet.Cluster) error {
	var deployment appsv1.Deployment
	key := client.ObjectKey{Namespace: names.NamespaceAgentAddon, Name: "hello-template-agent"}
	if err := cluster.Client.Get(ctx, key, &deployment); err != nil {
		return err
	}
	if deployment.Status.ReadyReplicas == 1 {
		return nil
	}
	deployment.Status.ObservedGeneration = deployment.Generation
	deployment.Status.Replicas, deployment.Status.UpdatedReplicas = 1, 1
	deployment.Status.ReadyReplicas, deployment.Status.AvailableReplicas = 1, 1
	return cluster.Client.Status().Update(ctx, &deployment)
}

// rolledOut returns why an add-on is not rolled out on a cluster yet.
func rolledOut(ctx context.Context, f *fleet.Fleet, cluster, addon string) error {
	var found addonv1beta1.ManagedClusterAddOn
	if err := f.HubClient.Get(ctx, client.ObjectKey{Namespace: cluster, Name: addon}, &found); err != nil {
		return err
	}
	for condition, want := range map[string]func(*metav1.Condition) bool{
		"RegistrationApplied":       isTrue,
		"Configured":                isTrue,
		"ManifestApplied":           isTrue,
		"ClusterCertificateRotated": isTrue,
		"Progressing":               func(c *metav1.Condition) bool { return c.Reason == "Completed" },
	} {
		c := meta.FindStatusCondition(found.Status.Conditions, condition)
		if c == nil {
			return fleet.NotYet("%s is not set", condition)
		}
		if !want(c) {
			return fleet.NotYet("%s is %s, %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	return nil
}

func isTrue(c *metav1.Condition) bool { return c.Status == metav1.ConditionTrue }

func assertDeployed(t *testing.T, cluster *fleet.Cluster) {
	t.Helper()
	var deployment appsv1.Deployment
	key := client.ObjectKey{Namespace: names.NamespaceAgentAddon, Name: "hello-template-agent"}
	require.NoError(t, cluster.Client.Get(t.Context(), key, &deployment))
	container := deployment.Spec.Template.Spec.Containers[0]
	assert.Contains(t, container.Args, "--cluster-name="+cluster.Name)
	assert.Contains(t, container.Args, "--hub-kubeconfig=/managed/hub-kubeconfig/kubeconfig")
	assert.Contains(t, container.Args, "--v=2")
	assert.Contains(t, container.Env, corev1.EnvVar{Name: "CLUSTER_NAME", Value: cluster.Name})
	mounts := map[string]string{}
	for _, mount := range container.VolumeMounts {
		mounts[mount.Name] = mount.MountPath
	}
	assert.Equal(t, map[string]string{
		"hub-kubeconfig":               "/managed/hub-kubeconfig",
		"cert-example-com-signer-test": "/managed/example.com-signer-test",
	}, mounts)
	var binding rbacv1.ClusterRoleBinding
	require.NoError(t, cluster.Client.Get(t.Context(), client.ObjectKey{Name: "hello-template-agent"}, &binding))
}

// assertHubCredential uses the add-on's kubeconfig as its agent would: it may do on the hub what the guide says, and
// nothing else.
func assertHubCredential(t *testing.T, f *fleet.Fleet, cluster *fleet.Cluster) {
	t.Helper()
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: names.NamespaceAgentAddon, Name: guideAddon + "-hub-kubeconfig"}
	require.NoError(t, cluster.Client.Get(t.Context(), key, &secret))
	agent, err := client.New(hubConfig(t, &secret), client.Options{Scheme: fleet.Scheme()})
	require.NoError(t, err)

	own := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "from-the-agent", Namespace: cluster.Name}}
	require.NoError(t, agent.Create(t.Context(), own), "cm-admin in the cluster's namespace")
	require.NoError(t, agent.Delete(t.Context(), own))
	var list corev1.ConfigMapList
	require.NoError(t, agent.List(t.Context(), &list, client.InNamespace("open-cluster-management")), "cm-reader")
	err = agent.List(t.Context(), &list, client.InNamespace("default"))
	assert.True(t, apierrors.IsForbidden(err), "no right was given in another namespace: %v", err)
	for _, other := range f.Clusters() {
		if other.Name != cluster.Name {
			err := agent.List(t.Context(), &list, client.InNamespace(other.Name))
			assert.True(t, apierrors.IsForbidden(err), "no right was given in another cluster's namespace: %v", err)
		}
	}
}

// hubConfig reads the kubeconfig of a Secret, with the files that it names beside it.
func hubConfig(t *testing.T, secret *corev1.Secret) *rest.Config {
	t.Helper()
	loaded, err := clientcmd.Load(secret.Data["kubeconfig"])
	require.NoError(t, err)
	for _, user := range loaded.AuthInfos {
		user.ClientCertificateData, user.ClientKeyData = secret.Data[user.ClientCertificate], secret.Data[user.ClientKey]
		user.ClientCertificate, user.ClientKey = "", ""
	}
	cfg, err := clientcmd.NewDefaultClientConfig(*loaded, nil).ClientConfig()
	require.NoError(t, err)
	return cfg
}

func assertCustomCredential(t *testing.T, cluster *fleet.Cluster, ca *x509.Certificate) {
	t.Helper()
	var secret corev1.Secret
	key := client.ObjectKey{
		Namespace: names.NamespaceAgentAddon, Name: guideAddon + "-example.com-signer-test-client-cert",
	}
	require.NoError(t, cluster.Client.Get(t.Context(), key, &secret))
	assert.NotContains(t, secret.Data, "kubeconfig")
	assert.Equal(t, cluster.Name, string(secret.Data["cluster-name"]))
	block, _ := pem.Decode(secret.Data["tls.crt"])
	require.NotNil(t, block)
	cert, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	assert.Equal(t, "user-test", cert.Subject.CommonName)
	assert.Equal(t, []string{"group-test"}, cert.Subject.Organization)
	assert.Equal(t, []string{"organization-test"}, cert.Subject.OrganizationalUnit)
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	_, err = cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	require.NoError(t, err, "the certificate must come from the template's CA")
}

// assertReadsBackInBothVersions reads what was written in v1alpha1 in v1beta1 too, through the conversion webhook.
func assertReadsBackInBothVersions(t *testing.T, f *fleet.Fleet, cluster string) {
	t.Helper()
	var alphaCMA addonv1alpha1.ClusterManagementAddOn
	var betaCMA addonv1beta1.ClusterManagementAddOn
	require.NoError(t, f.HubClient.Get(t.Context(), client.ObjectKey{Name: guideAddon}, &alphaCMA))
	require.NoError(t, f.HubClient.Get(t.Context(), client.ObjectKey{Name: guideAddon}, &betaCMA))
	require.Len(t, alphaCMA.Spec.SupportedConfigs, 2)
	require.Len(t, betaCMA.Spec.DefaultConfigs, 2)
	assert.Equal(t, "hello-template-deploy-config", alphaCMA.Spec.SupportedConfigs[1].DefaultConfig.Name)
	assert.Equal(t, "hello-template-deploy-config", betaCMA.Spec.DefaultConfigs[1].Name)
	assert.Len(t, alphaCMA.Status.DefaultConfigReferences, 2)
	assert.Len(t, betaCMA.Status.DefaultConfigReferences, 2)

	var alpha addonv1alpha1.ManagedClusterAddOn
	var beta addonv1beta1.ManagedClusterAddOn
	key := client.ObjectKey{Namespace: cluster, Name: guideAddon}
	eventually(t, "one state in both versions", func(ctx context.Context) error {
		if err := errors.Join(f.HubClient.Get(ctx, key, &alpha), f.HubClient.Get(ctx, key, &beta)); err != nil {
			return err
		}
		// Nothing runs the pods, so the health goes up and down.
		if alpha.ResourceVersion != beta.ResourceVersion {
			return fleet.NotYet("version %s, then %s", alpha.ResourceVersion, beta.ResourceVersion)
		}
		return nil
	})
	assert.Equal(t, names.NamespaceAgentAddon, alpha.Spec.InstallNamespace)
	assert.Equal(t, names.NamespaceAgentAddon, beta.Annotations[names.AnnotationInstallNamespace])
	assert.NotContains(t, alpha.Annotations, names.AnnotationInstallNamespace)
	require.Len(t, alpha.Status.Registrations, 2)
	require.Len(t, beta.Status.Registrations, 2)
	assert.Equal(t, "kubernetes.io/kube-apiserver-client", alpha.Status.Registrations[0].SignerName)
	assert.Equal(t, addonv1beta1.KubeClient, beta.Status.Registrations[0].Type)
	assert.Equal(t, "csr", beta.Status.Registrations[0].KubeClient.Driver)
	assert.Equal(t, alpha.Status.Registrations[0].Subject.User, beta.Status.Registrations[0].KubeClient.Subject.User)
	assert.Equal(t, []string{"organization-test"}, alpha.Status.Registrations[1].Subject.OrganizationUnits)
	assert.Equal(t, []string{"organization-test"}, beta.Status.Registrations[1].CustomSigner.Subject.OrganizationUnits)
	assert.Equal(t, alpha.Status.Conditions, beta.Status.Conditions)
	require.Len(t, alpha.Status.ConfigReferences, 2)
	assert.NotEmpty(t, alpha.Status.ConfigReferences[0].Name, "v1alpha1 carries the deprecated name")
}

// removeGuideExample deletes the add-on and checks that only what its author wanted to keep is left.
func removeGuideExample(t *testing.T, f *fleet.Fleet) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	cma := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: guideAddon}}
	require.NoError(t, f.HubClient.Delete(ctx, cma))
	for _, cluster := range f.Clusters() {
		require.NoError(t, fleet.Wait(ctx, "hello-template to be gone", nil, func(ctx context.Context) error {
			return gone(ctx, f, cluster, guideAddon)
		}))
		var kept corev1.ServiceAccount
		key := client.ObjectKey{Namespace: names.NamespaceAgentAddon, Name: "hello-template-agent-sa"}
		require.NoError(t, cluster.Client.Get(ctx, key, &kept), "the template orphans its ServiceAccount")
		assert.Empty(t, kept.OwnerReferences)
	}
}

// gone names what is left of an add-on on the hub and on a cluster.
func gone(ctx context.Context, f *fleet.Fleet, cluster *fleet.Cluster, addon string) error {
	var left addonv1alpha1.ManagedClusterAddOn
	err := f.HubClient.Get(ctx, client.ObjectKey{Namespace: cluster.Name, Name: addon}, &left)
	if !apierrors.IsNotFound(err) {
		return fleet.NotYet("the ManagedClusterAddOn is left: %w", err)
	}
	var works workv1.ManifestWorkList
	if err := f.HubClient.List(ctx, &works, client.InNamespace(cluster.Name)); err != nil {
		return err
	}
	var applied workv1.AppliedManifestWorkList
	if err := cluster.Client.List(ctx, &applied); err != nil {
		return err
	}
	if len(works.Items)+len(applied.Items) > 0 {
		return fleet.NotYet("%d works and %d applied works are left", len(works.Items), len(applied.Items))
	}
	var deployments appsv1.DeploymentList
	if err := cluster.Client.List(ctx, &deployments, client.InNamespace(names.NamespaceAgentAddon)); err != nil {
		return err
	}
	var secrets corev1.SecretList
	if err := cluster.Client.List(ctx, &secrets, client.InNamespace(names.NamespaceAgentAddon)); err != nil {
		return err
	}
	if len(deployments.Items)+len(secrets.Items) > 0 {
		return fleet.NotYet("%d Deployments and %d Secrets are left", len(deployments.Items), len(secrets.Items))
	}
	return nil
}
