package attacks_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	policyAnnotations = "managedcluster-addon-annotations.spokelet.io"
	policyHosts       = "managedclusteraddon-hosts.spokelet.io"
	policyOfAddOns    = "manifestwork-addon-namespaces.spokelet.io"

	annotationHost    = "addon.open-cluster-management.io/hosting-cluster-name"
	annotationMirrors = "open-cluster-management.io/image-registries"
	annotationValues  = "addon.open-cluster-management.io/values"
	annotationHosts   = "addon.spokelet.io/hosts"
	labelAddOnCluster = "open-cluster-management.io/addon-namespace"
	labelAddOn        = "open-cluster-management.io/addon-name"
)

// noted updates an object with one more annotation, as agents write: without patch, and once more after a conflict, for
// the hub manager writes the same objects.
func noted(o client.Object, key, value string) attempt {
	return func(ctx context.Context, c client.Client) error {
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
			annotations := map[string]string{key: value}
			for known, had := range o.GetAnnotations() {
				if known != key {
					annotations[known] = had
				}
			}
			o.SetAnnotations(annotations)
			return c.Update(ctx, o, client.DryRunAll)
		})
	}
}

// withAnnotation returns metadata with an annotation.
func withAnnotation(meta metav1.ObjectMeta, key, value string) metav1.ObjectMeta {
	meta.Annotations = map[string]string{key: value}
	return meta
}

// workOf returns a work that passes for one of an add-on of a cluster.
func workOf(namespace, cluster string) *workv1.ManifestWork {
	work := &workv1.ManifestWork{ObjectMeta: in(namespace, "addon-hello-pre-delete-hosting-"+cluster)}
	work.Labels = map[string]string{labelAddOn: "hello", labelAddOnCluster: cluster}
	return work
}

// refusalsOfHosting are what leads from one cluster to another. The administrator of the namespace of cluster1 is the
// attacker here, and cluster10 the victim.
func refusalsOfHosting() map[string]misuse {
	own := func() client.Object { return &clusterv1.ManagedCluster{ObjectMeta: in("", "cluster10")} }
	hello := func() client.Object { return &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in("cluster1", "hello")} }
	alpha := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: withAnnotation(in("cluster1", "hosted"), annotationHost, "cluster10")}
	beta := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: withAnnotation(in("cluster1", "hosted"), annotationHost, "cluster10")}
	cluster := func(key, value string) client.Object {
		return &clusterv1.ManagedCluster{ObjectMeta: withAnnotation(in("", "yet-another"), key, value)}
	}
	return map[string]misuse{
		"names a hosting cluster for its add-ons":        {agent10, noted(own(), annotationHost, "cluster1"), policyAnnotations},
		"chooses image mirrors":                          {agent10, noted(own(), annotationMirrors, "{}"), policyAnnotations},
		"chooses values of its add-ons":                  {agent10, noted(own(), annotationValues, "{}"), policyAnnotations},
		"consents to host others":                        {agent10, noted(own(), annotationHosts, "*"), policyAnnotations},
		"creates a cluster with a hosting cluster":       {bootstrap, create(cluster(annotationHost, "cluster1")), policyAnnotations},
		"creates a cluster with mirrors":                 {bootstrap, create(cluster(annotationMirrors, "{}")), policyAnnotations},
		"creates a cluster that hosts":                   {bootstrap, create(cluster(annotationHosts, "*")), policyAnnotations},
		"has an add-on hosted elsewhere":                 {namespaceAdmin, noted(hello(), annotationHost, "cluster10"), policyHosts},
		"creates an add-on that is hosted elsewhere":     {namespaceAdmin, create(alpha), policyHosts},
		"creates one of the other version":               {namespaceAdmin, create(beta), policyHosts},
		"creates a work of an add-on of another cluster": {namespaceAdmin, create(workOf("cluster1", "cluster10")), policyOfAddOns},
		"labels its work as one of another cluster's add-on": {namespaceAdmin, func(ctx context.Context, c client.Client) error {
			work := workOf("cluster1", "cluster10")
			work.Name, work.Labels = "plain", nil
			if err := client.IgnoreAlreadyExists(c.Create(ctx, work)); err != nil {
				return err
			}
			return change(&workv1.ManifestWork{ObjectMeta: in("cluster1", "plain")}, `{"metadata":{"labels":{"`+labelAddOnCluster+`":"cluster10"}}}`)(ctx, c)
		}, policyOfAddOns},
	}
}

// Shows: security/cross-cluster-writes
func TestNobodyWritesWhatLeadsToAnotherCluster(t *testing.T) {
	for sentence, m := range refusalsOfHosting() {
		t.Run(string(m.as)+" "+sentence, func(t *testing.T) {
			err := m.try(t.Context(), shared.clients[m.as])
			require.True(t, apierrors.IsForbidden(err), "the answer is %v", err)
			assert.Contains(t, err.Error(), "ValidatingAdmissionPolicy '"+m.by+"'")
			assert.Contains(t, err.Error(), "An administrator of the hub grants it")
		})
	}
	for sentence, m := range map[string]misuse{
		"writes another annotation of its cluster": {as: agent10, try: noted(
			&clusterv1.ManagedCluster{ObjectMeta: in("", "cluster10")}, "agent.open-cluster-management.io/x", "y")},
		"has an add-on hosted on its own cluster": {as: namespaceAdmin, try: noted(
			&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in("cluster1", "hello")}, annotationHost, "cluster1")},
		"labels a work as one of its own add-ons": {as: namespaceAdmin, try: func(ctx context.Context, c client.Client) error {
			return c.Create(ctx, workOf("cluster1", "cluster1"), client.DryRunAll)
		}},
	} {
		t.Run(string(m.as)+" "+sentence, func(t *testing.T) {
			assert.NoError(t, m.try(t.Context(), shared.clients[m.as]))
		})
	}
}
