package twoclusters

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/e2e/cluster"
	"github.com/spokelet/spokelet/test/e2e/suite"
)

const (
	helloName  = "hello"
	helloAgent = "hello-agent"
	// helloSecret is the Secret with the hub credential of the add-on.
	helloSecret = "hello-hub-kubeconfig"
	// helloNamespace has the configuration of the add-on on the hub.
	helloNamespace = "open-cluster-management-addons"
	copyLabel      = "hello.spokelet.io/copy"
)

// helloObjects are those of the sample.
func helloObjects(f *suite.Fleet) ([]*unstructured.Unstructured, error) {
	return f.Render(suite.Overlay{Name: "hello-overlay", Base: "samples/hello"})
}

// enableHello enables the add-on by a label.
func (p *play) enableHello(ctx context.Context, s *suite.Session) error {
	objects, err := helloObjects(s.Fleet)
	if err != nil {
		return err
	}
	if err := suite.Apply(ctx, s.Fleet.Hub(), objects); err != nil {
		return err
	}
	started := time.Now()
	if err := setLabel(ctx, s.Fleet, "environment", "demo"); err != nil {
		return err
	}
	if err := s.Fleet.WaitAddOn(ctx, clusterName, helloName); err != nil {
		return err
	}
	s.Note("available %.1f s after the label was set", time.Since(started).Seconds())
	pod, err := suite.Pod(ctx, s.Fleet.Managed(), names.NamespaceAgentAddon, helloAgent)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Secret != nil && v.Secret.SecretName == helloSecret
	}) {
		return fmt.Errorf("pod %s does not mount Secret %s", pod.Name, helloSecret)
	}
	return checkCopy(ctx, s, "hello")
}

// setLabel sets a label of the ManagedCluster.
func setLabel(ctx context.Context, f *suite.Fleet, key, value string) error {
	mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: clusterName}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, key, value))
	if err := f.Hub().Client.Patch(ctx, mc, patch); err != nil {
		return fmt.Errorf("labelling ManagedCluster %s: %w", clusterName, err)
	}
	return nil
}

