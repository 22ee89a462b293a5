package approval_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// Shows: registration/cluster-request-judged
func TestAnAcceptedClusterRenewsItsCredential(t *testing.T) {
	t.Parallel()
	createCluster(t, "renewing")
	grantRenewal(t, "renewing")
	request := ask(t, agentOf(t, "renewing"), csr.ForCluster("renewing", "agent1"))
	certificate := issued(t, request)
	assert.Equal(t, csr.ClusterUser("renewing", "agent1"), certificate.Subject.CommonName)
	assert.ElementsMatch(t, []string{csr.ClusterGroup("renewing"), csr.GroupManagedClusters},
		certificate.Subject.Organization)
	condition := approvalOf(t, request)
	assert.Equal(t, "AutoApprovedByHubCSRApprovingController", condition.Reason)
	assert.Equal(t, "Auto approving Managed cluster agent certificate after SubjectAccessReview.", condition.Message)
	assert.Empty(t, eventsOf(t, request))
}

// Shows: registration/cluster-request-judged
func TestAClusterThatIsNotAcceptedRenewsOnceItIs(t *testing.T) {
	t.Parallel()
	cluster := createCluster(t, "denied")
	request := ask(t, agentOf(t, "denied"), csr.ForCluster("denied", "agent1"))
	event := awaitEvent(t, request, "RenewalNotAllowed")
	assert.Contains(t, event.Message, "Set spec.hubAcceptsClient of the ManagedCluster to true")
	assertOpen(t, request)

	grantRenewal(t, "denied")
	before := cluster.DeepCopy()
	meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{
		Type: clusterv1.ManagedClusterConditionHubAccepted, Status: metav1.ConditionTrue, Reason: "HubClusterAdminAccepted",
	})
	require.NoError(t, plane.Client.Status().Patch(t.Context(), cluster, client.MergeFrom(before)))
	issued(t, request)
}

// Shows: registration/cluster-request-judged
func TestAFirstCredentialIsApprovedForTrustedUsersOnly(t *testing.T) {
	t.Parallel()
	trusted := ask(t, user(t, bootstrapUser, "test:joining"), csr.ForCluster("joining", "agent1"))
	issued(t, trusted)

	other := ask(t, user(t, "jane", "test:joining"), csr.ForCluster("joining", "agent2"))
	event := awaitEvent(t, other, "AwaitingApproval")
	assert.Equal(t, corev1.EventTypeNormal, event.Type)
	assert.Equal(t, `Waiting for a person: "jane" asks for the first credential of cluster "joining" and is not one of `+
		`the users whose requests are approved by themselves. If you know the cluster, run kubectl certificate approve on `+
		`this request.`, event.Message)
	assertOpen(t, other)
}

// Shows: registration/add-on-request-approved
func TestAWrongRequesterIsToldSo(t *testing.T) {
	t.Parallel()
	createCluster(t, "cluster1")
	createCluster(t, "cluster10")
	enable(t, "cluster1", "")
	thief := agentOf(t, "cluster10")

	t.Run("for the credential of another cluster", func(t *testing.T) {
		request := askAsAnother(t, thief, csr.ForCluster("cluster1", "agent1"))
		event := awaitEvent(t, request, "RequesterNotTrusted")
		assert.Equal(t, corev1.EventTypeWarning, event.Type)
		assert.Equal(t, "default", event.Namespace)
		assert.Equal(t, `Not approved: the request for the credential of cluster "cluster1" comes from `+
			`"system:open-cluster-management:cluster10:agent1", which is another agent. Only `+
			`"system:open-cluster-management:cluster1:agent1" itself may renew it; a first credential is asked for with the `+
			`bootstrap credential. Do not approve it by hand unless you know why that agent asks.`, event.Message)
		assertOpen(t, request)
	})
	t.Run("for the add-on of another cluster", func(t *testing.T) {
		request := askAsAnother(t, thief, forAddon(t, "cluster1", 0))
		event := awaitEvent(t, request, "RequesterNotTrusted")
		assert.Equal(t, `Not approved: this is no valid request for the credential of add-on "hello" on cluster `+
			`"cluster1": the requester is "system:open-cluster-management:cluster10:agent1", but only the agent of that `+
			`cluster (user system:open-cluster-management:cluster1:<agent>) may ask for it. Correct what asks or, for an `+
			`add-on, the registration in its definition: the next request is judged by itself.`, event.Message)
		assertOpen(t, request)
	})
	t.Run("for a custom signer", func(t *testing.T) {
		request := askAsAnother(t, thief, forAddon(t, "cluster1", 1))
		awaitEvent(t, request, "RequesterNotTrusted")
		assertOpen(t, request)
	})
	t.Run("and the right one gets it", func(t *testing.T) {
		certificate := issued(t, ask(t, agentOf(t, "cluster1"), forAddon(t, "cluster1", 0)))
		assert.Equal(t, csr.AddonUser("cluster1", addonName, addonName+"-agent"), certificate.Subject.CommonName)
		assert.ElementsMatch(t, csr.AddonGroups("cluster1", addonName), certificate.Subject.Organization)
	})
}

