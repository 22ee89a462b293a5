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
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

const (
	policyFinalizers    = "creator-finalizers.spokelet.io"
	policyManagedFields = "managed-fields-sizes.spokelet.io"
	policyDenied        = "manifestwork-denied.spokelet.io"
)

// creator is a user who may create clusters and requests, as by the role of the bootstrap credential, and is in no group
// that tells.
func creator(t *testing.T) client.Client {
	t.Helper()
	const user = "creator@example.com"
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: in("", "test:creator"),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "open-cluster-management:bootstrap"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	createForTest(t, binding)
	config, err := shared.plane.User(user)
	require.NoError(t, err)
	c, err := client.New(config, client.Options{Scheme: shared.scheme, Mapper: shared.admin.RESTMapper()})
	require.NoError(t, err)
	suite.Eventually(t, func() error { return c.Create(t.Context(), newCluster("yet-another"), client.DryRunAll) })
	return c
}

// Shows: security/finalizers
func TestNobodyKeepsWhatHeCreatesByAFinalizer(t *testing.T) {
	kept := func(labels map[string]string) *certificatesv1.CertificateSigningRequest {
		request := requestOf(t, csr.ForCluster("cluster10", agentName))
		request.Labels, request.Finalizers = labels, []string{"example.com/for-ever"}
		return request
	}
	cluster := newCluster("kept-for-ever")
	cluster.Finalizers = []string{"example.com/for-ever"}
	ours := map[string]string{names.LabelClusterName: "cluster10"}
	as := map[string]client.Client{
		"a user of the role to join": creator(t), string(bootstrap): shared.clients[bootstrap],
		string(trusted): shared.clients[trusted], string(agent10): shared.clients[agent10],
	}
	for who, c := range as {
		for what, object := range map[string]client.Object{
			"a request": kept(ours), "a request that is none of ours": kept(nil), "a cluster": cluster.DeepCopy(),
		} {
			if who == string(agent10) && what == "a cluster" {
				continue // It has no right to create one.
			}
			err := c.Create(t.Context(), object, client.DryRunAll)
			require.True(t, apierrors.IsForbidden(err), "%s creates %s: %v", who, what, err)
			assert.True(t, strings.Contains(err.Error(), policyFinalizers) || strings.Contains(err.Error(), policyAgentClusters), err)
		}
	}
	for _, object := range []client.Object{kept(ours), cluster} {
		require.NoError(t, shared.admin.Create(t.Context(), object, client.DryRunAll), "who may update it may")
	}
}

// fieldsOf are managedFields of about a size.
func fieldsOf(size int) []metav1.ManagedFieldsEntry {
	now := metav1.Now()
	return []metav1.ManagedFieldsEntry{{
		Manager: "stuffed", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &now, FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(fmt.Sprintf(`{"f:metadata":{"f:annotations":{"f:%s":{}}}}`, strings.Repeat("x", size))),
	}}
}

// stuffing are the writes with which agents and creators can send managedFields; those of a status are ignored.
func stuffing(t *testing.T, size int) map[string]misuse {
	t.Helper()
	fields := func(o client.Object) client.Object {
		kinds, _, err := shared.scheme.ObjectKinds(o)
		require.NoError(t, err)
		entries := fieldsOf(size)
		entries[0].APIVersion = kinds[0].GroupVersion().String()
		o.SetManagedFields(entries)
		return o
	}
	whole := func(o client.Object) attempt {
		return update(o, func(fresh client.Object) { fields(fresh) })
	}
	request := requestOf(t, csr.ForCluster("cluster10", agentName))
	return map[string]misuse{
		"creates a request":          {bootstrap, create(fields(request)), policyManagedFields},
		"creates a cluster":          {bootstrap, create(fields(newCluster("stuffed"))), policyManagedFields},
		"updates its cluster":        {agent10, whole(&clusterv1.ManagedCluster{ObjectMeta: in("", "cluster10")}), policyManagedFields},
		"updates a work":             {agent10, whole(&workv1.ManifestWork{ObjectMeta: in("cluster10", "addon-hello-deploy-0")}), policyManagedFields},
		"creates an add-on":          {namespaceAdmin, create(fields(&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in("cluster1", "stuffed")})), policyManagedFields},
		"creates a work by a tenant": {namespaceAdmin, create(fields(&workv1.ManifestWork{ObjectMeta: in("cluster1", "stuffed")})), policyManagedFields},
	}
}