// checkCopy checks that the add-on works: a ConfigMap on the hub is copied to the managed cluster, with the credential
// that the add-on has now.
func checkCopy(ctx context.Context, s *suite.Session, text string) error {
	original := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: clusterName, Name: "greeting", Labels: map[string]string{copyLabel: "true"},
		},
		Data: map[string]string{"text": text},
	}
	hub := s.Fleet.Hub().Client
	if err := hub.Create(ctx, original); err != nil {
		return fmt.Errorf("creating a ConfigMap on the hub: %w", err)
	}
	s.Cleanup("delete the ConfigMap on the hub", func(ctx context.Context) error {
		return client.IgnoreNotFound(hub.Delete(ctx, original))
	})
	key := client.ObjectKey{Namespace: names.NamespaceAgentAddon, Name: original.Name}
	err := cluster.Until(ctx, "the add-on to copy a ConfigMap", func(ctx context.Context) error {
		var copied corev1.ConfigMap
		if err := s.Fleet.Managed().Client.Get(ctx, key, &copied); err != nil {
			return err
		}
		if copied.Data["text"] != text {
			return fmt.Errorf("the copy has %q", copied.Data["text"])
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := hub.Delete(ctx, original); err != nil {
		return fmt.Errorf("deleting the ConfigMap on the hub: %w", err)
	}
	return cluster.Until(ctx, "the copy to go with its original", func(ctx context.Context) error {
		return suite.Gone(ctx, s.Fleet.Managed(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name,
		}})
	})
}

// podState identifies a pod and its containers.
type podState struct {
	uid      types.UID
	restarts int32
}

// observeHello returns the pod of the add-on.
func observeHello(ctx context.Context, f *suite.Fleet) (podState, error) {
	return observePod(ctx, f.Managed(), names.NamespaceAgentAddon, helloAgent)
}

func observePod(ctx context.Context, c *cluster.Cluster, namespace, app string) (podState, error) {
	pod, err := suite.Pod(ctx, c, namespace, app)
	if err != nil {
		return podState{}, err
	}
	return podState{uid: pod.UID, restarts: suite.Restarts(pod)}, nil
}

// rotate waits until the short certificates of agent and add-on are replaced, each before its end, by longer ones.
func (p *play) rotate(ctx context.Context, s *suite.Session) error {
	secrets := map[string]client.ObjectKey{
		"agent":  {Namespace: names.NamespaceAgent, Name: names.SecretHub},
		"add-on": {Namespace: names.NamespaceAgentAddon, Name: helloSecret},
	}
	managed := s.Fleet.Managed()
	agentBefore, err := observePod(ctx, managed, names.NamespaceAgent, suite.Agent)
	if err != nil {
		return err
	}
	helloBefore, err := observeHello(ctx, s.Fleet)
	if err != nil {
		return err
	}
	first := map[string]*x509.Certificate{}
	for whose, key := range secrets {
		if first[whose], err = certificateOf(ctx, managed, key); err != nil {
			return fmt.Errorf("reading the certificate of the %s: %w", whose, err)
		}
	}
	if err := s.Fleet.Hub().SetSigningDuration(ctx, longLifetime); err != nil {
		return err
	}
	for whose, key := range secrets {
		if err := waitReplaced(ctx, s, managed, whose, key, first[whose]); err != nil {
			return err
		}
	}
	// Only when the old certificates have expired is it certain that nobody uses them.
	err = cluster.Until(ctx, "the first certificates to expire", func(context.Context) error {
		for whose, certificate := range first {
			if left := time.Until(certificate.NotAfter); left > 0 {
				return fmt.Errorf("that of the %s is valid for %s more", whose, left.Round(time.Second))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := checkCopy(ctx, s, "after the rotation"); err != nil {
		return err
	}
	if err := s.Fleet.WaitClusterAvailable(ctx, clusterName); err != nil {
		return err
	}
	agentAfter, err := observePod(ctx, managed, names.NamespaceAgent, suite.Agent)
	if err != nil {
		return err
	}
	helloAfter, err := observeHello(ctx, s.Fleet)
	if err == nil && (agentBefore != agentAfter || helloBefore != helloAfter) {
		err = fmt.Errorf("pods were restarted or replaced: agent %+v, %+v; add-on %+v, %+v", agentBefore, agentAfter,
			helloBefore, helloAfter)
	}
	return err
}

// waitReplaced waits until a certificate is replaced by one with the long lifetime. A short one in between is right, if
// the hub issued it before it was told of the long lifetime. None may ever be expired.
func waitReplaced(
	ctx context.Context, s *suite.Session, c *cluster.Cluster, whose string, key client.ObjectKey, last *x509.Certificate,
) error {
	return cluster.Until(ctx, "the certificate of the "+whose+" to be replaced", func(ctx context.Context) error {
		now, err := certificateOf(ctx, c, key)
		if err != nil {
			return err
		}
		left := time.Until(last.NotAfter)
		if now.SerialNumber.Cmp(last.SerialNumber) == 0 {
			if left <= 0 {
				return fmt.Errorf("%w: it expired at %s", cluster.ErrFinal, last.NotAfter)
			}
			return fmt.Errorf("it is valid for %s more", left.Round(time.Second))
		}
		s.Note("%s: replaced at least %.0f s before its end", whose, left.Seconds())
		if last = now; time.Until(now.NotAfter) < longLifetime/2 {
			return fmt.Errorf("its successor is valid until %s", now.NotAfter)
		}
		return nil
	})
}

// certificateOf returns the first certificate of a Secret.
func certificateOf(ctx context.Context, c *cluster.Cluster, key client.ObjectKey) (*x509.Certificate, error) {
	var secret corev1.Secret
	if err := c.Client.Get(ctx, key, &secret); err != nil {
		return nil, err
	}
	block, _ := pem.Decode(secret.Data[csr.KeyCertificate])
	if block == nil {
		return nil, errors.New("the Secret has no certificate")
	}
	return x509.ParseCertificate(block.Bytes)
}

// configure changes a variable, and then the template.
func (p *play) configure(ctx context.Context, s *suite.Session) error {
	hub := s.Fleet.Hub()
	objects, err := helloObjects(s.Fleet)
	if err != nil {
		return err
	}
	s.Cleanup("restore the configuration of the add-on", func(ctx context.Context) error {
		if err := suite.Apply(ctx, hub, objects); err != nil {
			return err
		}
		return waitHello(ctx, s.Fleet, "--v=1", "")
	})
	started := time.Now()
	patch := client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"customizedVariables":[{"name":"LOG_LEVEL","value":"2"}]}}`))
	config := &addonv1beta1.AddOnDeploymentConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: helloNamespace, Name: helloName},
	}
	if err := hub.Client.Patch(ctx, config, patch); err != nil {
		return fmt.Errorf("changing the AddOnDeploymentConfig: %w", err)
	}
	if err := waitHello(ctx, s.Fleet, "--v=2", ""); err != nil {
		return err
	}
	s.Note("a changed variable was in a ready pod after %.1f s", time.Since(started).Seconds())
	started = time.Now()
	if err := changeTemplate(ctx, hub); err != nil {
		return err
	}
	if err := waitHello(ctx, s.Fleet, "--v=2", "second"); err != nil {
		return err
	}
	s.Note("a changed template was in a ready pod after %.1f s", time.Since(started).Seconds())
	return nil
}

// changeTemplate adds an annotation to the pods of the template.
func changeTemplate(ctx context.Context, hub *cluster.Cluster) error {
	template := object("addon.open-cluster-management.io/v1alpha1", "AddOnTemplate", "", helloName)
	if err := hub.Client.Get(ctx, client.ObjectKeyFromObject(template), template); err != nil {
		return fmt.Errorf("reading the AddOnTemplate: %w", err)
	}
	manifests, _, err := unstructured.NestedSlice(template.Object, "spec", "agentSpec", "workload", "manifests")
	if err != nil {
		return fmt.Errorf("reading the AddOnTemplate: %w", err)
	}
	for _, entry := range manifests {
		manifest, ok := entry.(map[string]any)
		if !ok || manifest["kind"] != "Deployment" {
			continue
		}
		err := unstructured.SetNestedField(manifest, "second", "spec", "template", "metadata", "annotations", "version")
		if err != nil {
			return fmt.Errorf("changing the AddOnTemplate: %w", err)
		}
	}
	err = unstructured.SetNestedSlice(template.Object, manifests, "spec", "agentSpec", "workload", "manifests")
	if err != nil {
		return fmt.Errorf("changing the AddOnTemplate: %w", err)
	}
	if err := hub.Client.Update(ctx, template); err != nil {
		return fmt.Errorf("changing the AddOnTemplate: %w", err)
	}
	return nil
}

// waitHello waits until the add-on runs with an argument and an annotation version, is available, and is rolled out.
func waitHello(ctx context.Context, f *suite.Fleet, argument, version string) error {
	key := client.ObjectKey{Namespace: names.NamespaceAgentAddon, Name: helloAgent}
	err := cluster.Until(ctx, "the Deployment of the add-on to have "+argument, func(ctx context.Context) error {
		var found appsv1.Deployment
		if err := f.Managed().Client.Get(ctx, key, &found); err != nil {
			return err
		}
		template := found.Spec.Template
		if args := template.Spec.Containers[0].Args; !slices.Contains(args, argument) ||
			template.Annotations["version"] != version {
			return fmt.Errorf("it has %v and version %q", args, template.Annotations["version"])
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := suite.WaitDeployment(ctx, f.Managed(), key.Namespace, key.Name); err != nil {
		return err
	}
	return f.WaitAddOn(ctx, clusterName, helloName)
}
