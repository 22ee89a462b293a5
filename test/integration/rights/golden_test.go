package rights_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/persona"
)

// everybody is the file with what every ServiceAccount may do, which is left out of the others. Every user may do all
// of it but the discovery of the issuer of tokens.
const everybody = "everybody"

// somebody is a role on the hub or on the cluster.
type somebody struct {
	file string
	// is says who that is.
	is     string
	user   string
	groups []string
	// onSpoke says that it is a role on the cluster.
	onSpoke bool
}

// somebodies are all personas. Groups of ServiceAccounts, and that of all users, are for the API server to add.
func somebodies() []somebody {
	return []somebody{
		{file: everybody, is: "any ServiceAccount", user: account("default", "default")},
		{
			file: "bootstrap-token", is: "whoever holds the bootstrap token",
			user: account(names.NamespaceBootstrap, names.ServiceAccountBootstrap),
		},
		{
			file: "accepted-agent", is: "the agent of " + own + ", which the hub accepted",
			user: csr.ClusterUser(own, "agent"), groups: []string{csr.ClusterGroup(own), csr.GroupManagedClusters},
		},
		{
			file: "add-on-credential", is: "the agent of add-on " + addOn + " on " + own + ", with a hub permission",
			user: csr.AddonUser(own, addOn, addOn+"-agent"), groups: csr.AddonGroups(own, addOn),
		},
		{file: "template-author", is: "the author of AddOnTemplates", user: persona.Author},
		{file: "namespace-admin", is: "the administrator of namespace " + own, user: persona.NamespaceAdmin},
		{
			file: "hub-manager", is: "the hub manager's own token",
			user: account(names.NamespaceHub, names.ServiceAccountManager),
		},
		{
			file: "account-of-add-ons", is: "the account in whose name the hub manager hands on what was granted",
			user: account(names.NamespaceHub, names.ServiceAccountAddons),
		},
		{
			file: "executor", is: "an executor of works on " + own + ", with an ordinary role in namespace apps",
			user: account("apps", "deployer"), onSpoke: true,
		},
		{
			file: "agent-on-its-cluster", is: "the agent on " + own + " itself",
			user: account(names.NamespaceAgent, names.ServiceAccountAgent), onSpoke: true,
		},
	}
}

// rights are what a persona may do: where, by verb, resource and name.
type rights struct {
	somebody
	where map[right][]string
	all   int
}

// right is a verb on a resource, with one name or with any; a path outside of resources counts as one.
type right struct{ verb, resource, name string }

// review asks the API servers what each persona may do in the namespaces that matter.
func (w *world) review(ctx context.Context) error {
	for _, who := range somebodies() {
		plane := w.Hub
		namespaces := []string{
			own, other, "shared", "signing", "default", "kube-system", names.NamespaceBootstrap, names.NamespaceHub,
		}
		if who.onSpoke {
			plane, namespaces = w.cluster.ControlPlane, []string{"apps", "default", "kube-system", names.NamespaceAgent}
		}
		r := rights{somebody: who, where: map[right][]string{}, all: len(namespaces)}
		for _, namespace := range namespaces {
			if err := r.ask(ctx, plane, namespace); err != nil {
				return fmt.Errorf("asking what %s may do in %s: %w", who.file, namespace, err)
			}
		}
		w.record.rights = append(w.record.rights, r)
	}
	return nil
}

// ask asks about one namespace.
func (r *rights) ask(ctx context.Context, plane *sandbox.ControlPlane, namespace string) error {
	config := plane.Admin()
	config.Impersonate = rest.ImpersonationConfig{UserName: r.user, Groups: r.groups}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	review := &authorizationv1.SelfSubjectRulesReview{}
	review.Spec.Namespace = namespace
	review, err = clients.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	found := map[right]bool{}
	for _, rule := range review.Status.ResourceRules {
		for _, resource := range resourcesOf(rule) {
			for _, verb := range rule.Verbs {
				for _, name := range orAny(rule.ResourceNames) {
					found[right{verb, resource, name}] = true
				}
			}
		}
	}
	for _, rule := range review.Status.NonResourceRules {
		for _, path := range rule.NonResourceURLs {
			for _, verb := range rule.Verbs {
				found[right{verb, path, ""}] = true
			}
		}
	}
	for one := range found {
		r.where[one] = append(r.where[one], namespace)
	}
	return nil
}

