package attacks_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/suite"
)

const (
	policyAgentClusters  = "hub-agent-clusters.spokelet.io"
	policyAgentWorks     = "hub-agent-works.spokelet.io"
	policyClusterOwners  = "managedcluster-owners.spokelet.io"
	policyConfigurations = "addon-configurations.spokelet.io"
)

// update changes an object as agents do, with the verb update.
func update[T client.Object](o T, change func(T)) attempt {
	return func(ctx context.Context, c client.Client) error {
		return retry.RetryOnConflict(retry.DefaultRetry, func() error {
			fresh, _ := o.DeepCopyObject().(T)
			if err := c.Get(ctx, client.ObjectKeyFromObject(o), fresh); err != nil {
				return err
			}
			change(fresh)
			return c.Update(ctx, fresh)
		})
	}
}

// Shows: security/labels-and-taints
func TestAnAgentCannotChooseTheLabelsOrTaintsOfItsCluster(t *testing.T) {
	own := &clusterv1.ManagedCluster{ObjectMeta: in("", "cluster10")}
	quarantine := clusterv1.Taint{Key: "quarantine", Effect: clusterv1.TaintEffectNoSelect}
	// Other policies say nothing of these attacks, so each is tried on a cluster that a person prepared.
	require.NoError(t, update(own, func(c *clusterv1.ManagedCluster) {
		c.Labels["tenant"] = "plain"
		c.Spec.Taints = append(c.Spec.Taints, quarantine)
	})(t.Context(), shared.admin))
	edit := func(change func(*clusterv1.ManagedCluster)) attempt { return update(own, change) }
	isQuarantine := func(taint clusterv1.Taint) bool { return taint.Key == quarantine.Key }
	refuse(t, map[string]misuse{
		"it adds a label": {agent10, edit(func(c *clusterv1.ManagedCluster) { c.Labels["vip"] = "true" }), policyAgentClusters},
		"it changes a label": {agent10, edit(func(c *clusterv1.ManagedCluster) { c.Labels["tenant"] = "vip" }),
			policyAgentClusters},
		"it removes a label": {agent10, edit(func(c *clusterv1.ManagedCluster) { delete(c.Labels, "tenant") }),
			policyAgentClusters},
		"it says that an add-on is there": {agent10, edit(func(c *clusterv1.ManagedCluster) {
			c.Labels["feature.open-cluster-management.io/addon-vault"] = "available"
		}), policyAgentClusters},
		"it removes a taint": {agent10, edit(func(c *clusterv1.ManagedCluster) {
			c.Spec.Taints = slices.DeleteFunc(c.Spec.Taints, isQuarantine)
		}), policyAgentClusters},
		"it weakens a taint": {agent10, edit(func(c *clusterv1.ManagedCluster) {
			i := slices.IndexFunc(c.Spec.Taints, isQuarantine)
			c.Spec.Taints[i] = clusterv1.Taint{Key: quarantine.Key, Effect: clusterv1.TaintEffectPreferNoSelect}
		}), policyAgentClusters},
		"it replaces a taint": {agent10, edit(func(c *clusterv1.ManagedCluster) {
			c.Spec.Taints[slices.IndexFunc(c.Spec.Taints, isQuarantine)] = clusterv1.Taint{
				Key: "other", Effect: clusterv1.TaintEffectNoSelect}
		}), policyAgentClusters},
		"the bootstrap ServiceAccount creates a cluster with a label": {bootstrap, create(withLabel("tenants-a")), policyAgentClusters},
		"a bootstrap token creates a cluster with a label":            {trusted, create(withLabel("tenants-b")), policyAgentClusters},
	})
	require.NoError(t, edit(func(c *clusterv1.ManagedCluster) {
		c.Labels["agent.open-cluster-management.io/x"] = "y"
		c.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: "https://own:6443"}}
	})(t.Context(), shared.clients[agent10]), "what is its own it may change")
	require.NoError(t, update(own, func(c *clusterv1.ManagedCluster) {
		delete(c.Labels, "tenant")
		c.Spec.Taints = slices.DeleteFunc(c.Spec.Taints, isQuarantine)
	})(t.Context(), shared.admin), "a person may")
}

// withLabel is a new cluster with a label.
func withLabel(name string) *clusterv1.ManagedCluster {
	cluster := newCluster(name)
	cluster.Labels = map[string]string{"tenant": "vip"}
	return cluster
}

