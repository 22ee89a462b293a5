package authors_test

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// createCA creates the certificate authority of the author, and returns its certificate.
func createCA(t *testing.T) *x509.CertPool {
	t.Helper()
	ca, err := sandbox.NewCA("weather-ca", nil)
	require.NoError(t, err)
	secret := ca.Secret("weather-central", "weather-ca", "weather")
	require.NoError(t, plane.Client.Create(t.Context(), secret))
	t.Cleanup(func() { assert.NoError(t, plane.Client.Delete(context.WithoutCancel(t.Context()), secret)) })
	pool := x509.NewCertPool()
	pool.AddCert(ca.Certificate)
	return pool
}

// report waits for the report of a cluster on the hub, requires that its station signed it, and returns it.
func report(t *testing.T, cluster string, ca *x509.CertPool) map[string]any {
	t.Helper()
	found := &corev1.ConfigMap{ObjectMeta: at(cluster, "weather")}
	suite.Eventually(t, func() error {
		err := plane.Client.Get(t.Context(), client.ObjectKeyFromObject(found), found)
		if err == nil && found.Data["closed"] != "" {
			err = errors.New("the report is closed")
		}
		return err
	})
	block, _ := pem.Decode([]byte(found.Data["certificate"]))
	require.NotNil(t, block, "%v", found.Data)
	certificate, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	_, err = certificate.Verify(x509.VerifyOptions{Roots: ca, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	require.NoError(t, err, "the CA of the author signed it")
	assert.Equal(t, "station-"+cluster, certificate.Subject.CommonName)
	assert.Equal(t, []string{"stations"}, certificate.Subject.Organization)
	signature, err := base64.StdEncoding.DecodeString(found.Data["signature"])
	require.NoError(t, err)
	require.NoError(t, certificate.CheckSignature(x509.ECDSAWithSHA256, []byte(found.Data["report"]), signature))
	var report map[string]any
	require.NoError(t, json.Unmarshal([]byte(found.Data["report"]), &report))
	return report
}

// argument waits until the first container of a Deployment has an argument.
func argument(t *testing.T, cluster, namespace, name, want string) {
	t.Helper()
	suite.Eventually(t, func() error {
		deployment := &appsv1.Deployment{}
		err := clusters[cluster].Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, deployment)
		if err != nil {
			return err
		}
		if arguments := deployment.Spec.Template.Spec.Containers[0].Args; !slices.Contains(arguments, want) {
			return fmt.Errorf("%s on %s has no argument %s: %v", name, cluster, want, arguments)
		}
		return nil
	})
}

// setVariable sets the only variable of an AddOnDeploymentConfig.
func setVariable(t *testing.T, namespace, name, variable, value string) {
	t.Helper()
	config := &addonv1beta1.AddOnDeploymentConfig{ObjectMeta: at(namespace, name)}
	patch := fmt.Appendf(nil, `{"spec":{"customizedVariables":[{"name":%q,"value":%q}]}}`, variable, value)
	require.NoError(t, plane.Client.Patch(t.Context(), config, client.RawPatch("application/merge-patch+json", patch)))
}

// Shows: hub/sample-helm
func TestTheSampleWithAChart(t *testing.T) {
	t.Parallel()
	weather.install(t)
	ca := createCA(t)
	hosted(t, ca)
	for _, cluster := range []string{east, west} {
		enable(t, "weather", cluster, "{}", nil)
	}
	stop := map[string]func(){}
	for _, cluster := range []string{east, west} {
		says(t, "weather", cluster, "Available=True", "Progressing=False", "RegistrationApplied=True",
			"ClusterCertificateRotated=True")
		deployment := get(t, cluster, names.NamespaceAgentAddon, "weather-agent", &appsv1.Deployment{})
		stop[cluster] = start(t, pod(t, cluster, names.NamespaceAgentAddon, weather.agent, deployment.Spec.Template.Spec))
		assert.Equal(t, "sunny", report(t, cluster, ca)["forecast"])
	}

	refuses(t)
	setVariable(t, "weather-central", "weather", "interval", "2m")
	for _, cluster := range []string{east, west} {
		argument(t, cluster, names.NamespaceAgentAddon, "weather-agent", "--interval=2m")
		says(t, "weather", cluster, "Available=True", "Progressing=False")
	}

	sayGoodbye(t, east, east, names.NamespaceAgentAddon, stop[east])
	get(t, west, names.NamespaceAgentAddon, "weather-agent", &appsv1.Deployment{})
	report(t, west, ca)
	sayGoodbye(t, west, west, names.NamespaceAgentAddon, stop[west])
}

// refuses gives west values that the chart has no use for: the add-on names add-on, cluster and cause, its works stay, and
// east goes on.
func refuses(t *testing.T) {
	t.Helper()
	before := get(t, west, names.NamespaceAgentAddon, "weather-agent", &appsv1.Deployment{})
	for values, cause := range map[string]string{
		`{"replicas": "many"}`: "replicas", `{"global": "everything"}`: "cannot be rendered",
	} {
		annotate(t, west, &values)
		suite.Eventually(t, func() error {
			addOn, err := plane.AddOns.GetAddOn(t.Context(), client.ObjectKeyFromObject(addOnOf("weather", west)))
			if err != nil {
				return err
			}
			c := meta.FindStatusCondition(addOn.Status.Conditions, addonv1beta1.ManagedClusterAddOnManifestApplied)
			if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, cause) ||
				!strings.Contains(c.Message, "add-on weather on cluster west") {
				return fmt.Errorf("with %s, it reports %v", values, c)
			}
			return nil
		})
		says(t, "weather", east, "ManifestApplied=True", "Available=True")
	}
	after := get(t, west, names.NamespaceAgentAddon, "weather-agent", &appsv1.Deployment{})
	assert.Equal(t, before.Generation, after.Generation, "what is on the cluster stays as it is")
	annotate(t, west, nil)
	says(t, "weather", west, "ManifestApplied=True", "Available=True", "Progressing=False")
}

