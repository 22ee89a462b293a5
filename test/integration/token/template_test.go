package token_test

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/token"
	"github.com/spokelet/spokelet/test/suite"
)

//go:embed testdata/template.yaml
var templateFile []byte

// template creates a template add-on and installs it on a cluster. In the file, ADDON stands for its name.
func template(t *testing.T, name string, clusters ...string) []addOn {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name + "-shared"}}
	require.NoError(t, plane.Client.Create(t.Context(), namespace))
	require.NoError(t, plane.Apply(t.Context(), bytes.ReplaceAll(templateFile, []byte("ADDON"), []byte(name))))
	var all []addOn
	for _, cluster := range clusters {
		accepted(t, cluster)
		require.NoError(t, plane.AddOns.CreateAddOn(t.Context(), &addonv1beta1.ManagedClusterAddOn{
			ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name},
		}))
		all = append(all, addOn{cluster, name})
	}
	return all
}

// choose plays the agent of the cluster: it chooses the driver when the hub has said what to register, and with the
// driver token it says who the add-on is.
func (a addOn) choose(t *testing.T, agent addonapi.Client, driver, user string, groups ...string) {
	t.Helper()
	suite.Eventually(t, func() error {
		before, err := agent.GetAddOn(t.Context(), a.key())
		if err != nil {
			return err
		}
		if len(before.Status.Registrations) == 0 {
			return errors.New("the hub has not said yet what to register")
		}
		after := before.DeepCopy()
		registration := after.Status.Registrations[0].KubeClient
		registration.Driver = driver
		registration.Subject.BaseSubject = addonv1beta1.BaseSubject{User: user, Groups: groups}
		_, err = agent.PatchAddOnStatus(t.Context(), before, after)
		return err
	})
}

// holder returns a client with a token.
func holder(t *testing.T, bearer string) client.Client {
	t.Helper()
	cfg := rest.AnonymousClientConfig(plane.Admin())
	cfg.BearerToken = bearer
	return suite.NewClient(t, cfg)
}

func configMap(namespace string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "test"}}
}

// may waits until an account may read ConfigMaps in a namespace.
func may(t *testing.T, c client.Client, namespace string) {
	t.Helper()
	suite.Eventually(t, func() error {
		return client.IgnoreNotFound(c.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "test"}, configMap("")))
	})
}

// mayNot checks that an account may not read ConfigMaps in a namespace.
func mayNot(t *testing.T, c client.Client, namespace string) {
	t.Helper()
	err := c.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "test"}, configMap(""))
	require.True(t, apierrors.IsForbidden(err), "namespace %s: %v", namespace, err)
}

// Shows: registration/token-used-by-template
func TestATemplateAddOnWorksWithATokenAndWithNothingElse(t *testing.T) {
	t.Parallel()
	both := template(t, "e2e", "e2e-one", "e2e-two")
	one, two := both[0], both[1]
	var tokens []string
	for _, a := range both {
		agent, addOns := agentOf(t, a.cluster)
		a.choose(t, addOns, "token", token.User(a.cluster, a.name))
		a.ready(t)
		tokens = append(tokens, mint(t, agent, a))
	}
	first, second := holder(t, tokens[0]), holder(t, tokens[1])

	may(t, first, "e2e-one")
	may(t, second, "e2e-two")
	may(t, first, "e2e-shared")
	may(t, second, "e2e-shared")
	require.NoError(t, first.Create(t.Context(), configMap("e2e-one")), "the role in the cluster's namespace has more verbs")
	for _, namespace := range []string{"e2e-two", "default", "kube-system"} {
		mayNot(t, first, namespace)
	}
	require.True(t, apierrors.IsForbidden(first.Create(t.Context(), configMap("e2e-shared"))))
	_, err := tryMint(t.Context(), first, "e2e-one", "e2e-agent")
	require.True(t, apierrors.IsForbidden(err), "no account makes tokens for itself: %v", err)

	// An add-on that goes takes its access along, everywhere, and leaves that of the other cluster.
	require.NoError(t, plane.AddOns.DeleteAddOn(t.Context(), one.read(t)))
	one.gone(t)
	suite.Eventually(t, func() error {
		if own := bindingsOf(t, "e2e-shared", "e2e-one"); len(own) > 0 {
			return fmt.Errorf("RoleBinding %s is left", own[0].Name)
		}
		return nil
	})
	may(t, second, "e2e-shared")
	// The API server remembers for some seconds that a token was good.
	suite.Within(t, suite.Timeout, func() error {
		err := first.Get(t.Context(), types.NamespacedName{Namespace: "e2e-shared", Name: "test"}, configMap(""))
		if !apierrors.IsUnauthorized(err) && !apierrors.IsForbidden(err) {
			return fmt.Errorf("the token of an add-on that is gone is still good: %w", err)
		}
		return nil
	})

	// Back to certificates, the account loses what it was given, and so does the cluster in the shared namespace.
	_, addOns := agentOf(t, two.cluster)
	two.choose(t, addOns, "csr", "")
	two.gone(t)
	two.unconditional(t)
	suite.Eventually(t, func() error {
		for _, namespace := range []string{"e2e-two", "e2e-shared"} {
			for _, binding := range allBindings(t, namespace) {
				for _, subject := range binding.Subjects {
					if subject.Kind == rbacv1.ServiceAccountKind && subject.Name != names.ServiceAccountAddons {
						return fmt.Errorf("RoleBinding %s/%s names %s", namespace, binding.Name, subject.Name)
					}
				}
			}
		}
		return nil
	})
}

