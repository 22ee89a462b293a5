package scene

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// Works of our own on the first cluster.
const (
	settings = "settings"
	leftover = "leftover"
	lost     = "lost"
	broken   = "broken"
	visit    = "visit"
)

// Write writes a work with three ConfigMaps for the first cluster, with a content.
func (s *Scene) Write(ctx context.Context, content string) error {
	return s.write(ctx, settings, content, "prices", "texts", "hours")
}

// write creates or updates a work with ConfigMaps.
func (s *Scene) write(ctx context.Context, work, content string, maps ...string) error {
	wanted := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: First, Name: work}}
	for _, name := range maps {
		m := configMap(name)
		m.Data = map[string]string{"content": content}
		raw, err := json.Marshal(m)
		if err != nil {
			return fmt.Errorf("encoding a ConfigMap: %w", err)
		}
		one := workv1.Manifest{}
		one.Raw = raw
		wanted.Spec.Workload.Manifests = append(wanted.Spec.Workload.Manifests, one)
	}
	var found workv1.ManifestWork
	err := s.HubClient.Get(ctx, client.ObjectKeyFromObject(wanted), &found)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading work %s: %w", work, err)
	}
	if err != nil {
		err = s.HubClient.Create(ctx, wanted)
	} else {
		found.Spec = wanted.Spec
		err = s.HubClient.Update(ctx, &found)
	}
	if err != nil {
		return fmt.Errorf("writing work %s: %w", work, err)
	}
	return nil
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
	}
}

// Applied waits until the first cluster has applied a work.
func (s *Scene) applied(ctx context.Context, work string) error {
	return fleet.Wait(ctx, "work "+work+" to be applied", nil, func(ctx context.Context) error {
		var found workv1.ManifestWork
		if err := s.HubClient.Get(ctx, client.ObjectKey{Namespace: First, Name: work}, &found); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(found.Status.Conditions, workv1.WorkApplied) {
			return fleet.NotYet("it is not applied")
		}
		return nil
	})
}

// Drift deletes an object on the first cluster, and changes another one: both are repaired.
func (s *Scene) Drift(ctx context.Context) error {
	cluster := s.Cluster(First)
	if err := cluster.Client.Delete(ctx, configMap("prices")); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting an object of a work: %w", err)
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"content":"of another program"}}`))
	if err := cluster.Client.Patch(ctx, configMap("texts"), patch); err != nil {
		return fmt.Errorf("changing an object of a work: %w", err)
	}
	return nil
}

// Refuse writes a work whose object the first cluster refuses.
func (s *Scene) Refuse(ctx context.Context) error { return s.write(ctx, broken, "a", "Not_A_Name") }

// Block deletes a work of the first cluster, one of whose objects has a finalizer of another program.
func (s *Scene) Block(ctx context.Context) error {
	if err := s.write(ctx, leftover, "a", "kept", "free"); err != nil {
		return err
	}
	if err := s.applied(ctx, leftover); err != nil {
		return err
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/kept"]}}`))
	if err := s.Cluster(First).Client.Patch(ctx, configMap("kept"), patch); err != nil {
		return fmt.Errorf("keeping an object: %w", err)
	}
	if err := s.HubClient.Delete(ctx, &workv1.ManifestWork{
		ObjectMeta: metav1.ObjectMeta{Namespace: First, Name: leftover},
	}); err != nil {
		return fmt.Errorf("deleting work %s: %w", leftover, err)
	}
	return nil
}

// Lose takes a work from the hub as a hub does that lost its data: without the agent, which then waits.
func (s *Scene) Lose(ctx context.Context) error {
	if err := s.write(ctx, lost, "a", "lost"); err != nil {
		return err
	}
	if err := s.applied(ctx, lost); err != nil {
		return err
	}
	s.Link(First).Cut()
	defer s.Link(First).Mend()
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: First, Name: lost}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	if err := s.HubClient.Patch(ctx, work, patch); err != nil {
		return fmt.Errorf("taking the finalizer of work %s: %w", lost, err)
	}
	if err := s.HubClient.Delete(ctx, work); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("taking work %s from the hub: %w", lost, err)
	}
	return nil
}

// CutSecond takes the hub from the second cluster.
func (s *Scene) CutSecond() { s.Link(Second).Cut() }

// Join lets a cluster ask that nobody accepts.
func (s *Scene) Join(ctx context.Context) error {
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "shop-new"}}
	if err := s.HubClient.Create(ctx, cluster); err != nil {
		return fmt.Errorf("registering a cluster: %w", err)
	}
	return nil
}

// Visit creates a work of the first cluster, and deletes it when it is applied.
func (s *Scene) Visit(ctx context.Context) error {
	if err := s.write(ctx, visit, "a", "today", "tomorrow"); err != nil {
		return err
	}
	if err := s.applied(ctx, visit); err != nil {
		return err
	}
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: First, Name: visit}}
	if err := s.HubClient.Delete(ctx, work); err != nil {
		return fmt.Errorf("deleting work %s: %w", visit, err)
	}
	return fleet.Wait(ctx, "work "+visit+" to be gone", nil, func(ctx context.Context) error {
		err := s.HubClient.Get(ctx, client.ObjectKeyFromObject(work), work)
		if err == nil {
			return fleet.NotYet("it is there")
		}
		return client.IgnoreNotFound(err)
	})
}

// Knock asks for a certificate of the first cluster that no rule approves.
func (s *Scene) Knock(ctx context.Context) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{
		CommonName: csr.ClusterUser(First, "other"), Organization: []string{csr.ClusterGroup(First), "operators"},
	}}, key)
	if err != nil {
		return fmt.Errorf("making a request: %w", err)
	}
	if err := s.HubClient.Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "too-much-", Labels: map[string]string{names.LabelClusterName: First}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}); err != nil {
		return fmt.Errorf("asking for a certificate: %w", err)
	}
	return nil
}

// Stopped waits until a rollout of the fleet has stopped.
func (s *Scene) Stopped(ctx context.Context) error {
	return fleet.Wait(ctx, "the rollout to stop", nil, func(ctx context.Context) error {
		var all addonv1beta1.ManagedClusterAddOnList
		if err := s.HubClient.List(ctx, &all); err != nil {
			return err
		}
		for i := range all.Items {
			if meta.IsStatusConditionTrue(all.Items[i].Status.Conditions, names.ConditionRolloutFailed) {
				return nil
			}
		}
		return fleet.NotYet("no add-on failed")
	})
}

// Silent waits until the hub misses the heartbeat of the second cluster.
func (s *Scene) Silent(ctx context.Context) error {
	return fleet.Wait(ctx, "the hub to miss cluster "+Second, nil, func(ctx context.Context) error {
		var cluster clusterv1.ManagedCluster
		if err := s.HubClient.Get(ctx, client.ObjectKey{Name: Second}, &cluster); err != nil {
			return err
		}
		if meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable) {
			return fleet.NotYet("it is available")
		}
		return nil
	})
}