func resourcesOf(rule authorizationv1.ResourceRule) []string {
	var all []string
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			if group != "" {
				resource = group + "/" + resource
			}
			all = append(all, resource)
		}
	}
	return all
}

func orAny(names []string) []string {
	if len(names) == 0 {
		return []string{""}
	}
	return names
}

// line is a line of a golden file without its names.
type line struct{ resource, where, verbs string }

// lines lists the rights, without those of everybody.
func (r *rights) lines(common *rights) []string {
	type place struct{ resource, name, where string }
	verbs := map[place][]string{}
	for one, namespaces := range r.where {
		if common != nil && common.where[one] != nil {
			continue
		}
		where := "in " + strings.Join(namespaces, ", ")
		if len(namespaces) == r.all {
			where = "everywhere"
		}
		key := place{one.resource, one.name, where}
		verbs[key] = append(verbs[key], one.verb)
	}
	named := map[line][]string{}
	for at, some := range verbs {
		slices.Sort(some)
		key := line{at.resource, at.where, strings.Join(some, ",")}
		named[key] = append(named[key], at.name)
	}
	var all []string
	for key, names := range named {
		list := ""
		if !slices.Contains(names, "") {
			slices.Sort(names)
			list = " [" + strings.Join(names, " ") + "]"
		}
		all = append(all, key.resource+" "+key.verbs+list+" "+key.where)
	}
	slices.Sort(all)
	return all
}

func TestWhatEveryRoleCanDo(t *testing.T) {
	require.Len(t, recorded.rights, len(somebodies()))
	common := &recorded.rights[0]
	require.Equal(t, everybody, common.file)
	policies := shippedPolicies(t)
	for i := range recorded.rights {
		r := &recorded.rights[i]
		t.Run(r.file, func(t *testing.T) {
			var without *rights
			if r != common {
				without = common
			}
			lines := slices.DeleteFunc(r.lines(without), ofSomeKubernetes)
			text := "# What " + r.is + " can do (" + r.user + ").\n" + strings.Join(lines, "\n") + "\n"
			if !r.onSpoke {
				text += "\n# Refused by policy:\n" + bounds(t, policies, r)
			}
			compare(t, r.file, text)
		})
	}
	t.Run("and no other file is there", func(t *testing.T) {
		files, err := filepath.Glob(filepath.Join("testdata", "*.golden"))
		require.NoError(t, err)
		known := map[string]bool{}
		for _, who := range somebodies() {
			known[filepath.Join("testdata", who.file+".golden")] = true
		}
		assert.ElementsMatch(t, slices.Collect(maps.Keys(known)), files)
	})
}

// ofSomeKubernetes reports whether Kubernetes itself gives what a line says, in some versions only: from 1.37 on, role
// system:cluster-trust-bundle-discovery lets every ServiceAccount read the bundles, and after 1.33, role admin got
// dynamic resources and the later API of Events.
func ofSomeKubernetes(line string) bool {
	return line == "certificates.k8s.io/clustertrustbundles get,list,watch everywhere" ||
		strings.HasPrefix(line, "resource.k8s.io/resourceclaim") ||
		strings.HasPrefix(line, "events.k8s.io/events create,delete,deletecollection,get,list,patch,update,watch ")
}

// bounds lists the policies that bound a persona.
func bounds(t *testing.T, policies []policy, r *rights) string {
	t.Helper()
	text := ""
	for _, p := range policies {
		if p.concerns(t, r) {
			text += p.name + ": " + p.what + "\n"
		}
	}
	if text == "" {
		return "nothing\n"
	}
	return text
}

// compare compares a text with a golden file, or writes it.
func compare(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update")
	assert.Equal(t, string(want), text, "if this is meant, run the test with -update")
}