// Shows: registration/token-subjects
func TestTheSubjectsOfATokenAreComputedOnTheHub(t *testing.T) {
	t.Parallel()
	a := template(t, "subject", "subject-one")[0]
	_, addOns := agentOf(t, a.cluster)
	for _, forged := range []addonv1beta1.BaseSubject{
		{User: "system:serviceaccount:kube-system:namespace-controller"},
		{User: token.User("subject-other", "subject")},
		{User: token.User(a.cluster, a.name), Groups: []string{"system:masters"}},
		{User: "system:anonymous", Groups: []string{"system:unauthenticated"}},
	} {
		a.choose(t, addOns, "token", forged.User, forged.Groups...)
		suite.Eventually(t, func() error {
			if subject := a.read(t).Status.Registrations[0].KubeClient.Subject; subject.User != "" || len(subject.Groups) > 0 {
				return fmt.Errorf("the forged subject %v stands", subject)
			}
			return nil
		})
	}
	a.choose(t, addOns, "token", token.User(a.cluster, a.name))
	a.ready(t)
	own := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: a.cluster, Name: token.ServiceAccountName(a.name)}
	groups := csr.AddonGroups(a.cluster, a.name)
	group := func(name string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}
	}
	// The account is bound once the hub has made it: the right to request its tokens shows that it is ours.
	suite.Eventually(t, suite.Checks(func(c assert.TestingT) {
		here, there := bindingsOf(t, a.cluster, ""), bindingsOf(t, "subject-shared", a.cluster)
		if assert.Len(c, here, 1) && assert.Len(c, there, 1) {
			assert.Equal(c, []rbacv1.Subject{group(groups[0]), own}, here[0].Subjects)
			assert.Equal(c, []rbacv1.Subject{group(groups[0]), own}, there[0].Subjects)
		}
	}))
	// The agent of the cluster has taken none of it by force.
	user := a.read(t).Status.Registrations[0].KubeClient.Subject.User
	assert.Equal(t, token.User(a.cluster, a.name), user)
}

// bindingsOf lists the RoleBindings of template add-ons in a namespace with the label of a cluster, or without one.
func bindingsOf(t *testing.T, namespace, cluster string) []rbacv1.RoleBinding {
	t.Helper()
	var found []rbacv1.RoleBinding
	for _, binding := range allBindings(t, namespace) {
		_, ofTemplate := binding.Labels["open-cluster-management.io/addon-template-name"]
		if ofTemplate && binding.Labels["open-cluster-management.io/cluster-name"] == cluster {
			found = append(found, binding)
		}
	}
	return found
}

func allBindings(t *testing.T, namespace string) []rbacv1.RoleBinding {
	t.Helper()
	var list rbacv1.RoleBindingList
	require.NoError(t, plane.Client.List(t.Context(), &list, client.InNamespace(namespace)))
	return list.Items
}