func TestARefusalIsToldOnceAndJudgedAgainOnChange(t *testing.T) {
	t.Parallel()
	createCluster(t, "early")
	request := ask(t, agentOf(t, "early"), forAddon(t, "early", 0))
	event := awaitEvent(t, request, "AddonNotFound")
	assert.Contains(t, event.Message, `there is no ManagedClusterAddOn "hello" in namespace "early"`)
	assertOpen(t, request)

	spoilt := forAddon(t, "early", 0)
	spoilt.Groups = append(spoilt.Groups, "system:masters-of-the-universe")
	refused := ask(t, agentOf(t, "early"), spoilt)
	awaitEvent(t, refused, "AddonNotFound")

	addon := enable(t, "early", "")
	issued(t, request)
	event = awaitEvent(t, refused, "SubjectNotExpected")
	assert.Contains(t, event.Message, `"system:masters-of-the-universe"`)

	// Another change judges it again and finds the same: nothing new is said.
	addon.Annotations = map[string]string{"touched": "yes"}
	require.NoError(t, plane.Client.Update(t.Context(), addon))
	issued(t, ask(t, agentOf(t, "early"), forAddon(t, "early", 0)))
	assert.Len(t, eventsOf(t, refused), 2)
	assertOpen(t, refused)
}

func TestAClusterThatIsNotAcceptedGetsNoAddonCredential(t *testing.T) {
	t.Parallel()
	cluster := createCluster(t, "unaccepted", func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false })
	enable(t, "unaccepted", "")
	request := ask(t, agentOf(t, "unaccepted"), forAddon(t, "unaccepted", 0))
	awaitEvent(t, request, "ClusterNotAccepted")
	assertOpen(t, request)
	cluster.Spec.HubAcceptsClient = true
	require.NoError(t, plane.Client.Update(t.Context(), cluster))
	issued(t, request)
}

func TestRequestsOfOtherManagersAreLeftAlone(t *testing.T) {
	t.Parallel()
	createCluster(t, "foreign")
	enable(t, "foreign", "")
	own := forAddon(t, "foreign", 0)
	other := forAddon(t, "foreign", 0)
	other.Labels = map[string]string{names.LabelClusterName: "foreign", names.LabelAddonName: "somebody-elses"}
	theirs := ask(t, agentOf(t, "foreign"), other)
	issued(t, ask(t, agentOf(t, "foreign"), own))
	assertOpen(t, theirs)
	assert.Empty(t, eventsOf(t, theirs))
}

