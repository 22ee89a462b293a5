package authors

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/e2e/cluster"
	"github.com/spokelet/spokelet/test/e2e/suite"
	"github.com/spokelet/spokelet/test/sandbox"
)

// installBoth installs hub manager and agent, and lets the cluster join.
func installBoth(ctx context.Context, s *suite.Session) error {
	f := s.Fleet
	if err := f.InstallHub(ctx, f.Images().Tag); err != nil {
		return err
	}
	if err := f.InstallAgent(ctx, clusterName, f.Images().Tag); err != nil {
		return err
	}
	if err := f.Join(ctx, clusterName, nil); err != nil {
		return err
	}
	return suite.WaitDeployment(ctx, f.Managed(), names.NamespaceAgent, suite.Agent)
}

// installSample installs a sample add-on on the hub as its author does: its namespace, the rights that its program
// prints, and everything else in its folder, the Deployment of the program too. Each edit changes an object before.
func installSample(
	ctx context.Context, s *suite.Session, name string, edits ...func(object *unstructured.Unstructured) error,
) error {
	objects, err := s.Fleet.Manifests("../test/samples/" + name + "/hub")
	if err != nil {
		return err
	}
	for _, object := range objects {
		for _, edit := range edits {
			if err := edit(object); err != nil {
				return fmt.Errorf("editing %s: %w", suite.Describe(object), err)
			}
		}
	}
	namespace := name + "-central"
	text, err := exec.CommandContext(ctx, s.Fleet.Images().Programs[name], "rbac", "--namespace="+namespace).Output()
	if err != nil {
		return fmt.Errorf("printing the rights of %s: %w", name, err)
	}
	rights, err := suite.Decode(text)
	if err != nil {
		return fmt.Errorf("reading the rights of %s: %w", name, err)
	}
	// The files begin with the namespace.
	if err := suite.Apply(ctx, s.Fleet.Hub(), slices.Concat(objects[:1], rights, objects[1:])); err != nil {
		return err
	}
	return suite.WaitDeployment(ctx, s.Fleet.Hub(), namespace, name+"-manager")
}

// enable creates the ManagedClusterAddOn of a sample, and waits until it is available.
func enable(ctx context.Context, s *suite.Session, name string) error {
	started := time.Now()
	if err := s.Fleet.Hub().Client.Create(ctx, addOnOf(name)); err != nil {
		return fmt.Errorf("creating the add-on: %w", err)
	}
	if err := s.Fleet.WaitAddOn(ctx, clusterName, name); err != nil {
		return err
	}
	s.Note("available %.1f s after it was created", time.Since(started).Seconds())
	return nil
}

func addOnOf(name string) *addonv1beta1.ManagedClusterAddOn {
	return &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: clusterName, Name: name}}
}

// weatherRuns installs and enables the add-on weather, with images of its agent from a mirror.
func weatherRuns(ctx context.Context, s *suite.Session) error {
	err := installSample(ctx, s, "weather", func(object *unstructured.Unstructured) error {
		if object.GetKind() != "AddOnDeploymentConfig" {
			return nil
		}
		return unstructured.SetNestedSlice(object.Object, []any{map[string]any{
			"source": "registry.example.com/weather", "mirror": "mirror.example.com/stations",
		}}, "spec", "registries")
	})
	if err != nil {
		return err
	}
	ca, err := createCA(ctx, s.Fleet.Hub())
	if err != nil {
		return err
	}
	if err := enable(ctx, s, "weather"); err != nil {
		return err
	}
	return cluster.Until(ctx, "a report that the station signed", func(ctx context.Context) error {
		report, err := readReport(ctx, s)
		if err != nil {
			return err
		}
		return verify(report, ca)
	})
}

