package attacks_test

import (
	"context"
	"crypto/elliptic"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// atLeastDemands is how many templates the issue asks for.
const atLeastDemands = 40

// definition is the template of an add-on, without its registration.
const definition = `
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata: {name: %[1]s}
spec:
  addonName: %[2]s
  agentSpec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: %[1]s, namespace: default}}]}}
  registration: %[3]s
`

// management is the ClusterManagementAddOn of an add-on with one template.
const management = `
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata: {name: %[1]s}
spec:
  installStrategy: {type: Manual}
  supportedConfigs:
  - {group: addon.open-cluster-management.io, resource: addontemplates, defaultConfig: {name: %[1]s}}
`

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &u.Object), text)
	return u
}

func TestNoTemplateGetsMoreThanWasGranted(t *testing.T) {
	require.NoError(t, shared.plane.Apply(t.Context(), roles))
	all := map[string]demand{}
	for _, table := range []map[string]demand{
		demandsOfSigners(), demandsOfSubjects(), demandsOfNamespaces(), demandsOfRoles(),
	} {
		maps.Copy(all, table)
	}
	require.GreaterOrEqual(t, len(all), atLeastDemands)
	before := bindings(t)
	refusedByServer := 0
	addOns := map[string]string{}
	for i, sentence := range slices.Sorted(maps.Keys(all)) {
		addOn := fmt.Sprintf("demand-%02d", i)
		if demanded(t, addOn, sentence, all[sentence]) {
			addOns[sentence] = addOn
		} else {
			refusedByServer++
		}
	}
	for sentence, addOn := range addOns {
		d := all[sentence]
		t.Run(sentence, func(t *testing.T) {
			suite.Eventually(t, func() error { return refusedOn(t.Context(), "cluster1", addOn, d.says) })
			if d.signer != "" {
				assertNoCertificate(t, addOn, d)
			}
			if d.addOn != "" {
				work := &workv1.ManifestWork{ObjectMeta: in("cluster1", "addon-"+addOn+"-deploy-0")}
				suite.Eventually(t, func() error { return get(work)(t.Context(), shared.admin) })
			}
		})
	}
	assertNothingBound(t, before)
	t.Logf("%d templates tried, %d of them refused by the API server, %d by the hub manager", len(all), refusedByServer,
		len(addOns))
}

// demanded defines an add-on as its author and enables it on cluster1; false when the API server refuses the template.
func demanded(t *testing.T, addOn, sentence string, d demand) bool {
	t.Helper()
	made := d.addOn
	if made == "" {
		made = addOn
	}
	as := shared.clients[author]
	template := object(t, fmt.Sprintf(definition, addOn, made, d.registration))
	if err := as.Create(t.Context(), template); d.refused != "" {
		require.ErrorContains(t, err, d.refused, sentence)
		return false
	} else if err != nil {
		t.Errorf("%s: the API server refuses the template: %s", sentence, err)
		return false
	}
	deleteAfterwards(t, template)
	cma := object(t, fmt.Sprintf(management, addOn))
	require.NoError(t, as.Create(t.Context(), cma))
	deleteAfterwards(t, cma)
	enabled := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in("cluster1", addOn)}
	require.NoError(t, as.Create(t.Context(), enabled))
	deleteAfterwards(t, enabled)
	return true
}

// refusedOn reports whether the condition of an add-on says that it does not get what it asks for, and why.
func refusedOn(ctx context.Context, cluster, addOn, says string) error {
	var found addonv1alpha1.ManagedClusterAddOn
	if err := shared.admin.Get(ctx, client.ObjectKey{Namespace: cluster, Name: addOn}, &found); err != nil {
		return err
	}
	condition := meta.FindStatusCondition(found.Status.Conditions, "RegistrationApplied")
	if condition == nil || condition.Status != metav1.ConditionFalse || !strings.Contains(condition.Message, says) {
		return fmt.Errorf("condition RegistrationApplied of %s is %v, and should say %q", addOn, condition, says)
	}
	return nil
}

