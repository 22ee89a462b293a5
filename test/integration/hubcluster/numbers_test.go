package hubcluster_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// TestAnAgentCannotLabelARequestWithAnotherCluster: requests with a label fill the lists of that cluster.
// Shows: security/own-label-only
func TestAnAgentCannotLabelARequestWithAnotherCluster(t *testing.T) {
	t.Parallel()
	agent := acceptedAgent(t, "labels")
	addOn := userClient(t, csr.AddonUser("labels", "hello", "agent"), csr.AddonGroups("labels", "hello")...)
	grantRequests(t, csr.AddonUser("labels", "hello", "agent"))
	foreign := func(cluster string) func(*certificatesv1.CertificateSigningRequest) {
		return func(r *certificatesv1.CertificateSigningRequest) { r.Labels[names.LabelClusterName] = cluster }
	}
	for _, cluster := range []string{"victim", "label", "labels0", "cluster", ""} {
		err := agent.Create(t.Context(), newRequest(t, "labels", foreign(cluster)))
		require.ErrorContains(t, err, `must be "labels"`, cluster)
		require.True(t, apierrors.IsForbidden(err))
		suite.Eventually(t, func() error {
			if err := addOn.Create(t.Context(), newRequest(t, "labels", foreign(cluster))); err == nil ||
				!strings.Contains(err.Error(), `must be "labels"`) {
				return fmt.Errorf("the agent of the add-on is answered %w", err)
			}
			return nil
		})
	}
	// A cloud provider names its users as it likes; the group says which cluster it is.
	const identified = "arn:aws:iam::1:role/agent"
	byGroup := userClient(t, identified, csr.ClusterGroupIAM("labels"))
	twice := userClient(t, identified, csr.ClusterGroupIAM("labels"), csr.ClusterGroupIAM("victim"))
	grantRequests(t, identified)
	for _, cluster := range []string{"victim", "label", "labels0", ""} {
		suite.Eventually(t, func() error {
			if err := byGroup.Create(t.Context(), newRequest(t, "labels", foreign(cluster))); err == nil ||
				!strings.Contains(err.Error(), `must be "labels"`) {
				return fmt.Errorf("the agent of the cloud provider is answered %w", err)
			}
			return nil
		})
	}
	for _, cluster := range []string{"victim", "labels"} {
		require.ErrorContains(t, twice.Create(t.Context(), newRequest(t, "labels", foreign(cluster))), `must be "labels victim"`,
			"who is in the groups of two is in none")
	}
	require.NoError(t, byGroup.Create(t.Context(), newRequest(t, "labels", foreign("labels"))))
	require.NoError(t, agent.Create(t.Context(), newRequest(t, "labels", foreign("labels"))))
	require.NoError(t, agent.Create(t.Context(), newRequest(t, "labels", func(r *certificatesv1.CertificateSigningRequest) {
		r.Labels = nil
	})), "a request without the label is none of ours")
}

// TestARequestCannotHaveMoreThanFourKilobytes counts bytes, not the characters that an expression sees.
// Shows: security/request-bytes
func TestARequestCannotHaveMoreThanFourKilobytes(t *testing.T) {
	t.Parallel()
	bootstrap := userClient(t, "bytes-bootstrap", bootstrapGroup)
	for _, size := range []int{approve.MaxRequestBytes - 2, approve.MaxRequestBytes - 1, approve.MaxRequestBytes} {
		require.NoError(t, bootstrap.Create(t.Context(), newRequest(t, "bytes", grownTo(size))), size)
	}
	for _, size := range []int{approve.MaxRequestBytes + 1, approve.MaxRequestBytes + 2, approve.MaxRequestBytes + 3} {
		require.ErrorContains(t, bootstrap.Create(t.Context(), newRequest(t, "bytes", grownTo(size))),
			"spec.request of a request for the credential of a cluster or an add-on may have 4096 bytes", size)
	}
	long := map[string]string{names.LabelClusterName: "bytes"}
	for n := range 15 {
		long[fmt.Sprintf("%s.example.com/l%d", strings.Repeat("x", 60), n)] = strings.Repeat("v", 63)
	}
	require.ErrorContains(t, bootstrap.Create(t.Context(), newRequest(t, "bytes", func(r *certificatesv1.CertificateSigningRequest) {
		r.Labels = long
	})), "16 labels of 2048 bytes in all")
}