// Shows: security/managed-fields
func TestNobodyStuffsTheManagedFieldsOfAnObject(t *testing.T) {
	suite.Eventually(t, func() error {
		return shared.admin.Get(t.Context(), client.ObjectKey{Namespace: "cluster10", Name: "addon-hello-deploy-0"}, &workv1.ManifestWork{})
	})
	for sentence, m := range stuffing(t, 700_000) {
		err := m.try(t.Context(), client.NewDryRunClient(shared.clients[m.as]))
		require.ErrorContains(t, err, "ValidatingAdmissionPolicy '"+m.by, "%s %s", m.as, sentence)
	}
	for sentence, m := range stuffing(t, 1000) {
		require.NoError(t, m.try(t.Context(), client.NewDryRunClient(shared.clients[m.as])), "%s %s", m.as, sentence)
	}
	// Another client that writes is not kept from it by what is there.
	denial := func(c *clusterv1.ManagedCluster) {
		c.Spec.HubAcceptsClient, c.ManagedFields = false, fieldsOf(700_000)
		c.ManagedFields[0].APIVersion = clusterv1.GroupVersion.String()
	}
	require.NoError(t, update(&clusterv1.ManagedCluster{ObjectMeta: in("", "cluster10")}, denial)(t.Context(),
		client.NewDryRunClient(shared.admin)), "a person may deny it")
}

// Shows: security/labels-of-works
func TestAnAgentCannotChangeTheLabelsOfWhatItIsGiven(t *testing.T) {
	work := &workv1.ManifestWork{ObjectMeta: in("cluster10", "addon-hello-deploy-0")}
	other := &workv1.ManifestWork{ObjectMeta: in("cluster10", "of-a-person")}
	createForTest(t, other)
	suite.Eventually(t, func() error { return shared.admin.Get(t.Context(), client.ObjectKeyFromObject(work), work.DeepCopy()) })
	request := post(t, forgery{as: agent10, asks: csr.ForCluster("cluster10", agentName)}).request
	edit := func(w *workv1.ManifestWork, change func(*workv1.ManifestWork)) misuse {
		return misuse{agent10, update(w, change), policyAgentWorks}
	}
	refuse(t, map[string]misuse{
		"it makes a work one of no add-on":      edit(work, func(w *workv1.ManifestWork) { delete(w.Labels, names.LabelAddonName) }),
		"it makes a work one of another add-on": edit(work, func(w *workv1.ManifestWork) { w.Labels[names.LabelAddonName] = "vault" }),
		"it makes a work of a person one of an add-on": edit(other, func(w *workv1.ManifestWork) {
			w.Labels = map[string]string{names.LabelAddonName: "hello"}
		}),
		"it forgets what a work was made from": edit(work, func(w *workv1.ManifestWork) { w.Annotations = nil }),
		"it annotates a work of a person": edit(other, func(w *workv1.ManifestWork) {
			w.Annotations = map[string]string{names.AnnotationAddonUID: "x"}
		}),
		"it changes the label of a request": {agent10, change(
			&certificatesv1.CertificateSigningRequest{ObjectMeta: in("", request.Name)},
			`{"metadata":{"labels":{"`+names.LabelAddonName+`":"hello"}}}`), ""},
	})
}

// deniedCluster is the cluster of the tests of a denial.
const deniedCluster = "denied-reads"

// workWith is a work of that cluster with one ConfigMap.
func workWith(name, value string) *workv1.ManifestWork {
	work := &workv1.ManifestWork{ObjectMeta: in(deniedCluster, name)}
	setValue(work, value)
	return work
}