// assertNoCertificate has the agent of the cluster ask for what the template asks for.
func assertNoCertificate(t *testing.T, addOn string, d demand) {
	t.Helper()
	asks := forAddon("cluster1", "hello", kube)
	asks.GenerateName, asks.DNSNames = "addon-cluster1-"+addOn+"-", []string{addOn + ".addon.open-cluster-management.io"}
	asks.Labels = map[string]string{names.LabelClusterName: "cluster1", names.LabelAddonName: addOn}
	asks.Signer, asks.User, asks.Groups = d.signer, d.user, []string{"x"}
	reason := "AddonInvalid"
	if d.addOn != "" { // The add-on is deployed without that signer.
		reason = approve.ReasonSignerNotExpected
	}
	s := post(t, forgery{as: agent1, asks: asks, rules: rules(reason)})
	suite.Eventually(t, func() error { return told(t.Context(), s) })
	assertNotPassed(t, s)
}

// bindings names all bindings of the hub with what they bind to whom.
func bindings(t *testing.T) []string {
	t.Helper()
	var all []string
	var some rbacv1.RoleBindingList
	require.NoError(t, shared.admin.List(t.Context(), &some))
	for _, b := range some.Items {
		all = append(all, fmt.Sprint(b.Namespace, " ", b.Name, " ", b.RoleRef, " ", b.Subjects))
	}
	var everywhere rbacv1.ClusterRoleBindingList
	require.NoError(t, shared.admin.List(t.Context(), &everywhere))
	for _, b := range everywhere.Items {
		all = append(all, fmt.Sprint(b.Name, " ", b.RoleRef, " ", b.Subjects))
	}
	slices.Sort(all)
	return all
}

// assertNothingBound checks that no binding came to those that were there. Of add-ons that other tests left, they may
// go.
func assertNothingBound(t *testing.T, before []string) {
	t.Helper()
	for _, b := range bindings(t) {
		assert.Contains(t, before, b)
	}
}

// TestConsentIsEnough shows the three ways to consent: each of them is enough, and none of them was there before.
func TestConsentIsEnough(t *testing.T) {
	subject := rbacv1.Subject{Kind: "ServiceAccount", Namespace: names.NamespaceHub, Name: names.ServiceAccountAddons}
	role := func(name string, labels map[string]string) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}, ResourceNames: []string{name}},
		}}
	}
	grant := func(name, of string) client.Object {
		return &rbacv1.ClusterRoleBinding{ObjectMeta: in("", name), Subjects: []rbacv1.Subject{subject},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: of}}
	}
	for addOn, consent := range map[string]func(t *testing.T, role string){
		"consent-by-grant": func(t *testing.T, role string) {
			t.Helper()
			createForTest(t, grant("addon-manager-"+role, role))
		},
		"consent-by-label": func(t *testing.T, role string) {
			t.Helper()
			labelled := &rbacv1.ClusterRole{ObjectMeta: in("", role)}
			require.NoError(t, change(labelled, `{"metadata":{"labels":{"`+names.LabelHubPermission+`":"true"}}}`)(
				t.Context(), shared.admin))
		},
		"consent-by-bind": func(t *testing.T, role string) {
			t.Helper()
			createForTest(t, &rbacv1.ClusterRole{ObjectMeta: in("", "may-bind-"+role), Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, Verbs: []string{"bind"},
				ResourceNames: []string{role},
			}}})
			createForTest(t, grant("may-bind-"+role, "may-bind-"+role))
		},
	} {
		t.Run(addOn, func(t *testing.T) {
			createForTest(t, role(addOn, nil))
			require.True(t, demanded(t, addOn, addOn, demand{registration: bindsHere(addOn)}))
			suite.Eventually(t, func() error {
				ctx := t.Context()
				return refusedOn(ctx, "cluster1", addOn, "kubectl label clusterrole "+addOn+" "+names.LabelHubPermission+"=true")
			})
			consent(t, addOn)
			suite.Eventually(t, func() error {
				ctx := t.Context()
				var binding rbacv1.RoleBinding
				return shared.admin.Get(ctx, client.ObjectKey{
					Namespace: "cluster1", Name: "open-cluster-management:" + addOn + ":clusterrole:agent",
				}, &binding)
			})
		})
	}
}

// createForTest creates an object as an administrator for the time of a test.
func createForTest(t *testing.T, o client.Object) {
	t.Helper()
	require.NoError(t, shared.admin.Create(t.Context(), o))
	deleteAfterwards(t, o)
}

