package messages_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// TestARefusedRequestSaysRuleAndRemedyOnTheAddOn has an agent whose option asks for certificates that live for longer
// than the hub approves.
func TestARefusedRequestSaysRuleAndRemedyOnTheAddOn(t *testing.T) {
	t.Parallel()
	const name, namespace = "longlived", "longlived-agent"
	require.NoError(t, plane.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	config := suite.ConfigureAgent(t, plane, plane, name, namespace)
	config.CertExpirationSeconds = 2 * 366 * 24 * 60 * 60
	suite.RunAgent(t, config)
	suite.Admit(t, plane, name)
	define(t, "refused")
	installOn(t, name, "refused", nil)
	saysOn(t, name, "refused", csr.ConditionRotated, metav1.ConditionFalse, issue.ReasonRequestRefused,
		approve.ReasonLifetimeTooLong+": Not approved: this is no valid request for the credential of add-on \"refused\"",
		"spec.expirationSeconds is 63244800, and more than 31622400 (a year) needs a person",
		"Correct what asks or, for an add-on, the registration in its definition: the next request is judged by itself.")
}

// unmanaged installs an add-on that this hub has no definition of, as the manager of its author does: nobody approves
// its requests.
func unmanaged(t *testing.T, name string) {
	t.Helper()
	install(t, name, nil)
	key := types.NamespacedName{Namespace: home, Name: name}
	suite.Eventually(t, func() error {
		before, err := plane.AddOns.GetAddOn(t.Context(), key)
		if err != nil {
			return err
		}
		after := before.DeepCopy()
		after.Status.Registrations = []addonv1beta1.RegistrationConfig{{
			Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{
				Subject: addonv1beta1.KubeClientSubject{BaseSubject: addonv1beta1.BaseSubject{
					User: csr.AddonUser(home, name, name), Groups: csr.AddonGroups(home, name),
				}},
			},
		}}
		_, err = plane.AddOns.PatchAddOnStatus(t.Context(), before, after)
		return err
	})
}

func TestARequestThatWaitsForAPersonNamesTheCommandOnTheAddOn(t *testing.T) {
	t.Parallel()
	unmanaged(t, "waiting")
	asked := request(t, "waiting")
	says(t, "waiting", csr.ConditionRotated, metav1.ConditionFalse, issue.ReasonRequestPending,
		"nobody has approved or denied it", "run kubectl certificate approve "+asked.Name+" on the hub")
	require.NoError(t, suite.Decide(t.Context(), plane, request(t, "waiting"), certificatesv1.CertificateApproved))
	says(t, "waiting", csr.ConditionRotated, metav1.ConditionTrue, issue.ReasonUpdated)
}

func TestADeniedRequestSaysWhyOnTheAddOn(t *testing.T) {
	t.Parallel()
	unmanaged(t, "denied")
	asked := request(t, "denied")
	suite.Eventually(t, func() error {
		return suite.Decide(t.Context(), plane, request(t, "denied"), certificatesv1.CertificateDenied)
	})
	says(t, "denied", csr.ConditionRotated, metav1.ConditionFalse, issue.ReasonUpdateFailed,
		fmt.Sprintf("csr %q was denied: ByJane: said Jane; a new csr is made at ", asked.Name),
		"if the denial was a mistake, run kubectl certificate approve on that one")
}

// readCA grants the hub manager to read the CA Secret of one add-on.
const readCA = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: read-caless-ca, namespace: open-cluster-management-hub}
rules:
- {apiGroups: [""], resources: [secrets], resourceNames: [caless-ca], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: read-caless-ca, namespace: open-cluster-management-hub}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: read-caless-ca}
subjects:
- {kind: ServiceAccount, name: addon-manager-controller-sa, namespace: open-cluster-management-hub}
`

func TestARequestWhoseCAIsMissingSaysSoOnTheAddOn(t *testing.T) {
	t.Parallel()
	define(t, "caless")
	install(t, "caless", nil)
	// The hub manager may read no Secret that nobody granted, so at first it cannot see that there is none.
	says(t, "caless", csr.ConditionRotated, metav1.ConditionFalse, issue.ReasonRequestRefused,
		"SigningCA", "Not signed: the CA of signer example.com/caless is Secret open-cluster-management-hub/caless-ca, which ",
		"the request is then signed automatically.")
	require.NoError(t, plane.Apply(t.Context(), []byte(readCA)))
	says(t, "caless", csr.ConditionRotated, metav1.ConditionFalse, issue.ReasonRequestRefused,
		": SigningCAMissing: Not signed: ", "caless-ca, which does not exist. Create it with type kubernetes.io/tls")
}

func TestAnApprovedRequestThatNobodySignsSaysSoOnTheAddOn(t *testing.T) {
	t.Parallel()
	define(t, "unsigned")
	refusesToSign(t, "unsigned")
	install(t, "unsigned", nil)
	says(t, "unsigned", csr.ConditionRotated, metav1.ConditionFalse, issue.ReasonRequestNotSigned,
		fmt.Sprintf("csr %q is approved since ", request(t, "unsigned").Name),
		"but signer kubernetes.io/kube-apiserver-client has not signed it",
		"kube-controller-manager of the hub", "--cluster-signing-cert-file")
}

// refusesToSign waits until the policy is in force that keeps everybody from signing the requests of an add-on.
func refusesToSign(t *testing.T, addOn string) {
	t.Helper()
	key, err := csr.NewKey()
	require.NoError(t, err)
	asked, err := csr.ForCluster("nobody", "agent").Build(key)
	require.NoError(t, err)
	asked.Labels = map[string]string{names.LabelAddonName: addOn}
	require.NoError(t, plane.Client.Create(t.Context(), asked))
	suite.Eventually(t, func() error {
		if err := plane.Client.Status().Update(t.Context(), asked); !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			return fmt.Errorf("the policy is not in force: %w", err)
		}
		return nil
	})
}

func TestAnAgentThatWaitsForAPersonSaysSoWhereItIsAsked(t *testing.T) {
	t.Parallel()
	const name, namespace = "newcomer", "newcomer-agent"
	require.NoError(t, plane.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	config := suite.ConfigureAgent(t, plane, plane, name, namespace)
	suite.RunAgent(t, config)
	suite.Eventually(t, func() error {
		text := readyz(t, config.HealthAddress)
		for _, want := range []string{"AwaitingApproval", "Waiting for a person", "run kubectl certificate approve"} {
			if !strings.Contains(text, want) {
				return fmt.Errorf("%q is not in %q", want, text)
			}
		}
		t.Log(text)
		return nil
	})
}

// readyz returns what an agent says about itself.
func readyz(t *testing.T, address string) string {
	t.Helper()
	asked, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/readyz", nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(asked)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return string(text)
}
