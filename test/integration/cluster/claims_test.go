package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/version"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/suite"
)

const (
	claimDefinition    = "clusterclaims.cluster.open-cluster-management.io"
	propertyDefinition = "clusterproperties.about.k8s.io"
)

// propertyCRD is a definition of ClusterProperty that has what the API has: the names, the versions and the value.
func propertyCRD(version string) []byte {
	return []byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: ` + propertyDefinition + `
  annotations: {api-approved.kubernetes.io: "unapproved, for tests"}
spec:
  group: about.k8s.io
  names: {kind: ClusterProperty, listKind: ClusterPropertyList, plural: clusterproperties, singular: clusterproperty}
  scope: Cluster
  versions:
  - name: ` + version + `
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {value: {type: string, minLength: 1}}}
`)
}

// define installs ClusterProperty in a version until the end of the test.
func define(t *testing.T, version string) {
	t.Helper()
	require.NoError(t, plane.Apply(t.Context(), propertyCRD(version)))
	t.Cleanup(func() { undefine(context.WithoutCancel(t.Context()), t, propertyDefinition) })
}

// undefine removes a definition and waits until it is gone.
func undefine(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
	})
	crd.SetName(name)
	require.NoError(t, client.IgnoreNotFound(plane.Client.Delete(ctx, crd)))
	suite.Eventually(t, func() error {
		if err := plane.Client.Get(ctx, client.ObjectKey{Name: name}, crd); !apierrors.IsNotFound(err) {
			return fmt.Errorf("definition %s is still there: %w", name, err)
		}
		return nil
	})
}

// claim returns a ClusterClaim.
func claim(name, value string) *clusterv1alpha1.ClusterClaim {
	return &clusterv1alpha1.ClusterClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterClaimSpec{Value: value},
	}
}

// property returns a ClusterProperty.
func property(version, name, value string) *unstructured.Unstructured {
	p := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"value": value}}}
	p.SetGroupVersionKind(schema.GroupVersionKind{Group: "about.k8s.io", Version: version, Kind: "ClusterProperty"})
	p.SetName(name)
	return p
}

// spokeOnly keeps a claim or property on the spoke.
func spokeOnly(o client.Object) client.Object {
	o.SetLabels(map[string]string{"open-cluster-management.io/spoke-only": ""})
	return o
}

// create creates claims and properties until the end of the test.
func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		// A definition that has just come is served a moment later.
		suite.Eventually(t, func() error { return plane.Client.Create(t.Context(), o) })
		t.Cleanup(func() { _ = plane.Client.Delete(context.WithoutCancel(t.Context()), o) })
	}
}

// expectClaims waits until exactly these claims are reported, in this order, each written name=value, and the version
// of the agent.
func expectClaims(t *testing.T, want ...string) {
	t.Helper()
	status(t, func(s clusterv1.ManagedClusterStatus) error {
		var have []string
		agent := clusterv1.ManagedClusterClaim{Name: names.ClaimAgentVersion, Value: version.String()}
		if !slices.Contains(s.ClusterClaims, agent) {
			return fmt.Errorf("claims %v have no version of the agent", s.ClusterClaims)
		}
		for _, c := range s.ClusterClaims {
			if c == agent {
				continue
			}
			have = append(have, c.Name+"="+c.Value)
		}
		if fmt.Sprint(have) != fmt.Sprint(want) {
			return fmt.Errorf("claims are %v, want %v", have, want)
		}
		return nil
	})
}

// Shows: registration/claims
func TestClaimsFollowTheClusterClaims(t *testing.T) {
	zone := claim("zone.example.com", "z")
	create(t, zone, claim("id.k8s.io", "i"), spokeOnly(claim("secret.example.com", "s")))
	expectClaims(t, "id.k8s.io=i", "zone.example.com=z")
	before := zone.DeepCopy()
	zone.Spec.Value = "y"
	require.NoError(t, plane.Client.Patch(t.Context(), zone, client.MergeFrom(before)))
	expectClaims(t, "id.k8s.io=i", "zone.example.com=y")
	require.NoError(t, plane.Client.Delete(t.Context(), zone))
	expectClaims(t, "id.k8s.io=i")
}

// Shows: registration/properties
func TestClaimsFollowTheClusterProperties(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		t.Run(version, func(t *testing.T) {
			define(t, version)
			zone := property(version, "zone.example.com", "z")
			create(t, zone, spokeOnly(property(version, "secret.example.com", "s")),
				property(version, "long.example.com", strings.Repeat("x", 1025)))
			expectClaims(t, "zone.example.com=z")
			before := zone.DeepCopy()
			require.NoError(t, unstructured.SetNestedField(zone.Object, "y", "spec", "value"))
			require.NoError(t, plane.Client.Patch(t.Context(), zone, client.MergeFrom(before)))
			expectClaims(t, "zone.example.com=y")
			require.NoError(t, plane.Client.Delete(t.Context(), zone))
			expectClaims(t)
		})
	}
}

// Shows: registration/property-wins
func TestAPropertyWinsOverTheClaimOfItsName(t *testing.T) {
	define(t, "v1alpha1")
	both := property("v1alpha1", "both.example.com", "p")
	create(t, claim("both.example.com", "c"), claim("claim.example.com", "c"), both,
		property("v1alpha1", "property.example.com", "p"))
	expectClaims(t, "both.example.com=p", "claim.example.com=c", "property.example.com=p")
	require.NoError(t, plane.Client.Delete(t.Context(), both))
	expectClaims(t, "both.example.com=c", "claim.example.com=c", "property.example.com=p")
}

// Shows: registration/custom-claims-limited
func TestTooManyClaimsAreCutOffAtTheEnd(t *testing.T) {
	var want []string
	for i := range maxClaims + 2 {
		create(t, claim(fmt.Sprintf("custom%d", i), "v"))
		if i < maxClaims {
			want = append(want, fmt.Sprintf("custom%d=v", i))
		}
	}
	create(t, claim("product.open-cluster-management.io", "p"))
	expectClaims(t, append([]string{"product.open-cluster-management.io=p"}, want...)...)
}

// Shows: registration/reserved-suffix
func TestClaimsWithAReservedSuffixAreAlwaysReported(t *testing.T) {
	var want []string
	for i := range maxClaims + 2 {
		create(t, claim(fmt.Sprintf("a%d", i), "v"))
		if i < maxClaims {
			want = append(want, fmt.Sprintf("a%d=v", i))
		}
	}
	create(t, claim("z"+reservedSuffix, "r"))
	expectClaims(t, append([]string{"z" + reservedSuffix + "=r"}, want...)...)
}

func TestClaimsFollowTheirDefinitionWhileTheAgentRuns(t *testing.T) {
	create(t, claim("zone.example.com", "z"))
	expectClaims(t, "zone.example.com=z")
	undefine(t.Context(), t, claimDefinition)
	expectClaims(t)
	require.NoError(t, plane.Apply(t.Context(), manifests.SpokeCRDs()...))
	create(t, claim("zone.example.com", "y"))
	expectClaims(t, "zone.example.com=y")
}