// createCA creates the certificate authority of the author, and returns its certificate.
func createCA(ctx context.Context, hub *cluster.Cluster) (*x509.CertPool, error) {
	ca, err := sandbox.NewCA("weather-ca", nil)
	if err != nil {
		return nil, err
	}
	if err := hub.Client.Create(ctx, ca.Secret("weather-central", "weather-ca")); err != nil {
		return nil, fmt.Errorf("creating the Secret of the CA: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca.Certificate)
	return pool, nil
}

// readReport reads the report of the cluster on the hub.
func readReport(ctx context.Context, s *suite.Session) (map[string]string, error) {
	var report corev1.ConfigMap
	err := s.Fleet.Hub().Client.Get(ctx, client.ObjectKey{Namespace: clusterName, Name: "weather"}, &report)
	return report.Data, err
}

// verify returns why a report is not one that the station of the cluster signed.
func verify(report map[string]string, ca *x509.CertPool) error {
	block, _ := pem.Decode([]byte(report["certificate"]))
	if block == nil {
		return errors.New("the report has no certificate")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return fmt.Errorf("reading the certificate of the report: %w", err)
	}
	clients := x509.VerifyOptions{Roots: ca, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := certificate.Verify(clients); err != nil {
		return fmt.Errorf("verifying the certificate of the report: %w", err)
	}
	if name := certificate.Subject.CommonName; name != "station-"+clusterName {
		return fmt.Errorf("the report is of %s", name)
	}
	signature, err := base64.StdEncoding.DecodeString(report["signature"])
	if err != nil {
		return fmt.Errorf("reading the signature of the report: %w", err)
	}
	if err := certificate.CheckSignature(x509.ECDSAWithSHA256, []byte(report["report"]), signature); err != nil {
		return fmt.Errorf("verifying the signature of the report: %w", err)
	}
	for _, want := range []string{`"forecast":"sunny"`, `"nodes":1`} {
		if !strings.Contains(report["report"], want) {
			return fmt.Errorf("the report has no %s: %s", want, report["report"])
		}
	}
	return nil
}

// weatherChanges changes a variable of the configuration.
func weatherChanges(ctx context.Context, s *suite.Session) error {
	config := &addonv1beta1.AddOnDeploymentConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: "weather-central", Name: "weather"},
	}
	patch := client.RawPatch("application/merge-patch+json",
		[]byte(`{"spec":{"customizedVariables":[{"name":"interval","value":"7s"}]}}`))
	started := time.Now()
	if err := s.Fleet.Hub().Client.Patch(ctx, config, patch); err != nil {
		return fmt.Errorf("changing the configuration: %w", err)
	}
	err := cluster.Until(ctx, "a ready pod with the variable", func(ctx context.Context) error {
		pod, err := suite.Pod(ctx, s.Fleet.Managed(), names.NamespaceAgentAddon, "weather-agent")
		if err != nil {
			return err
		}
		if arguments := pod.Spec.Containers[0].Args; !slices.Contains(arguments, "--interval=7s") {
			return fmt.Errorf("pod %s has arguments %v", pod.Name, arguments)
		}
		if !cluster.IsReady(pod) {
			return fmt.Errorf("pod %s is not ready", pod.Name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.Note("in a ready pod after %.1f s", time.Since(started).Seconds())
	return s.Fleet.WaitAddOn(ctx, clusterName, "weather")
}

// weatherGoes deletes the add-on weather.
func weatherGoes(ctx context.Context, s *suite.Session) error {
	if err := s.Fleet.Hub().Client.Delete(ctx, addOnOf("weather")); err != nil {
		return fmt.Errorf("deleting the add-on: %w", err)
	}
	account := &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.NamespaceAgentAddon, Name: "weather-agent"},
	}
	err := cluster.Until(ctx, "the add-on to be gone", func(ctx context.Context) error {
		return errors.Join(suite.Gone(ctx, s.Fleet.Hub(), addOnOf("weather")), suite.Gone(ctx, s.Fleet.Managed(), account))
	})
	if err != nil {
		return err
	}
	report, err := readReport(ctx, s)
	if err != nil {
		return fmt.Errorf("reading the last report: %w", err)
	}
	if report["closed"] != "true" {
		return fmt.Errorf("the Job of the add-on did not close the last report: %v", report)
	}
	return nil
}

// uptimeRuns installs and enables the add-on uptime.
func uptimeRuns(ctx context.Context, s *suite.Session) error {
	if err := installSample(ctx, s, "uptime"); err != nil {
		return err
	}
	if err := enable(ctx, s, "uptime"); err != nil {
		return err
	}
	var record corev1.ConfigMap
	key := client.ObjectKey{Namespace: names.NamespaceAgentAddon, Name: "uptime"}
	if err := s.Fleet.Managed().Client.Get(ctx, key, &record); err != nil {
		return fmt.Errorf("reading the record of the agent: %w", err)
	}
	if _, err := time.Parse(time.RFC3339, record.Data["since"]); err != nil {
		return fmt.Errorf("the record of the agent: %w", err)
	}
	return nil
}
