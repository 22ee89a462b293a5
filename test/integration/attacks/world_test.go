package attacks_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/persona"
	"github.com/spokelet/spokelet/test/suite"
)

const (

	// trustedUser is the one user whose requests for a first credential need no person.
	trustedUser = "trusted@example.com"
	// bootstrapGroup is the group that the shipped RBAC lets join.
	bootstrapGroup = "system:bootstrappers:managedcluster"
	// agentName is the agent of every cluster.
	agentName = "agent1"
)

// who is an identity that sends requests.
type who string

const (
	// agent1 is the victim: the agent of cluster1, on which the add-ons hello, vault and changing are enabled.
	agent1 who = "the agent of cluster1"
	// agent10 is the attacker: the agent of cluster10, which is accepted and has the add-on hello.
	agent10 who = "the agent of cluster10"
	// hello1 is the agent of the add-on hello on cluster1.
	hello1 who = "the agent of hello on cluster1"
	// denied is the agent of a cluster that was accepted once.
	denied who = "the agent of a denied cluster"
	// gone is the agent of a cluster that was deleted.
	gone who = "the agent of a deleted cluster"
	// bootstrap is the shipped bootstrap ServiceAccount, which is not trusted here.
	bootstrap who = "the bootstrap ServiceAccount"
	// trusted is the user whose first credentials need no person.
	trusted who = "the trusted bootstrap user"
	// account is the ServiceAccount of some pod on the hub.
	account who = "a ServiceAccount"
	// author defines add-ons, and namespaceAdmin administers the namespace of cluster1; neither has another right.
	author         who = "a template author"
	namespaceAdmin who = "the administrator of the namespace of cluster1"
	// theManager is the hub manager itself, and theAddOns the account in whose name it hands on what was granted: what
	// a user could do who got hold of its token.
	theManager who = "the hub manager's token"
	theAddOns  who = "the hub manager's token, as the account of add-ons"
	// sibling is another agent of cluster1, nested one whose name looks like one, and impostor a user whose name only
	// begins like one; no hub hands such certificates out.
	sibling  who = "another agent of cluster1"
	nested   who = "a user with the name of an agent and more behind it"
	impostor who = "a user whose name begins with that of cluster1"
)

// world is a hub with clusters on it, and the identities of those who send requests.
type world struct {
	plane  *suite.Plane
	scheme *runtime.Scheme
	admin  client.Client
	// configs and clients are how each identity reaches the hub.
	configs map[who]*rest.Config
	clients map[who]client.Client
}

// newWorld joins the clusters, as agents do, and enables the add-ons.
func newWorld(ctx context.Context, plane *suite.Plane) (*world, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*suite.Timeout)
	defer cancel()
	w := &world{
		plane: plane, scheme: suite.Scheme(), admin: plane.Client, configs: map[who]*rest.Config{}, clients: map[who]client.Client{},
	}
	for _, step := range []func(context.Context) error{w.meet, w.createCAs, w.joinAll, w.enableAll, w.part, w.open} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// meet gives their identities to those who get none from the hub manager.
