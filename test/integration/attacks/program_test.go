package attacks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/addon/manager"
	"github.com/spokelet/spokelet/test/suite"
)

const (
	// program is the program of an author: its ServiceAccount and its namespace; radio is its add-on.
	program, radio = "radio-manager", "radio"
	// policyProgram is the policy that its rights come with.
	policyProgram    = "open-cluster-management.addon-manager." + program
	policyIdentities = "hub-request-identities.spokelet.io"
)

// programClient gives the program of the add-on radio the rights that it prints, and returns its client.
func programClient(t *testing.T) client.Client {
	t.Helper()
	agent, err := addon.New(addon.Options{
		Name: radio, KubeClient: &addon.KubeClient{},
		CustomSigners: []addon.CustomSigner{{SignerName: "example.com/radio"}},
		Manifests: addon.ManifestsFunc(func(context.Context, addon.Input) ([]runtime.Object, error) {
			return nil, nil
		}),
	})
	require.NoError(t, err)
	rights, err := manager.Rights(manager.Config{Name: program, Namespace: program}, agent)
	require.NoError(t, err)
	for _, o := range append([]client.Object{&corev1.Namespace{ObjectMeta: in("", program)}}, rights...) {
		createForTest(t, o)
	}
	for _, cluster := range []string{"cluster1", "cluster10"} {
		createForTest(t, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in(cluster, radio)})
	}
	config, err := shared.plane.ServiceAccount(t.Context(), program, program)
	require.NoError(t, err)
	c, err := client.New(config, client.Options{Scheme: shared.scheme, Mapper: shared.admin.RESTMapper()})
	require.NoError(t, err)
	return c
}

// asked has the agent of cluster10 ask for a credential of the add-on radio, and waits until the hub manager has judged
// the identity in it.
func asked(t *testing.T, spoil func(*csr.Request)) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	asks := forAddon("cluster10", radio, kube)
	spoil(&asks)
	key, err := csr.NewKey()
	require.NoError(t, err)
	request, err := asks.Build(key)
	require.NoError(t, err)
	require.NoError(t, shared.clients[agent10].Create(t.Context(), request))
	deleteAfterwards(t, request)
	suite.Eventually(t, func() error {
		if err := shared.admin.Get(t.Context(), client.ObjectKeyFromObject(request), request); err != nil {
			return err
		}
		if _, _, found := approve.Vouched(request); !found {
			return errors.New("the hub manager has not judged the identity")
		}
		return nil
	})
	return request
}

// Shows: security/program-approves-any-user
func TestTheProgramOfAnAuthorCannotApproveAnyUserForAnAgent(t *testing.T) {
	c := programClient(t)
	evil := asked(t, func(r *csr.Request) { r.User, r.Groups = "system:kube-controller-manager", nil })
	own, _, _ := approve.Vouched(evil)
	require.False(t, own)
	good := asked(t, func(*csr.Request) {})
	own, message, _ := approve.Vouched(good)
	require.True(t, own, message)
	others := hellosRequest(t)
	others.Status.Conditions = nil

	suite.Eventually(t, func() error { // An admission policy takes a moment.
		err := approveToo(evil)(t.Context(), client.NewDryRunClient(c))
		if err == nil || !strings.Contains(err.Error(), policyProgram) {
			return fmt.Errorf("the policy of the program refuses nothing yet: %w", err)
		}
		return nil
	})
	confirm := func(sub string) error {
		confirmed := evil.DeepCopy()
		approve.Verdict{Decision: approve.DecisionApprove, Reason: approve.ReasonIdentityOwn}.Vouch(confirmed, evil.CreationTimestamp.Time)
		return c.SubResource(sub).Update(t.Context(), confirmed)
	}
	for sentence, err := range map[string]error{
		"approves it":                     approveToo(evil)(t.Context(), c),
		"confirms it by the approval":     confirm("approval"),
		"confirms it by the status":       confirm("status"),
		"signs it for the API server":     signs(evil)(t.Context(), c),
		"approves it for another add-on":  approveToo(others)(t.Context(), c),
		"makes a request for the cluster": c.Create(t.Context(), evil.DeepCopy()),
	} {
		assert.True(t, apierrors.IsForbidden(err), "the program %s: %v", sentence, err)
	}
	require.ErrorContains(t, approveToo(evil)(t.Context(), c), policyProgram)
	require.NoError(t, shared.admin.Get(t.Context(), client.ObjectKeyFromObject(evil), evil))
	assert.Empty(t, evil.Status.Certificate)

	require.NoError(t, approveToo(good)(t.Context(), c))
	suite.Eventually(t, func() error { return shared.issued(t.Context(), good) })
}

// approveToo approves a request, and leaves its other conditions as they are.
func approveToo(request *certificatesv1.CertificateSigningRequest) attempt {
	return func(ctx context.Context, c client.Client) error {
		approved := request.DeepCopy()
		approved.Status.Conditions = append(approved.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Misuse",
		})
		return c.SubResource("approval").Update(ctx, approved)
	}
}

// hellosRequest is a good request for another add-on, which the hub manager itself approves.
func hellosRequest(t *testing.T) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	var all certificatesv1.CertificateSigningRequestList
	require.NoError(t, shared.admin.List(t.Context(), &all, client.MatchingLabels{
		"open-cluster-management.io/addon-name": "hello", "open-cluster-management.io/cluster-name": "cluster1",
	}))
	require.NotEmpty(t, all.Items)
	return &all.Items[0]
}

// Shows: security/identity-confirmed-by-others
func TestNobodyButTheHubManagerConfirmsAnIdentity(t *testing.T) {
	evil := hellosRequest(t)
	approve.Verdict{Decision: approve.DecisionApprove, Reason: approve.ReasonIdentityOwn}.Vouch(evil, evil.CreationTimestamp.Time)
	for _, sub := range []string{"approval", "status"} {
		for _, as := range []who{agent1, agent10, hello1, bootstrap, account} {
			err := shared.clients[as].SubResource(sub).Update(t.Context(), evil)
			assert.True(t, apierrors.IsForbidden(err), "%s by %s: %v", as, sub, err)
		}
		err := shared.admin.SubResource(sub).Update(t.Context(), evil)
		assert.ErrorContains(t, err, "ValidatingAdmissionPolicy '"+policyIdentities+"'")
	}
}