// Shows: security/owners
func TestAnAgentCannotHaveWhatItIsGivenDeletedByAnOwner(t *testing.T) {
	owner := metav1.OwnerReference{
		APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest", Name: "gone", UID: "5f0e5b2e-0000-4000-8000-000000000000",
	}
	owned := newCluster("tenants-owned")
	owned.OwnerReferences = []metav1.OwnerReference{owner}
	suite.Eventually(t, func() error {
		return shared.admin.Get(t.Context(), client.ObjectKey{Namespace: "cluster10", Name: "addon-hello-deploy-0"}, &workv1.ManifestWork{})
	})
	refuse(t, map[string]misuse{
		"it gives its cluster to an owner": {agent10, update(&clusterv1.ManagedCluster{ObjectMeta: in("", "cluster10")},
			func(c *clusterv1.ManagedCluster) { c.OwnerReferences = append(c.OwnerReferences, owner) }), policyClusterOwners},
		"the bootstrap ServiceAccount creates a cluster with an owner": {bootstrap, create(owned), policyClusterOwners},
		"it gives a work to an owner": {agent10, update(&workv1.ManifestWork{ObjectMeta: in("cluster10", "addon-hello-deploy-0")},
			func(w *workv1.ManifestWork) { w.OwnerReferences = append(w.OwnerReferences, owner) }), policyAgentWorks + orElse + policyWorkOwners},
		"it takes a work from its owner": {agent10, update(&workv1.ManifestWork{ObjectMeta: in("cluster10", "addon-hello-deploy-0")},
			func(w *workv1.ManifestWork) { w.OwnerReferences = nil }), policyAgentWorks + orElse + policyWorkOwners},
	})
	require.NoError(t, shared.admin.Create(t.Context(), owned, client.DryRunAll), "a person may")
}

// Shows: security/specs-of-works
func TestAnAgentCannotChangeTheWorksThatItIsGiven(t *testing.T) {
	work := &workv1.ManifestWork{ObjectMeta: in("cluster10", "addon-hello-deploy-0")}
	suite.Eventually(t, func() error { return shared.admin.Get(t.Context(), client.ObjectKeyFromObject(work), work.DeepCopy()) })
	edit := func(change func(*workv1.ManifestWork)) attempt { return update(work, change) }
	refuse(t, map[string]misuse{
		"it chooses an executor": {agent10, edit(func(w *workv1.ManifestWork) {
			w.Spec.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
				Type:           workv1.ExecutorSubjectTypeServiceAccount,
				ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: "a", Name: "b"},
			}}
		}), policyAgentWorks + orElse + "manifestwork-executors.spokelet.io"},
		"it removes a manifest":         {agent10, edit(func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = nil }), policyAgentWorks},
		"it keeps what it was given":    {agent10, edit(func(w *workv1.ManifestWork) { w.Spec.DeleteOption = orphan() }), policyAgentWorks},
		"it asks for other reports":     {agent10, change(work.DeepCopy(), `{"spec":{"manifestConfigs":[]}}`), policyAgentWorks},
		"it limits its life by a patch": {agent10, change(work.DeepCopy(), `{"spec":{"deleteOption":{"ttlSecondsAfterFinished":1}}}`), policyAgentWorks},
	})
	require.NoError(t, edit(func(w *workv1.ManifestWork) {
		w.Finalizers = append(w.Finalizers, "cluster.open-cluster-management.io/manifest-work-cleanup")
	})(t.Context(), shared.clients[agent10]), "finalizers it writes")
	require.NoError(t, edit(func(w *workv1.ManifestWork) { w.Finalizers = nil })(t.Context(), shared.clients[agent10]))
}

func orphan() *workv1.DeleteOption {
	return &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
}

// configsOf is an add-on of cluster1 that names configurations.
func configsOf(configs ...addonv1alpha1.AddOnConfig) *addonv1alpha1.ManagedClusterAddOn {
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in("cluster1", "tenants")}
	addOn.Spec.Configs = configs
	return addOn
}

// configOf is an entry for a configuration.
func configOf(group, resource, namespace, name string) addonv1alpha1.AddOnConfig {
	return addonv1alpha1.AddOnConfig{
		ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: group, Resource: resource},
		ConfigReferent:      addonv1alpha1.ConfigReferent{Namespace: namespace, Name: name},
	}
}