func (w *world) meet(ctx context.Context) error {
	user := func(name string, groups ...string) (*rest.Config, error) { return w.plane.User(name, groups...) }
	of := csr.ClusterUser("cluster1", agentName)
	for name, get := range map[who]func() (*rest.Config, error){
		trusted:        func() (*rest.Config, error) { return user(trustedUser, bootstrapGroup) },
		sibling:        func() (*rest.Config, error) { return user(of+"0", "test:strangers") },
		nested:         func() (*rest.Config, error) { return user(of+":more", "test:strangers") },
		impostor:       func() (*rest.Config, error) { return user(csr.ClusterGroup("cluster1"), "test:strangers") },
		author:         func() (*rest.Config, error) { return user(persona.Author) },
		namespaceAdmin: func() (*rest.Config, error) { return user(persona.NamespaceAdmin) },
		theManager: func() (*rest.Config, error) {
			return w.plane.ServiceAccount(ctx, names.NamespaceHub, names.ServiceAccountManager)
		},
		theAddOns: func() (*rest.Config, error) {
			config, err := w.plane.ServiceAccount(ctx, names.NamespaceHub, names.ServiceAccountManager)
			if err != nil {
				return nil, err
			}
			return suite.AsAddOns(config), nil
		},
		account: func() (*rest.Config, error) {
			return w.plane.ServiceAccount(ctx, "signing", "default")
		},
		bootstrap: func() (*rest.Config, error) {
			return w.plane.ServiceAccount(ctx, names.NamespaceBootstrap, names.ServiceAccountBootstrap)
		},
	} {
		config, err := get()
		if err != nil {
			return err
		}
		if err := w.add(name, config); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) add(name who, config *rest.Config) error {
	c, err := client.New(config, client.Options{Scheme: w.scheme})
	if err != nil {
		return err
	}
	w.configs[name], w.clients[name] = config, c
	return nil
}

// joinAll lets all clusters join and be accepted; the one called waiting is created only.
func (w *world) joinAll(ctx context.Context) error {
	for cluster, as := range map[string]who{"cluster1": agent1, "cluster10": agent10, "denied": denied, "gone": gone} {
		if err := w.join(ctx, cluster, as); err != nil {
			return fmt.Errorf("joining %s: %w", cluster, err)
		}
	}
	return w.admin.Create(ctx, newCluster("waiting"))
}

// join does what an agent and a person do: create the ManagedCluster, accept it, ask for a credential and take it.
func (w *world) join(ctx context.Context, name string, as who) error {
	if err := w.clients[trusted].Create(ctx, newCluster(name)); err != nil {
		return err
	}
	if err := w.accept(ctx, name, true); err != nil {
		return err
	}
	if err := w.obtain(ctx, as, trusted, csr.ForCluster(name, agentName)); err != nil {
		return err
	}
	return poll(ctx, func(ctx context.Context) error { // the rights of the agent
		return w.clients[as].Get(ctx, client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{})
	})
}

// newCluster is a cluster that is accepted by a person or not at all, as the annotation says.
func newCluster(name string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
		"open-cluster-management.io/automatically-accepted-on": "2026-11-20T12:00:00Z",
	}}}
}

// accept sets whether the hub accepts a cluster.
func (w *world) accept(ctx context.Context, name string, accepted bool) error {
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	patch := fmt.Appendf(nil, `{"spec":{"hubAcceptsClient":%t}}`, accepted)
	return w.admin.Patch(ctx, cluster, client.RawPatch("application/merge-patch+json", patch))
}

// obtain asks for a certificate and makes it the credential of an identity.
func (w *world) obtain(ctx context.Context, as, asker who, r csr.Request) error {
	key, err := csr.NewKey()
	if err != nil {
		return err
	}
	request, err := r.Build(key)
	if err != nil {
		return err
	}
	if err := poll(ctx, func(ctx context.Context) error { return w.clients[asker].Create(ctx, request) }); err != nil {
		return err
	}
	if err := poll(ctx, func(ctx context.Context) error { return w.issued(ctx, request) }); err != nil {
		return err
	}
	config := rest.AnonymousClientConfig(w.plane.Admin())
	config.QPS = -1
	config.CertData, config.KeyData = request.Status.Certificate, key
	return w.add(as, config)
}

// issued refreshes a request and reports whether it has its certificate.
func (w *world) issued(ctx context.Context, request *certificatesv1.CertificateSigningRequest) error {
	if err := w.admin.Get(ctx, client.ObjectKeyFromObject(request), request); err != nil {
		return err
	}
	if len(request.Status.Certificate) == 0 {
		return fmt.Errorf("request %s for %s has no certificate, its conditions are %v",
			request.Name, request.Labels, request.Status.Conditions)
	}
	return nil
}

// enableAll enables the add-ons and gives the agent of hello on cluster1 its certificate.
func (w *world) enableAll(ctx context.Context) error {
	for _, key := range []client.ObjectKey{
		{Namespace: "cluster1", Name: "hello"}, {Namespace: "cluster1", Name: "vault"},
		{Namespace: "cluster1", Name: "changing"},
		{Namespace: "cluster10", Name: "hello"}, {Namespace: "denied", Name: "hello"},
	} {
		if err := poll(ctx, func(ctx context.Context) error { return w.enable(ctx, key) }); err != nil {
			return fmt.Errorf("enabling %s: %w", key, err)
		}
	}
	return w.obtain(ctx, hello1, agent1, forAddon("cluster1", "hello", kube))
}

func (w *world) enable(ctx context.Context, key client.ObjectKey) error {
	return w.admin.Create(ctx, &addonv1alpha1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
	})
}