func grownTo(size int) func(*certificatesv1.CertificateSigningRequest) {
	return func(r *certificatesv1.CertificateSigningRequest) {
		r.Spec.Request = append(r.Spec.Request, strings.Repeat("\n", size-len(r.Spec.Request))...)
	}
}

// grantRequests lets a user create certificate requests, as an add-on may be allowed to.
func grantRequests(t *testing.T, user string) {
	t.Helper()
	for _, document := range strings.Split(fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole",
"metadata":{"name":"test:requests"},"rules":[{"apiGroups":["certificates.k8s.io"],
"resources":["certificatesigningrequests"],"verbs":["create"]}]}
---
{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"test:requests"},
"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"test:requests"},
"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":%q}]}`, user), "---") {
		require.NoError(t, plane.Apply(t.Context(), []byte(document)))
	}
}

// TestAnAgentCannotReportAFullStatus writes what would fill the memory of the hub manager.
// Shows: security/full-status
func TestAnAgentCannotReportAFullStatus(t *testing.T) {
	t.Parallel()
	agent := acceptedAgent(t, "full")
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "full", Name: "hello"}}
	eventuallyCreate(t, plane.Client, addOn)
	condition := func(n, size int) metav1.Condition {
		return metav1.Condition{
			Type: fmt.Sprintf("Of%d", n), Status: metav1.ConditionTrue, Reason: "R", LastTransitionTime: metav1.Now(),
			Message: strings.Repeat("m", size),
		}
	}
	cluster := func(change func(*clusterv1.ManagedClusterStatus)) error {
		mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "full"}}
		require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKeyFromObject(mc), mc))
		before := mc.DeepCopy()
		change(&mc.Status)
		return agent.Status().Patch(t.Context(), mc, client.MergeFrom(before))
	}
	ofAddOn := func(change func(*addonv1alpha1.ManagedClusterAddOnStatus)) error {
		require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKeyFromObject(addOn), addOn))
		after := addOn.DeepCopy()
		change(&after.Status)
		return agent.Status().Patch(t.Context(), after, client.MergeFrom(addOn))
	}
	claims := func(count, size int) func(*clusterv1.ManagedClusterStatus) {
		return func(s *clusterv1.ManagedClusterStatus) {
			s.ClusterClaims = nil
			for n := range count {
				s.ClusterClaims = append(s.ClusterClaims, clusterv1.ManagedClusterClaim{
					Name: fmt.Sprintf("c%d", n), Value: strings.Repeat("v", size),
				})
			}
		}
	}
	require.NoError(t, cluster(claims(50, 1000)), "an honest one passes")
	require.ErrorContains(t, cluster(claims(70, 1000)), "512 cluster claims of 65536 characters in all")
	require.ErrorContains(t, cluster(claims(600, 1)), "512 cluster claims")
	require.ErrorContains(t, cluster(func(s *clusterv1.ManagedClusterStatus) {
		s.Conditions = append(s.Conditions, condition(1, 32000), condition(2, 32000), condition(3, 32000))
	}), "64 conditions with messages of 65536 characters in all")
	require.ErrorContains(t, ofAddOn(func(s *addonv1alpha1.ManagedClusterAddOnStatus) {
		for n := range 70 {
			s.Conditions = append(s.Conditions, condition(n, 1))
		}
	}), "64 conditions")
	require.ErrorContains(t, ofAddOn(func(s *addonv1alpha1.ManagedClusterAddOnStatus) {
		for n := range 300 {
			s.RelatedObjects = append(s.RelatedObjects, addonv1alpha1.ObjectReference{
				Resource: "things", Name: fmt.Sprintf("%d-%s", n, strings.Repeat("n", 1000)),
			})
		}
	}), "related objects with names of 65536 characters in all")
	require.NoError(t, ofAddOn(func(s *addonv1alpha1.ManagedClusterAddOnStatus) {
		for n := range 20 {
			s.Conditions = append(s.Conditions, condition(n, 1000))
		}
	}), "an honest one passes")
}

// TestAnAgentCannotReportLongTexts writes them where a list or a text has no bound of its own.
// Shows: security/long-texts
func TestAnAgentCannotReportLongTexts(t *testing.T) {
	t.Parallel()
	agent := acceptedAgent(t, "texts")
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "texts", Name: "hello"}}
	eventuallyCreate(t, plane.Client, work)
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "texts", Name: "hello"}}
	eventuallyCreate(t, plane.Client, addOn)
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "texts"}}
	long := strings.Repeat("x", 200_000)
	list := func(one string) string { return "[" + strings.Repeat(one+",", 5000) + one + "]" }
	report := func(o client.Object, status string) error {
		o, _ = o.DeepCopyObject().(client.Object)
		return agent.Status().Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"status":`+status+`}`)))
	}
	const whole = "a status of 131072 characters"
	for sentence, tc := range map[string]struct {
		object       client.Object
		status, says string
	}{
		"version":            {cluster, `{"version":{"kubernetes":"` + long + `"}}`, whole},
		"managed namespaces": {cluster, `{"managedNamespaces":[{"name":"n","clusterSet":"` + long + `"}]}`, whole},
		"their conditions": {cluster, `{"managedNamespaces":[{"name":"n","clusterSet":"s","conditions":[` +
			conditions(5, 30_000) + `]}]}`, whole},
		"user":                 {addOn, `{"registrations":[{"signerName":"example.com/x","subject":{"user":"` + long + `"}}]}`, whole},
		"groups":               {addOn, `{"registrations":[{"signerName":"example.com/x","subject":{"groups":` + list(`"`+strings.Repeat("g", 40)+`"`) + `}}]}`, whole},
		"supported kinds":      {addOn, `{"supportedConfigs":[{"group":"g","resource":"` + long + `"}]}`, whole},
		"conditions of a work": {work, `{"conditions":[` + conditions(5, 30_000) + `]}`, "64 conditions with messages of 65536 characters"},
	} {
		require.ErrorContains(t, report(tc.object, tc.status), tc.says, sentence)
	}
	for _, object := range []client.Object{cluster, addOn, work} {
		require.NoError(t, report(object, `{"conditions":[`+conditions(10, 1000)+`]}`), "an honest one passes")
	}
	// What it wrote before is not its own any more: the whole counts.
	var grown []string
	var err error
	for n := 0; err == nil && n < 400; n += 50 {
		for i := n; i < n+50; i++ {
			grown = append(grown, strings.ReplaceAll(conditions(1, 1000), "Of0", fmt.Sprintf("Grown%d", i)))
		}
		err = report(addOn, `{"conditions":[`+strings.Join(grown, ",")+`]}`)
	}
	require.ErrorContains(t, err, whole, "write by write")
}