// setValue changes the content of a work.
func setValue(work *workv1.ManifestWork, value string) {
	work.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: fmt.Appendf(nil,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"x"},"data":{"value":%q}}`, value)}}}
}

// awaitDenial waits until the hub has noted that a cluster is denied, or no more.
func awaitDenial(t *testing.T, cluster string, denied bool) {
	t.Helper()
	suite.Eventually(t, func() error {
		var namespace corev1.Namespace
		if err := shared.admin.Get(t.Context(), client.ObjectKey{Name: cluster}, &namespace); err != nil {
			return err
		}
		if _, noted := namespace.Annotations[names.AnnotationDeniedOn]; noted != denied {
			return errors.New("the namespace does not say it yet")
		}
		return nil
	})
}

// Shows: security/works-of-the-denied
func TestADeniedClusterReadsNothingThatIsWrittenLater(t *testing.T) {
	const cluster = deniedCluster
	as := who("the agent of " + cluster)
	require.NoError(t, shared.join(t.Context(), cluster, as))
	t.Cleanup(func() { removeCluster(t, cluster) })
	old, hello := workWith("old", "before"), workWith("of-hello", "before")
	hello.Labels = map[string]string{names.LabelAddonName: "hello"}
	require.NoError(t, shared.admin.Create(t.Context(), old.DeepCopy()))
	require.NoError(t, shared.admin.Create(t.Context(), hello.DeepCopy()))
	require.NoError(t, shared.accept(t.Context(), cluster, false))
	awaitDenial(t, cluster, true)

	dry := client.NewDryRunClient(shared.admin)
	written := func(value string) func(*workv1.ManifestWork) {
		return func(w *workv1.ManifestWork) { setValue(w, value) }
	}
	// The API server learns of the annotation a moment later.
	suite.Eventually(t, func() error {
		if err := dry.Create(t.Context(), workWith("new", "later")); !apierrors.IsForbidden(err) {
			return fmt.Errorf("the answer is %w", err)
		}
		return nil
	})
	ofAddOn := workWith("addon-hello-deploy-0", "later")
	ofAddOn.Labels = hello.Labels
	for sentence, try := range map[string]attempt{
		"creates a work":                 create(workWith("new", "later")),
		"creates a work of an add-on":    create(ofAddOn),
		"changes the content of a work":  update(old, written("later")),
		"adds a manifest by a patch":     change(old.DeepCopy(), `{"spec":{"workload":{"manifests":[]}}}`),
		"creates what looks like a hook": create(workWith("addon-hello-pre-delete", "later")),
		"changes the content of a work and calls it one of an add-on": update(old, func(w *workv1.ManifestWork) {
			w.Labels = hello.Labels
			setValue(w, "later")
		}),
	} {
		err := try(t.Context(), dry)
		require.True(t, apierrors.IsForbidden(err), "a person %s: %v", sentence, err)
		require.ErrorContains(t, err, policyDenied, sentence)
		require.ErrorContains(t, err, "Accept the cluster first", sentence)
	}
	hook := workWith("addon-hello-pre-delete", "later")
	hook.Labels = hello.Labels
	for sentence, try := range map[string]attempt{
		"the hook of an add-on runs":    create(hook),
		"an add-on keeps what it has":   update(hello, written("later")),
		"a person lets go what is left": update(old, func(w *workv1.ManifestWork) { w.Spec.DeleteOption = orphan() }),
		"a person deletes it":           remove(old.DeepCopy()),
	} {
		require.NoError(t, try(t.Context(), dry), sentence)
	}
	require.NoError(t, get(old.DeepCopy())(t.Context(), shared.clients[as]), "the agent cleans up")
	author := authorOfWorks(t, cluster, "get", "create", "update")
	require.NoError(t, poll(t.Context(), func(ctx context.Context) error { return get(old.DeepCopy())(ctx, author) }))
	for sentence, try := range map[string]attempt{"a hook": create(hook), "a work of an add-on": update(hello, written("later"))} {
		require.ErrorContains(t, try(t.Context(), client.NewDryRunClient(author)), policyDenied,
			"who may not write the add-on does not write %s", sentence)
	}

	require.NoError(t, shared.accept(t.Context(), cluster, true))
	suite.Eventually(t, func() error { return dry.Create(t.Context(), workWith("new", "later")) })
	deleteAfterwards(t, old)
	deleteAfterwards(t, hello)
}