// annotate sets the values of the add-on on a cluster, or removes them.
func annotate(t *testing.T, cluster string, values *string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{names.AnnotationValues: values},
	}})
	require.NoError(t, err)
	require.NoError(t, plane.Client.Patch(t.Context(), addOnOf("weather", cluster),
		client.RawPatch("application/merge-patch+json", patch)))
}

// hosted runs the agent of guest on east, and removes it there.
func hosted(t *testing.T, ca *x509.CertPool) {
	t.Helper()
	const namespace = "station-guest"
	require.NoError(t, plane.Apply(t.Context(), []byte(`apiVersion: addon.open-cluster-management.io/v1beta1
kind: AddOnDeploymentConfig
metadata: {name: weather, namespace: guest}
spec: {agentInstallNamespace: `+namespace+`}
`)))
	enable(t, "weather", guest, "{configs: [{group: addon.open-cluster-management.io, resource: addondeploymentconfigs, "+
		"namespace: guest, name: weather}]}", map[string]string{names.AnnotationHostingCluster: east})
	says(t, "weather", guest, "HostingClusterValidity=True", "HostingManifestApplied=True", "ManifestApplied=True",
		"Available=True", "ClusterCertificateRotated=True")
	deployment := get(t, east, namespace, "weather-agent", &appsv1.Deployment{})
	goes(t, clusters[guest], &appsv1.Deployment{ObjectMeta: at(names.NamespaceAgentAddon, "weather-agent")},
		&corev1.Namespace{ObjectMeta: at("", namespace)})
	managedKubeconfig(t, guest, east, namespace, "weather-managed-kubeconfig",
		clusters[guest].AccountConfig(t, names.NamespaceAgentAddon, "weather-agent"))
	stop := start(t, pod(t, east, namespace, weather.agent, deployment.Spec.Template.Spec))
	report(t, guest, ca)

	sayGoodbye(t, guest, east, namespace, stop)
	goes(t, clusters[east], &corev1.Namespace{ObjectMeta: at("", namespace)})
}

// sayGoodbye deletes the add-on on a cluster, runs its hook on the cluster where its agent runs, and waits until the
// add-on is gone. The agent is stopped by the function.
func sayGoodbye(t *testing.T, cluster, hosting, namespace string, stop func()) {
	t.Helper()
	disable(t, "weather", cluster)
	hook := get(t, hosting, namespace, "weather-goodbye", &batchv1.Job{})
	says(t, "weather", cluster, "HookManifestCompleted=False")
	agent := get(t, hosting, namespace, "weather-agent", &appsv1.Deployment{})
	assert.Nil(t, agent.DeletionTimestamp, "the agent runs until the hook has ended")
	runToEnd(t, pod(t, hosting, namespace, weather.agent, hook.Spec.Template.Spec))
	finish(t, hosting, namespace, "weather-goodbye")
	goes(t, plane, addOnOf("weather", cluster))
	stop()
	goes(t, clusters[hosting], &appsv1.Deployment{ObjectMeta: at(namespace, "weather-agent")},
		&batchv1.Job{ObjectMeta: at(namespace, "weather-goodbye")})
	goes(t, clusters[cluster], &corev1.ServiceAccount{ObjectMeta: at(names.NamespaceAgentAddon, "weather-agent")})
	last := &corev1.ConfigMap{ObjectMeta: at(cluster, "weather")}
	require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKeyFromObject(last), last))
	assert.Equal(t, "true", last.Data["closed"], "the hook closed the last report")
}
