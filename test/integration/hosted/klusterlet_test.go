package hosted_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/agent"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// klusterlet is an agent on the hosting cluster, in the namespace that has the name of its cluster.
type klusterlet struct {
	t       *testing.T
	cluster string
	// spoke is the managed cluster, link the way to it, there a namespace of the test on it.
	spoke  *suite.Plane
	link   *sandbox.Link
	there  string
	config agent.Config
	*suite.Program
}

// newKlusterlet prepares an agent of a cluster, as a person does who follows the manual: what we ship, and a Secret
// that leads to the hub. The agent has no kubeconfig of the managed cluster yet.
func newKlusterlet(t *testing.T, prefix string, spoke *suite.Plane) *klusterlet {
	t.Helper()
	k := &klusterlet{t: t, cluster: suite.UniqueName(prefix), spoke: spoke}
	shipped := manifests.KlusterletHosted(k.cluster)
	require.NoError(t, host.Apply(t.Context(), shipped...))
	// The hosting cluster is the hub here, where the namespace of the cluster has the same name.
	label := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, names.LabelClusterName, k.cluster)
	require.NoError(t, host.Client.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: k.cluster}},
		client.RawPatch(types.MergePatchType, label)))
	var err error
	k.link, err = sandbox.NewLink(spoke.Host)
	require.NoError(t, err)
	t.Cleanup(k.link.Close)
	k.there = spoke.Namespace(t, prefix)
	bootstrap, err := host.Kubeconfig(host.AccountConfig(t, names.NamespaceBootstrap, names.ServiceAccountBootstrap))
	require.NoError(t, err)
	require.NoError(t, host.Client.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.cluster, Name: names.SecretBootstrap},
		Data:       map[string][]byte{"kubeconfig": bootstrap},
	}))
	k.config = k.configure(shipped[len(shipped)-1])
	return k
}

// configure turns the Deployment that we ship into the configuration that its container would have.
func (k *klusterlet) configure(shipped []byte) agent.Config {
	k.t.Helper()
	var deployment appsv1.Deployment
	require.NoError(k.t, yaml.Unmarshal(shipped, &deployment))
	var args []string
	for _, arg := range deployment.Spec.Template.Spec.Containers[0].Args {
		args = append(args, strings.NewReplacer("$(CLUSTER_NAME)", k.cluster, "$(POD_NAMESPACE)", k.cluster).Replace(arg))
	}
	config, err := agent.ParseFlags("/spokelet", args, io.Discard)
	require.NoError(k.t, err)
	require.NoError(k.t, config.Validate())
	dir := k.t.TempDir()
	config.Namespace = k.cluster
	config.Kubeconfig = host.WriteKubeconfig(k.t,
		host.AccountConfig(k.t, k.cluster, names.ServiceAccountAgent), dir, "own")
	config.SpokeKubeconfig = filepath.Join(dir, "config", "kubeconfig")
	config.WorkCacheDir = filepath.Join(dir, "works")
	config.HealthAddress = "127.0.0.1:" + strconv.Itoa(suite.FreePort(k.t))
	require.NoError(k.t, os.Mkdir(filepath.Dir(config.SpokeKubeconfig), 0o700))
	return config
}

// in returns the same agent for a subtest.
func (k *klusterlet) in(t *testing.T) *klusterlet {
	t.Helper()
	same := *k
	same.t = t
	return &same
}

// start starts the agent.
func (k *klusterlet) start() {
	k.t.Helper()
	k.Program = suite.RunAgent(k.t, k.config)
}

// identity is that of the agent on the managed cluster.
func (k *klusterlet) identity() *rest.Config {
	k.t.Helper()
	config := k.spoke.AccountConfig(k.t, names.NamespaceAgent, names.ServiceAccountAgent)
	config.Host = k.link.Host
	return config
}

// revocable returns the same identity with a token that ends when revoke is called.
func (k *klusterlet) revocable() (identity *rest.Config, revoke func()) {
	k.t.Helper()
	bound := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: names.NamespaceAgent, Name: k.cluster}}
	require.NoError(k.t, k.spoke.Client.Create(k.t.Context(), bound))
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Secret", Name: bound.Name, UID: bound.UID,
		},
	}}
	account := &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.NamespaceAgent, Name: names.ServiceAccountAgent},
	}
	require.NoError(k.t, k.spoke.Client.SubResource("token").Create(k.t.Context(), account, request))
	identity = k.identity()
	identity.BearerToken = request.Status.Token
	return identity, func() {
		k.t.Helper()
		require.NoError(k.t, k.spoke.Client.Delete(k.t.Context(), bound))
	}
}

// give does what a kubelet does with a Secret that has the kubeconfig of the managed cluster.
func (k *klusterlet) give(identity *rest.Config) {
	k.t.Helper()
	data, err := k.spoke.Kubeconfig(identity)
	require.NoError(k.t, err)
	fresh := k.config.SpokeKubeconfig + ".new"
	require.NoError(k.t, os.WriteFile(fresh, data, 0o600))
	require.NoError(k.t, os.Rename(fresh, k.config.SpokeKubeconfig))
}

// readiness is the answer of /readyz, or why there is none.
func (k *klusterlet) readiness() string {
	k.t.Helper()
	request, err := http.NewRequestWithContext(k.t.Context(), http.MethodGet, "http://"+k.config.HealthAddress+"/readyz", nil)
	require.NoError(k.t, err)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	require.NoError(k.t, err)
	return strings.TrimSpace(string(data))
}

func (k *klusterlet) awaitReadiness(text string) {
	k.t.Helper()
	suite.Eventually(k.t, func() error {
		if body := k.readiness(); !strings.Contains(body, text) {
			return fmt.Errorf("readiness must contain %q: %q", text, body)
		}
		return nil
	})
}

