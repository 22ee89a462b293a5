package manifest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"
)

// mapper serves a few kinds.
func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	m.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	m.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	return m
}

// read parses and resolves manifests.
func read(t *testing.T, raws ...string) []Manifest {
	t.Helper()
	return readWith(t, mapper(), raws...)
}

// readWith is read with another mapper.
func readWith(t *testing.T, kinds meta.RESTMapper, raws ...string) []Manifest {
	t.Helper()
	spec := &workv1.ManifestWorkSpec{}
	var list []Manifest
	for i, raw := range raws {
		spec.Workload.Manifests = append(spec.Workload.Manifests,
			workv1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(raw)}})
		list = append(list, Parse(i, []byte(raw)))
	}
	for i := range list {
		if list[i].Retriable() {
			list[i].Resolve(kinds, spec, usable)
		}
	}
	return list
}

// usable takes all condition rules.
func usable(_ schema.GroupVersionKind, rules []workv1.ConditionRule) ([]workv1.ConditionRule, []string) {
	return rules, nil
}

// configMap is the manifest of a ConfigMap in the namespace ns.
const configMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"ns"}}`

// Shows: work/manifest-read
func TestReadManifest(t *testing.T) {
	for name, c := range map[string]struct {
		raw     string
		failure string
		mapped  bool
		meta    workv1.ManifestResourceMeta
	}{
		"an object": {
			raw: configMap, mapped: true,
			meta: workv1.ManifestResourceMeta{
				Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespace: "ns", Name: "x",
			},
		},
		"an object of the cluster loses a namespace": {
			raw:    `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"x","namespace":"y"}}`,
			mapped: true,
			meta:   workv1.ManifestResourceMeta{Version: "v1", Kind: "Namespace", Resource: "namespaces", Name: "x"},
		},
		"a namespace that is missing": {
			raw: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`, mapped: true,
			failure: "has no metadata.namespace",
			meta:    workv1.ManifestResourceMeta{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Name: "x"},
		},
		"a kind that is not served": {
			raw:     `{"apiVersion":"x.example/v1","kind":"X","metadata":{"name":"x"}}`,
			failure: `the server doesn't have a resource type "X"`,
			meta:    workv1.ManifestResourceMeta{Group: "x.example", Version: "v1", Kind: "X", Name: "x"},
		},
		"no JSON":       {raw: `{`, failure: "cannot be decoded"},
		"no object":     {raw: `[]`, failure: "cannot be decoded"},
		"null":          {raw: `null`, failure: "cannot be decoded"},
		"no kind":       {raw: `{"apiVersion":"v1","metadata":{"name":"x"}}`, failure: "cannot be decoded"},
		"no apiVersion": {raw: `{"kind":"ConfigMap","metadata":{"name":"x"}}`, failure: "needs apiVersion and kind"},
		"no name":       {raw: `{"apiVersion":"v1","kind":"ConfigMap"}`, failure: "no metadata.name"},
		"a generated name": {
			raw:     `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"x-"}}`,
			failure: "metadata.generateName",
		},
		"a name that no client asks for": {
			raw:     `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a%b","namespace":"ns"}}`,
			failure: "metadata.name may not contain '%'", mapped: true,
			meta: workv1.ManifestResourceMeta{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespace: "ns", Name: "a%b"},
		},
		"a namespace that no client asks for": {
			raw:     `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"../y"}}`,
			failure: "metadata.namespace may not contain '/'", mapped: true,
			meta: workv1.ManifestResourceMeta{
				Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespace: "../y", Name: "x",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := read(t, c.raw)[0]
			assert.Equal(t, c.mapped, m.Mapped())
			assert.Equal(t, c.meta, m.Meta())
			if c.failure == "" {
				require.NoError(t, m.Err)
				return
			}
			assert.ErrorContains(t, m.Err, c.failure)
		})
	}
}

// Shows: work/discovery-error
func TestADuplicateIsRefused(t *testing.T) {
	const hpa = `{"apiVersion":"autoscaling/%s","kind":"HorizontalPodAutoscaler","metadata":{"name":"x","namespace":"%s"}}`
	for name, c := range map[string]struct {
		manifests []string
		fails     map[int]string
	}{
		"two versions of one object": {
			[]string{fmt.Sprintf(hpa, "v1", "ns"), configMap, fmt.Sprintf(hpa, "v2", "ns")},
			map[int]string{2: "duplicate manifest for resource ns/x with resource type autoscaling/v2.HorizontalPodAutoscaler: " +
				"the manifest with the ordinal 0 means the same object, as autoscaling/v1; remove one of them"},
		},
		"the same twice, and again": {
			[]string{configMap, configMap, configMap},
			map[int]string{
				1: "duplicate manifest for resource ns/x with resource type v1.ConfigMap: the manifest with the ordinal 0",
				2: "ordinal 0",
			},
		},
		"another namespace is another object": {[]string{fmt.Sprintf(hpa, "v1", "ns"), fmt.Sprintf(hpa, "v2", "other")}, nil},
		"a version that is not served means nothing": {
			[]string{fmt.Sprintf(hpa, "v9", "ns"), fmt.Sprintf(hpa, "v2", "ns")},
			map[int]string{0: "the server doesn't have a resource type"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			versions := []schema.GroupVersion{{Version: "v1"}, {Group: "autoscaling", Version: "v1"}, {Group: "autoscaling", Version: "v2"}}
			kinds := meta.NewDefaultRESTMapper(versions)
			kinds.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
			for _, version := range versions[1:] {
				kinds.Add(version.WithKind("HorizontalPodAutoscaler"), meta.RESTScopeNamespace)
			}
			list := readWith(t, kinds, c.manifests...)
			for range 2 { // the second time is that of a later pass
				RefuseDuplicates(list)
				for i, m := range list {
					if c.fails[i] == "" {
						require.NoError(t, m.Err)
					} else {
						require.ErrorContains(t, m.Err, c.fails[i])
					}
				}
			}
		})
	}
	list := read(t, configMap, configMap)
	RefuseDuplicates(list)
	require.Error(t, list[1].Err)
	list[0] = list[0].Unserve()
	RefuseDuplicates(list)
	require.NoError(t, list[1].Err, "when the first means nothing any more, the second counts")
}

func TestMapperErrorsAreTold(t *testing.T) {
	m := Parse(0, []byte(configMap))
	spec := &workv1.ManifestWorkSpec{}
	m.Resolve(brokenMapper{}, spec, usable)
	require.ErrorContains(t, m.Err, "discovery is down")
	assert.False(t, m.Unserved())
	assert.True(t, m.Retriable())
}

// brokenMapper cannot answer.
type brokenMapper struct{ meta.RESTMapper }

func (brokenMapper) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, errors.New("discovery is down")
}

func TestTheDesiredDigestFollowsItsInputs(t *testing.T) {
	raw := []byte(configMap)
	m := read(t, configMap)[0]
	base := desiredDigest(&m, raw)
	assert.Equal(t, base, desiredDigest(&m, raw))
	assert.NotEqual(t, base, desiredDigest(&m, append(raw, ' ')))
	other := m
	other.Options.Owned = !m.Options.Owned
	assert.NotEqual(t, base, desiredDigest(&other, raw))
	other = m
	other.Options.Strategy.Type = workv1.UpdateStrategyTypeCreateOnly
	assert.NotEqual(t, base, desiredDigest(&other, raw))
}