// TestATemplateThatIsEditedInPlaceGainsNothing edits a good template of an add-on that is installed.
func TestATemplateThatIsEditedInPlaceGainsNothing(t *testing.T) {
	const addOn = "edited"
	require.NoError(t, shared.plane.Apply(t.Context(), roles))
	require.True(t, demanded(t, addOn, addOn, demand{registration: bindsHere("hello-hub")}))
	key := client.ObjectKey{Namespace: "cluster1", Name: "open-cluster-management:" + addOn + ":clusterrole:agent"}
	suite.Eventually(t, func() error { return shared.admin.Get(t.Context(), key, &rbacv1.RoleBinding{}) })
	honest := forAddon("cluster1", "hello", kube)
	honest.Labels = map[string]string{names.LabelClusterName: "cluster1", names.LabelAddonName: addOn}
	honest.User, honest.Groups = csr.AddonUser("cluster1", addOn, addOn+"-agent"), csr.AddonGroups("cluster1", addOn)
	honest.DNSNames = []string{addOn + ".addon.open-cluster-management.io"}
	granted := post(t, forgery{as: agent1, asks: honest})
	suite.Eventually(t, func() error { return shared.issued(t.Context(), granted.request) })
	before := bindings(t)
	for sentence, d := range map[string]demand{
		"to another signer":    {registration: customSigner("kubernetes.io/kube-apiserver-client", "user: admin"), says: "belongs to Kubernetes"},
		"to another namespace": {registration: bindsIn("kube-system", "ClusterRole", "hello-hub"), says: "belongs to Kubernetes"},
		"to another role":      {registration: bindsHere("open-cluster-management:spokelet-hub"), says: "is never bound"},
		"to the name of another add-on": {
			registration: bindsHere("hello-hub"), addOn: "hello", says: `.spec.addonName is "hello"`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			made := d.addOn
			if made == "" {
				made = addOn
			}
			edit := fmt.Appendf(nil, definition, addOn, made, d.registration)
			require.NoError(t, shared.plane.Apply(t.Context(), edit))
			suite.Eventually(t, func() error { return refusedOn(t.Context(), "cluster1", addOn, d.says) })
			if d.addOn == "" {
				s := post(t, forgery{as: agent1, asks: honest, rules: rules("AddonInvalid")}) // a renewal
				suite.Eventually(t, func() error { return told(t.Context(), s) })
				assertNotPassed(t, s)
			} else { // Its own identity asks for no trust in the template.
				s := post(t, forgery{as: agent1, asks: honest})
				suite.Eventually(t, func() error { return shared.issued(t.Context(), s.request) })
			}
			assertNothingBound(t, before)
			assert.NoError(t, shared.admin.Get(t.Context(), key, &rbacv1.RoleBinding{}), "what was granted stays")
		})
	}
}

// TestAnAgentDoesNotChooseItsTemplate has the agent of cluster1 write into the status of its own add-on that it runs by
// another template of that add-on, whose permission an administrator consented to. A policy refuses that, and the hub
// manager does not believe it either, no matter who wrote it.
func TestAnAgentDoesNotChooseItsTemplate(t *testing.T) {
	require.NoError(t, shared.plane.Apply(t.Context(), roles))
	powerful := object(t, fmt.Sprintf(definition, "powerful", "hello", bindsIn("shared", "ClusterRole", "hello-hub")))
	createForTest(t, powerful)
	before := bindings(t)
	agent := shared.clients[agent1]
	for range 20 {
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in("cluster1", "hello")}
		require.NoError(t, get(addOn)(t.Context(), agent))
		was := addOn.DeepCopy()
		require.NotEmpty(t, addOn.Status.ConfigReferences)
		for i := range addOn.Status.ConfigReferences {
			reference := &addOn.Status.ConfigReferences[i]
			if reference.Resource == "addontemplates" {
				reference.Name, reference.DesiredConfig.Name = "powerful", "powerful"
			}
		}
		require.ErrorContains(t, agent.Status().Patch(t.Context(), addOn.DeepCopy(), client.MergeFrom(was)), policyReferences)
		require.NoError(t, shared.admin.Status().Patch(t.Context(), addOn, client.MergeFrom(was)))
		suite.Eventually(t, func() error { // the hub takes it back, so it has seen it
			ctx := t.Context()
			var now addonv1alpha1.ManagedClusterAddOn
			err := shared.admin.Get(ctx, client.ObjectKeyFromObject(addOn), &now)
			if err == nil && now.Status.ConfigReferences[0].DesiredConfig.Name != "hello" {
				err = fmt.Errorf("the template is still %s", now.Status.ConfigReferences[0].DesiredConfig.Name)
			}
			return err
		})
		assertNothingBound(t, before)
	}
}