// awaitAvailable waits until the condition Available of the ManagedCluster has a status and a text in its message.
func (k *klusterlet) awaitAvailable(status metav1.ConditionStatus, text string) {
	k.t.Helper()
	suite.Eventually(k.t, func() error {
		var found clusterv1.ManagedCluster
		if err := host.Client.Get(k.t.Context(), client.ObjectKey{Name: k.cluster}, &found); err != nil {
			return err
		}
		c := meta.FindStatusCondition(found.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
		if c == nil || c.Status != status || !strings.Contains(c.Message, text) {
			return fmt.Errorf("Available must be %s with %q: %v", status, text, c)
		}
		return nil
	})
}

// accept does for the cluster what people do on the hub, and returns when its agent may serve.
func (k *klusterlet) accept() {
	k.t.Helper()
	suite.Eventually(k.t, func() error {
		found, err := suite.AdmitOnce(k.t.Context(), host, k.cluster)
		switch {
		case err != nil:
			return err
		case !meta.IsStatusConditionTrue(found.Status.Conditions, clusterv1.ManagedClusterConditionJoined):
			return fmt.Errorf("the cluster has not joined: %v", found.Status.Conditions)
		}
		return nil
	})
}

// apply creates a ManifestWork with a ConfigMap of the same name, and waits until that is on the managed cluster.
func (k *klusterlet) apply(name string) {
	k.t.Helper()
	k.createWork(name)
	k.awaitApplied(name)
}

func (k *klusterlet) createWork(name string) {
	k.t.Helper()
	raw := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":%q,"name":%q}}`, k.there, name)
	require.NoError(k.t, host.Client.Create(k.t.Context(), &workv1.ManifestWork{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.cluster, Name: name},
		Spec: workv1.ManifestWorkSpec{Workload: workv1.ManifestsTemplate{
			Manifests: []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}},
		}},
	}))
}

func (k *klusterlet) awaitApplied(name string) {
	k.t.Helper()
	suite.Eventually(k.t, func() error {
		var work workv1.ManifestWork
		if err := host.Client.Get(k.t.Context(), client.ObjectKey{Namespace: k.cluster, Name: name}, &work); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(work.Status.Conditions, workv1.WorkAvailable) {
			return fmt.Errorf("work %s is not available: %v", name, work.Status.Conditions)
		}
		return k.spoke.Client.Get(k.t.Context(), client.ObjectKey{Namespace: k.there, Name: name}, &corev1.ConfigMap{})
	})
}

// enable creates an add-on with one registration, as the hub of an add-on without a template does it; hosting is the
// hosting cluster, if any.
func (k *klusterlet) enable(addon, namespace, hosting string) {
	k.t.Helper()
	object := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: k.cluster, Name: addon}}
	if hosting != "" {
		object.Annotations = map[string]string{names.AnnotationHostingCluster: hosting}
	}
	require.NoError(k.t, host.AddOns.CreateAddOn(k.t.Context(), object))
	suite.Eventually(k.t, func() error { // the agent writes the status, too
		before, err := host.AddOns.GetAddOn(k.t.Context(), client.ObjectKeyFromObject(object))
		require.NoError(k.t, err)
		after := before.DeepCopy()
		after.Status.Namespace = namespace
		after.Status.HealthCheck.Mode = addonv1beta1.HealthCheckModeLease
		after.Status.Registrations = []addonv1beta1.RegistrationConfig{{
			Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{
				Subject: addonv1beta1.KubeClientSubject{BaseSubject: addonv1beta1.BaseSubject{User: "agent-of-" + addon}},
			},
		}}
		_, err = host.AddOns.PatchAddOnStatus(k.t.Context(), before, after)
		return err
	})
}

// awaitCondition waits until a condition of an add-on has a status and a text in its message.
func (k *klusterlet) awaitCondition(addon, kind string, status metav1.ConditionStatus, text string) {
	k.t.Helper()
	suite.Eventually(k.t, func() error {
		if _, err := suite.AdmitOnce(k.t.Context(), host, k.cluster); err != nil {
			return err
		}
		found, err := host.AddOns.GetAddOn(k.t.Context(), client.ObjectKey{Namespace: k.cluster, Name: addon})
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(found.Status.Conditions, kind)
		if c == nil || c.Status != status || !strings.Contains(c.Message, text) {
			return fmt.Errorf("%s of %s must be %s with %q: %v", kind, addon, status, text, c)
		}
		return nil
	})
}

// renew plays the agent of an add-on: it renews the lease.
func renew(t *testing.T, plane *suite.Plane, namespace, addon string) {
	t.Helper()
	now := metav1.NowMicro()
	require.NoError(t, plane.Client.Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: addon},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &now},
	}))
}

// secret returns a Secret; nil if it does not exist.
func secret(t *testing.T, plane *suite.Plane, namespace, name string) *corev1.Secret {
	t.Helper()
	var found corev1.Secret
	err := plane.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &found)
	require.NoError(t, client.IgnoreNotFound(err))
	if err != nil {
		return nil
	}
	return &found
}

// lacks returns the entries of the log about rights that the ServiceAccounts of the agent do not have.
func (k *klusterlet) lacks() []string {
	var found []string
	for line := range strings.Lines(k.Log.String()) {
		if strings.Contains(line, "forbidden") && strings.Contains(line, "system:serviceaccount:") {
			found = append(found, line)
		}
	}
	return found
}

// onHost returns a client of the agent on the hosting cluster.
func (k *klusterlet) onHost() client.Client {
	k.t.Helper()
	return host.Account(k.t, k.cluster, names.ServiceAccountAgent)
}
