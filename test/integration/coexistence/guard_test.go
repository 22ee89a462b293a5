package coexistence_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// A user who holds the token of a program gets nothing but what belongs to its add-ons.
//
// Shows: hub/author-guard
func TestTheTokenOfAProgramIsOfNoFurtherUse(t *testing.T) {
	f := join(t, bare, "victim", nil)
	own := map[string]string{names.LabelAddonName: weather}
	work := func(name string, labels map[string]string) *workv1.ManifestWork {
		return &workv1.ManifestWork{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.cluster, Name: name, Labels: labels},
			Spec: workv1.ManifestWorkSpec{Workload: workv1.ManifestsTemplate{Manifests: []workv1.Manifest{{
				RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"x"}}`)},
			}}}},
		}
	}
	binding := func(namespace string, labels map[string]string, role rbacv1.RoleRef, subjects ...rbacv1.Subject) client.Object {
		role.APIGroup = rbacv1.GroupName
		for i := range subjects {
			if subjects[i].Kind != rbacv1.ServiceAccountKind {
				subjects[i].APIGroup = rbacv1.GroupName
			}
		}
		return &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "open-cluster-management:weather:x", Labels: labels},
			RoleRef:    role, Subjects: subjects,
		}
	}
	reader := rbacv1.RoleRef{Kind: "ClusterRole", Name: "weather-reader"}
	agents := rbacv1.Subject{Kind: "Group", Name: "system:open-cluster-management:cluster:" + f.cluster + ":addon:weather"}
	everybody := rbacv1.Subject{Kind: "Group", Name: "system:authenticated"}
	foreign, unlabelled := work("foreign", map[string]string{names.LabelAddonName: "other"}), work("unlabelled", nil)
	require.NoError(t, bare.Client.Create(t.Context(), foreign))
	require.NoError(t, bare.Client.Create(t.Context(), unlabelled))
	program := bare.Account(t, home, program)
	// The API server needs a moment for a new policy.
	suite.Eventually(t, func() error {
		if err := program.Create(t.Context(), work("early", nil), client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("the policy is not in force yet: %w", err)
		}
		return nil
	})
	relabelled := unlabelled.DeepCopy()
	relabelled.Labels = own

	for sentence, attempt := range map[string]func() error{
		"a work of another add-on is created": func() error {
			return program.Create(t.Context(), work("new", map[string]string{names.LabelAddonName: "other"}))
		},
		"a work of nobody is created": func() error { return program.Create(t.Context(), work("new", nil)) },
		"a work of others is deleted": func() error { return program.Delete(t.Context(), foreign) },
		"a work of nobody is deleted": func() error { return program.Delete(t.Context(), unlabelled) },
		"a work of others is taken":   func() error { return program.Patch(t.Context(), relabelled, client.MergeFrom(unlabelled)) },
		"the admin role is bound": func() error {
			return program.Create(t.Context(), binding(f.cluster, own, rbacv1.RoleRef{Kind: "ClusterRole", Name: "admin"}, agents))
		},
		"its role is bound for everybody": func() error {
			return program.Create(t.Context(), binding(f.cluster, own, reader, everybody))
		},
		"its role is bound in the namespace of Kubernetes": func() error {
			return program.Create(t.Context(), binding("kube-system", own, reader,
				rbacv1.Subject{Kind: "Group", Name: "system:open-cluster-management:addon:weather"}))
		},
		"a binding without its label is created": func() error {
			return program.Create(t.Context(), binding(f.cluster, nil, reader, agents))
		},
		"the agents of another add-on are bound": func() error {
			return program.Create(t.Context(), binding(f.cluster, own, reader,
				rbacv1.Subject{Kind: "Group", Name: "system:open-cluster-management:cluster:" + f.cluster + ":addon:other"}))
		},
		"a Secret is read": func() error {
			return program.Get(t.Context(), client.ObjectKey{Namespace: home, Name: "other"}, &corev1.Secret{})
		},
		"a certificate request is created": func() error {
			return program.Create(t.Context(), request(t, "mine", own))
		},
		"the request of an administrator is approved": func() error { return approve(t, program, request(t, "admin", nil)) },
		"a request with its label, but not of an agent, is approved": func() error {
			return approve(t, program, request(t, "labelled", map[string]string{
				names.LabelAddonName: weather, names.LabelClusterName: f.cluster,
			}))
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := attempt()
			require.Error(t, err)
			assert.Contains(t, err.Error(), "forbidden")
		})
	}

	t.Run("its own work is created, changed and deleted", func(t *testing.T) {
		mine := work("addon-weather-deploy-7", own)
		require.NoError(t, program.Create(t.Context(), mine))
		require.NoError(t, program.Delete(t.Context(), mine))
		require.NoError(t, program.Create(t.Context(), binding(f.cluster, own, reader, agents)))
	})
}

// request is a certificate request with labels.
func request(t *testing.T, name string, labels map[string]string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: suite.UniqueName(name), Labels: labels},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: encoded(t), SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}
}

// approve has an administrator create a request and the program approve it.
func approve(t *testing.T, program client.Client, request *certificatesv1.CertificateSigningRequest) error {
	t.Helper()
	require.NoError(t, bare.Client.Create(t.Context(), request))
	request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Attack", Message: "because I can",
	})
	return program.SubResource("approval").Update(t.Context(), request)
}

// encoded returns a request for the certificate of an administrator.
func encoded(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "cluster-admin", Organization: []string{"kubeadm:cluster-admins"}},
	}, key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}