// Shows: registration/signs, registration/template-registrations
func TestACustomSignerSigns(t *testing.T) {
	t.Parallel()
	ca := createCA(t, "good", nil)
	createCluster(t, "signed")
	enable(t, "signed", "good")
	request := ask(t, agentOf(t, "signed"), forAddon(t, "signed", 1))
	certificate := issued(t, request)

	roots := x509.NewCertPool()
	roots.AddCert(ca)
	_, err := certificate.Verify(x509.VerifyOptions{
		Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	require.NoError(t, err)
	assert.Equal(t, "CN=user-test,OU=organization-test,O=group-test", certificate.Subject.String())
	assert.Equal(t, []string{"hello.addon.open-cluster-management.io"}, certificate.DNSNames)
	assert.Equal(t, "Auto approving addon agent certificate.", approvalOf(t, request).Message)
	assert.Empty(t, eventsOf(t, request))
}

func TestAMissingCASecretIsToldAndNoticedWhenItComes(t *testing.T) {
	t.Parallel()
	createCluster(t, "waiting")
	enable(t, "waiting", "late")
	request := ask(t, agentOf(t, "waiting"), forAddon(t, "waiting", 1))
	event := awaitEvent(t, request, "SigningCAMissing")
	assert.Equal(t, corev1.EventTypeWarning, event.Type)
	assert.Equal(t, "Not signed: the CA of signer example.com/signer-test is Secret signing/late, which does not exist. "+
		"Create it with type kubernetes.io/tls; the request is then signed automatically.", event.Message)
	assert.NotEmpty(t, approvalOf(t, request))
	createCA(t, "late", nil)
	issued(t, request)
}

func TestACASecretThatMayNotBeReadIsTold(t *testing.T) {
	t.Parallel()
	createCA(t, "secret", nil)
	createCluster(t, "forbidden")
	enable(t, "forbidden", "secret")
	request := ask(t, agentOf(t, "forbidden"), forAddon(t, "forbidden", 1))
	event := awaitEvent(t, request, "SigningCAForbidden")
	assert.Contains(t, event.Message,
		"Grant ServiceAccount open-cluster-management-hub/addon-manager-controller-sa the verb get on that Secret")
}

func TestACAThatCannotSignIsTold(t *testing.T) {
	t.Parallel()
	createCA(t, "bad", func(template *x509.Certificate) { template.IsCA = false })
	createCluster(t, "badly")
	enable(t, "badly", "bad")
	request := ask(t, agentOf(t, "badly"), forAddon(t, "badly", 1))
	event := awaitEvent(t, request, "SigningCAInvalid")
	assert.Contains(t, event.Message, `CA Secret signing/bad: tls.crt: the certificate of "ca bad" is not that of a CA`)

	// The author of the add-on finds it on the add-on, once for all its requests.
	ask(t, agentOf(t, "badly"), forAddon(t, "badly", 1))
	suite.Eventually(t, func() error {
		var events corev1.EventList
		if err := plane.Client.List(t.Context(), &events, client.InNamespace("badly")); err != nil {
			return err
		}
		found := 0
		for i := range events.Items {
			if e := &events.Items[i]; e.InvolvedObject.Kind == "ManagedClusterAddOn" && e.Message == event.Message {
				found++
				assert.Equal(t, "SigningCAInvalid", e.Reason)
			}
		}
		if found != 1 {
			return fmt.Errorf("%d Events on the add-on", found)
		}
		return nil
	})
}

func TestAPersonsApprovalDoesNotChangeWhatIsSigned(t *testing.T) {
	t.Parallel()
	createCluster(t, "byhand")
	enable(t, "byhand", "good")
	spoilt := forAddon(t, "byhand", 1)
	spoilt.User = "admin"
	request := ask(t, agentOf(t, "byhand"), spoilt)
	awaitEvent(t, request, "SubjectNotExpected")

	current := get(t, request)
	current.Status.Conditions = append(current.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "ByHand", Message: "looks fine",
	})
	current.ResourceVersion = "" // the hub may comment on it at the same moment
	require.NoError(t, plane.Client.SubResource("approval").Update(t.Context(), current))
	event := awaitEvent(t, request, "NotSigned")
	assert.Contains(t, event.Message, `its common name is ["admin"] and must be "user-test"`)
	assert.Empty(t, get(t, request).Status.Certificate)
}

// forAddon is the request of the add-on on a cluster: 0 for its hub credential, 1 for its custom signer.
func forAddon(t *testing.T, cluster string, index int) csr.Request {
	t.Helper()
	request, err := csr.ForAddon(cluster, addonName, registrations(cluster)[index])
	require.NoError(t, err)
	return request
}

// agentOf is the agent of a cluster with the credential that the hub gave it.
func agentOf(t *testing.T, cluster string) client.Client {
	t.Helper()
	return user(t, csr.ClusterUser(cluster, "agent1"), csr.ClusterGroup(cluster), csr.GroupManagedClusters)
}

func user(t *testing.T, name string, groups ...string) client.Client {
	t.Helper()
	return plane.As(t, name, groups...)
}

func ask(t *testing.T, as client.Client, r csr.Request) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := csr.NewKey()
	require.NoError(t, err)
	request, err := r.Build(key)
	require.NoError(t, err)
	require.NoError(t, as.Create(t.Context(), request))
	deleteAfterwards(t, request)
	return request
}

// askAsAnother leaves the request of an agent that names another cluster in its label, which a policy refuses: an
// administrator sets the label afterwards, as a user could before there was that policy.
func askAsAnother(t *testing.T, as client.Client, r csr.Request) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	label := r.Labels[names.LabelClusterName]
	r.Labels = maps.Clone(r.Labels)
	delete(r.Labels, names.LabelClusterName)
	request := ask(t, as, r)
	before := request.DeepCopy()
	metav1.SetMetaDataLabel(&request.ObjectMeta, names.LabelClusterName, label)
	require.NoError(t, plane.Client.Patch(t.Context(), request, client.MergeFrom(before)))
	return request
}