// part denies one cluster and deletes another, and waits until their rights are gone.
func (w *world) part(ctx context.Context) error {
	if err := w.accept(ctx, "denied", false); err != nil {
		return err
	}
	if err := w.admin.Delete(ctx, newCluster("gone")); err != nil {
		return err
	}
	return poll(ctx, func(ctx context.Context) error {
		var roles rbacv1.ClusterRoleList
		if err := w.admin.List(ctx, &roles); err != nil {
			return err
		}
		for _, role := range roles.Items {
			switch {
			case role.Labels[names.LabelClusterName] == "gone":
				return errors.New("the role of the deleted cluster is still there")
			case role.Labels[names.LabelClusterName] == "denied" && len(role.Rules) > 1:
				return errors.New("the role of the denied cluster still has its rules")
			}
		}
		return nil
	})
}

// open removes a policy that refuses at the door what the hub manager must refuse by itself, too: what agents ask for in
// the name of another cluster. It has a test of its own, in package hubcluster. The hub manager looked at its start
// whether it is there.
func (w *world) open(ctx context.Context) error {
	if err := w.admin.Delete(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: in("", "agent-request-labels.spokelet.io"),
	}); err != nil {
		return err
	}
	key, err := csr.NewKey()
	if err != nil {
		return err
	}
	request, err := csr.ForCluster("cluster1", agentName).Build(key)
	if err != nil {
		return err
	}
	return poll(ctx, func(ctx context.Context) error {
		return w.clients[agent10].Create(ctx, request.DeepCopy(), client.DryRunAll)
	})
}

// createCAs creates the CAs of the custom signers, one with an RSA key and one with an ECDSA key; that of late is late.
func (w *world) createCAs(ctx context.Context) error {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	ecdsaKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	return errors.Join(w.createCA(ctx, "rsa", rsaKey, "hello"), w.createCA(ctx, "ecdsa", ecdsaKey, "vault"))
}

func (w *world) createCA(ctx context.Context, name string, key crypto.Signer, addOns ...string) error {
	ca, err := sandbox.NewCA("ca "+name, key)
	if err != nil {
		return err
	}
	return w.admin.Create(ctx, ca.Secret("signing", name, addOns...))
}

// registration names one of the credentials of an add-on.
type registration int

const (
	kube registration = iota
	custom
)

// forAddon is the request of an add-on, as the templates in testdata say.
func forAddon(cluster, addon string, which registration) csr.Request {
	standard := addonv1beta1.BaseSubject{
		User: csr.AddonUser(cluster, addon, addon+"-agent"), Groups: csr.AddonGroups(cluster, addon),
	}
	config := addonv1beta1.RegistrationConfig{
		Type:       addonv1beta1.KubeClient,
		KubeClient: &addonv1beta1.KubeClientConfig{Subject: addonv1beta1.KubeClientSubject{BaseSubject: standard}},
	}
	if which == custom {
		config = addonv1beta1.RegistrationConfig{
			Type: addonv1beta1.CustomSigner, CustomSigner: customSigners(addon, standard),
		}
	}
	request, err := csr.ForAddon(cluster, addon, config)
	if err != nil {
		return csr.Request{GenerateName: err.Error()}
	}
	return request
}

func customSigners(addon string, standard addonv1beta1.BaseSubject) *addonv1beta1.CustomSignerConfig {
	switch addon {
	case "hello":
		return &addonv1beta1.CustomSignerConfig{SignerName: "example.com/rsa", Subject: addonv1beta1.Subject{
			BaseSubject:       addonv1beta1.BaseSubject{User: "hello-user", Groups: []string{"hello-group"}},
			OrganizationUnits: []string{"hello-unit"},
		}}
	case "changing":
		return &addonv1beta1.CustomSignerConfig{SignerName: "example.com/late", Subject: addonv1beta1.Subject{
			BaseSubject: addonv1beta1.BaseSubject{User: "before"},
		}}
	}
	return &addonv1beta1.CustomSignerConfig{
		SignerName: "example.com/ecdsa", Subject: addonv1beta1.Subject{BaseSubject: standard},
	}
}

// poll waits until holds returns nil; it gives the last error when ctx ends.
func poll(ctx context.Context, holds func(ctx context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, suite.Tick, true, func(ctx context.Context) (bool, error) {
		last = holds(ctx)
		if apierrors.IsInvalid(last) {
			return false, last
		}
		return last == nil, nil
	})
	return errors.Join(err, last)
}