// conditions are some conditions, as JSON, with messages of a size.
func conditions(n, size int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`{"type":"Of%d","status":"True","reason":"R","lastTransitionTime":"2026-01-02T03:04:05Z","message":%q}`,
			i, strings.Repeat("m", size))
	}
	return strings.Join(all, ",")
}

// TestTheHubManagerCannotDeleteAClusterThatWasAccepted uses its token: it deletes those only that nobody accepted.
// Shows: security/accepted-clusters-stay
func TestTheHubManagerCannotDeleteAClusterThatWasAccepted(t *testing.T) {
	t.Parallel()
	acceptedAgent(t, "stays")
	config, err := plane.ServiceAccount(t.Context(), names.NamespaceHub, names.ServiceAccountManager)
	require.NoError(t, err)
	token, err := client.New(config, client.Options{Scheme: suite.Scheme()})
	require.NoError(t, err)
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "stays"}}
	const words = "the hub manager deletes no ManagedCluster that was accepted once"
	require.ErrorContains(t, token.Delete(t.Context(), cluster.DeepCopy()), words)
	patch(t, cluster.DeepCopy(), `{"spec":{"hubAcceptsClient":false}}`)
	require.ErrorContains(t, token.Delete(t.Context(), cluster.DeepCopy()), words, "a denied one stays denied")
	require.NoError(t, userClient(t, "goes-bootstrap", bootstrapGroup).Create(t.Context(),
		&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "goes"}}))
	err = userClient(t, "goes-bootstrap", bootstrapGroup).Create(t.Context(), &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "kept", Annotations: map[string]string{names.AnnotationKeepUnaccepted: "x"}},
	})
	require.ErrorContains(t, err, names.AnnotationKeepUnaccepted, "only who may accept a cluster keeps it")
	require.NoError(t, token.Delete(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "goes"}}))
}
