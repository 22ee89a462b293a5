package hosted

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/e2e/cluster"
	"github.com/spokelet/spokelet/test/e2e/suite"
)

// fogName is the name of the add-on, of its definition and its template.
const fogName = "fog"

//go:embed addons/fog.yaml
var fogYAML string

// hostedAddOn enables and removes an add-on whose pod runs on the hosting cluster.
func (p *play) hostedAddOn(ctx context.Context, s *suite.Session) error {
	f := s.Fleet
	objects, err := suite.Decode([]byte(strings.ReplaceAll(fogYAML, "IMAGE", f.Images().Workload)))
	if err != nil {
		return err
	}
	sh, err := newShell(ctx, f)
	if err != nil {
		return err
	}
	if err := sh.do(ctx, consent); err != nil {
		return err
	}
	s.Cleanup("delete the add-on", func(ctx context.Context) error { return suite.Delete(ctx, f.Hub(), objects) })
	if err := suite.Apply(ctx, f.Hub(), objects); err != nil {
		return err
	}
	if err := f.WaitAddOn(ctx, managedName, fogName); err != nil {
		return err
	}
	hosting := f.Cluster(suite.Hosting)
	pod, err := suite.Pod(ctx, hosting, managedName, fogName)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Secret != nil && v.Secret.SecretName == fogName+"-hub-kubeconfig"
	}) {
		return fmt.Errorf("pod %s does not mount the credential of the add-on", pod.Name)
	}
	access := &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.NamespaceAgentAddon, Name: fogName + "-access"},
	}
	if err := f.Managed().Client.Get(ctx, client.ObjectKeyFromObject(access), access); err != nil {
		return fmt.Errorf("the managed cluster must have its part: %w", err)
	}
	if err := suite.Gone(ctx, hosting, access.DeepCopy()); err != nil {
		return fmt.Errorf("the hosting cluster must not have the part of the managed cluster: %w", err)
	}
	return removeFog(ctx, f, access)
}

// removeFog deletes the add-on and waits until its Job has run, and nothing is left of it.
func removeFog(ctx context.Context, f *suite.Fleet, access *corev1.ServiceAccount) error {
	hosting := f.Cluster(suite.Hosting)
	addOn := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: managedName, Name: fogName}}
	if err := f.Hub().Client.Delete(ctx, addOn); err != nil {
		return fmt.Errorf("deleting the add-on: %w", err)
	}
	err := cluster.Until(ctx, "the Job of the add-on to run on the hosting cluster", func(ctx context.Context) error {
		var job batchv1.Job
		key := client.ObjectKey{Namespace: managedName, Name: fogName + "-goodbye"}
		if err := hosting.Client.Get(ctx, key, &job); err != nil {
			return err
		}
		if job.Status.Active+job.Status.Succeeded == 0 {
			return errors.New("it has no pod")
		}
		return nil
	})
	if err != nil {
		return err
	}
	return cluster.Until(ctx, "the add-on to be gone", func(ctx context.Context) error {
		var pods corev1.PodList
		err := hosting.Client.List(ctx, &pods, client.InNamespace(managedName), client.MatchingLabels{"app": fogName})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("%d pods are left", len(pods.Items))
		}
		return errors.Join(err, suite.Gone(ctx, f.Hub(), addOn.DeepCopy()), suite.Gone(ctx, f.Managed(), access.DeepCopy()),
			suite.Gone(ctx, hosting, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: managedName, Name: fogName + "-hub-kubeconfig"},
			}))
	})
}