// Shows: security/configurations-of-others
func TestTheAdministratorOfANamespaceCannotUseTheConfigurationsOfOthers(t *testing.T) {
	const group, deployment = "addon.open-cluster-management.io", "addondeploymentconfigs"
	own := func(i int) addonv1alpha1.AddOnConfig {
		return configOf(group, deployment, "cluster1", fmt.Sprint("own-", i))
	}
	proxy := configOf(group, deployment, "shared", "proxy")
	add := func(configs ...addonv1alpha1.AddOnConfig) attempt {
		return update(configsOf(), func(a *addonv1alpha1.ManagedClusterAddOn) { a.Spec.Configs = append(a.Spec.Configs, configs...) })
	}
	stands := configsOf(configOf(group, deployment, "shared", "by-a-person"), own(0))
	require.NoError(t, shared.admin.Create(t.Context(), stands))
	t.Cleanup(func() { _ = shared.admin.Delete(context.WithoutCancel(t.Context()), stands) })
	refuse(t, map[string]misuse{
		"it names one with a new add-on": {namespaceAdmin, func(ctx context.Context, c client.Client) error {
			other := configsOf(proxy)
			other.Name = "tenants-2"
			return c.Create(ctx, other)
		}, policyConfigurations},
		"it adds one":                {namespaceAdmin, add(proxy), policyConfigurations},
		"it adds a template":         {namespaceAdmin, add(configOf(group, "addontemplates", "", "hello")), policyConfigurations},
		"it adds a Secret":           {namespaceAdmin, add(configOf("", "secrets", "shared", "any")), policyConfigurations},
		"it adds one behind others":  {namespaceAdmin, add(own(1), own(2), proxy), policyConfigurations},
		"it turns its own into that": {namespaceAdmin, update(configsOf(), func(a *addonv1alpha1.ManagedClusterAddOn) { a.Spec.Configs[1].Namespace = "shared" }), policyConfigurations},
		"it turns that of a person into it": {namespaceAdmin, update(configsOf(), func(a *addonv1alpha1.ManagedClusterAddOn) { a.Spec.Configs[0].Name = "proxy" }),
			policyConfigurations},
	})

	may := shared.clients[namespaceAdmin]
	require.NoError(t, add(own(1), own(2))(t.Context(), may), "those of its own namespace it may add")
	require.NoError(t, update(configsOf(), func(a *addonv1alpha1.ManagedClusterAddOn) {
		slices.Reverse(a.Spec.Configs)
		a.Labels = map[string]string{"a": "b"}
	})(t.Context(), may), "and leave the others where they are")
	require.NoError(t, add(proxy)(t.Context(), shared.clients[author]), "who may read it may name it")

	var many []addonv1alpha1.AddOnConfig
	for i := range 65 {
		many = append(many, own(i+100))
	}
	err := add(many...)(t.Context(), may)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, "spec.configs may have 64 entries")
}

// Shows: security/configurations-of-others
func TestEachOfTenNewConfigurationsIsAskedFor(t *testing.T) {
	const group, deployment = "addon.open-cluster-management.io", "addondeploymentconfigs"
	shared10 := func(last addonv1alpha1.AddOnConfig, at, n int) *addonv1alpha1.ManagedClusterAddOn {
		var all []addonv1alpha1.AddOnConfig
		for i := range n {
			if i == at {
				all = append(all, last)
				continue
			}
			all = append(all, configOf(group, deployment, "shared", fmt.Sprint(i)))
		}
		addOn := configsOf(all...)
		addOn.Name = "tenants-ten"
		return addOn
	}
	readable, secret := configOf(group, deployment, "shared", "x"), configOf("", "secrets", "shared", "any")
	as := shared.clients[author]
	require.NoError(t, as.Create(t.Context(), shared10(readable, 0, 10), client.DryRunAll))
	for at := range 10 {
		err := as.Create(t.Context(), shared10(secret, at, 10), client.DryRunAll)
		require.True(t, apierrors.IsForbidden(err), "entry %d: %v", at, err)
	}
	err := as.Create(t.Context(), shared10(readable, 0, 11), client.DryRunAll)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, "one write may add ten")
}