// TestABindingThatNoTemplateAsksForGoes takes a permission in a namespace of all clusters out of a template.
func TestABindingThatNoTemplateAsksForGoes(t *testing.T) {
	const addOn = "shrinking"
	require.NoError(t, shared.plane.Apply(t.Context(), roles))
	require.True(t, demanded(t, addOn, addOn, demand{registration: bindsIn("shared", "ClusterRole", "hello-hub")}))
	key := client.ObjectKey{Namespace: "shared", Name: "open-cluster-management:" + addOn + ":clusterrole:agent:cluster:cluster1"}
	suite.Eventually(t, func() error { return shared.admin.Get(t.Context(), key, &rbacv1.RoleBinding{}) })
	require.NoError(t, shared.plane.Apply(t.Context(), fmt.Appendf(nil, definition, addOn, addOn, bindsHere("hello-hub"))))
	suite.Eventually(t, func() error {
		ctx := t.Context()
		err := shared.admin.Get(ctx, key, &rbacv1.RoleBinding{})
		if err == nil {
			return fmt.Errorf("RoleBinding %s is still there", key)
		}
		return client.IgnoreNotFound(err)
	})
}

// TestATemplateAuthorCannotUseTheCAOfOthers has templates name a CA before it says whom it serves, and the template of
// another add-on name the CA of an add-on, with a signer of its own and with that of the add-on (S-7).
// Shows: security/ca-of-others
func TestATemplateAuthorCannotUseTheCAOfOthers(t *testing.T) {
	key, err := ecdsaKey(elliptic.P256())()
	require.NoError(t, err)
	require.NoError(t, shared.createCA(t.Context(), "contested", key))
	ca := &corev1.Secret{ObjectMeta: in("signing", "contested")}
	deleteAfterwards(t, ca)
	signerOf := func(signer string) string {
		return strings.ReplaceAll(customSigner(signer, "user: u"), "name: rsa", "name: contested")
	}
	ask := func(addOn, signer string) *sent {
		asks := forAddon("cluster1", "hello", kube)
		asks.Labels = map[string]string{names.LabelClusterName: "cluster1", names.LabelAddonName: addOn}
		asks.DNSNames = []string{addOn + ".addon.open-cluster-management.io"}
		asks.Signer, asks.User, asks.Groups = signer, "u", nil
		return post(t, forgery{as: agent1, asks: asks, rules: rules("SigningCANotServing")})
	}
	require.True(t, demanded(t, "ca-owner", "", demand{registration: signerOf("example.com/owner")}))
	// A CA in another namespace serves nobody until it says whom, also its only author.
	require.True(t, demanded(t, "ca-thief", "", demand{registration: signerOf("example.com/thief")}))
	require.True(t, demanded(t, "ca-twin", "", demand{registration: signerOf("example.com/owner")}))
	for addOn, signer := range map[string]string{
		"ca-thief": "example.com/thief", "ca-twin": "example.com/owner", "ca-owner": "example.com/owner",
	} {
		s := ask(addOn, signer)
		suite.Eventually(t, func() error { return told(t.Context(), s) })
	}
	require.NoError(t, change(ca, `{"metadata":{"annotations":{"`+names.AnnotationSigners+`":"example.com/owner","`+
		names.AnnotationSignerAddons+`":"ca-owner"}}}`)(t.Context(), shared.admin))
	served := ask("ca-owner", "example.com/owner")
	suite.Eventually(t, func() error { return shared.issued(t.Context(), served.request) })
	for addOn, signer := range map[string]string{"ca-thief": "example.com/thief", "ca-twin": "example.com/owner"} {
		s := ask(addOn, signer)
		suite.Eventually(t, func() error { return told(t.Context(), s) })
	}
}