func create(t *testing.T, object client.Object) {
	t.Helper()
	require.NoError(t, plane.Client.Create(t.Context(), object))
	deleteAfterwards(t, object)
}

// deleteAfterwards lets the tests run again on the same control plane.
func deleteAfterwards(t *testing.T, object client.Object) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() { assert.NoError(t, client.IgnoreNotFound(plane.Client.Delete(ctx, object))) })
}

func get(t *testing.T, request *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	var current certificatesv1.CertificateSigningRequest
	require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKeyFromObject(request), &current))
	return &current
}

// issued waits for the certificate of a request.
func issued(t *testing.T, request *certificatesv1.CertificateSigningRequest) *x509.Certificate {
	t.Helper()
	var certificate []byte
	suite.Eventually(t, suite.True(fmt.Sprintf("no certificate for %s", request.Name), func() bool {
		certificate = get(t, request).Status.Certificate
		return len(certificate) > 0
	}))
	block, _ := pem.Decode(certificate)
	require.NotNil(t, block)
	parsed, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return parsed
}

func approvalOf(
	t *testing.T, request *certificatesv1.CertificateSigningRequest,
) certificatesv1.CertificateSigningRequestCondition {
	t.Helper()
	var approvals []certificatesv1.CertificateSigningRequestCondition
	for _, c := range get(t, request).Status.Conditions {
		if c.Type == certificatesv1.CertificateApproved {
			approvals = append(approvals, c)
		}
	}
	require.Len(t, approvals, 1)
	return approvals[0]
}

func assertOpen(t *testing.T, request *certificatesv1.CertificateSigningRequest) {
	t.Helper()
	assert.True(t, csr.Undecided(get(t, request)))
}

// eventsOf reads the Events on a request the way kubectl describe finds them.
func eventsOf(t *testing.T, request *certificatesv1.CertificateSigningRequest) []corev1.Event {
	t.Helper()
	var events corev1.EventList
	require.NoError(t, plane.Client.List(t.Context(), &events, client.MatchingFields{
		"involvedObject.kind": "CertificateSigningRequest", "involvedObject.uid": string(request.UID),
		"involvedObject.name": request.Name,
	}))
	return events.Items
}

// awaitEvent waits for the Event with a reason.
func awaitEvent(t *testing.T, request *certificatesv1.CertificateSigningRequest, reason string) corev1.Event {
	t.Helper()
	var found corev1.Event
	suite.Eventually(t, suite.True(fmt.Sprintf("no event %s on %s", reason, request.Name), func() bool {
		for _, event := range eventsOf(t, request) {
			if event.Reason == reason {
				found = event
				return true
			}
		}
		return false
	}))
	return found
}

func createCluster(t *testing.T, name string, change ...func(*clusterv1.ManagedCluster)) *clusterv1.ManagedCluster {
	t.Helper()
	cluster := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	}
	for _, c := range change {
		c(cluster)
	}
	create(t, cluster)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	require.NoError(t, client.IgnoreAlreadyExists(plane.Client.Create(t.Context(), namespace)))
	return cluster
}

// enable creates the add-on on a cluster, with the name of its CA Secret.
func enable(t *testing.T, cluster, ca string) *addonv1alpha1.ManagedClusterAddOn {
	t.Helper()
	addon := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Namespace: cluster, Name: addonName, Annotations: map[string]string{"ca": ca},
	}}
	create(t, addon)
	return addon
}

// grantRenewal gives the agents of a cluster the right that comes with acceptance.
func grantRenewal(t *testing.T, cluster string) {
	t.Helper()
	create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "test:renew:" + cluster},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "test:renew"},
		Subjects: []rbacv1.Subject{{
			APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: csr.ClusterGroup(cluster)}},
	})
}

// createCA creates a Secret with a CA that serves both add-ons, whose certificate change may spoil.
func createCA(t *testing.T, name string, change func(*x509.Certificate)) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca " + name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	ca, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	create(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: caNamespace, Name: name,
			Annotations: map[string]string{names.AnnotationSignerAddons: addonName + "," + weatherName},
		},
		Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{
			corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
			corev1.TLSPrivateKeyKey: privateKey(t, key),
		},
	})
	return ca
}

func privateKey(t *testing.T, key crypto.PrivateKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}
