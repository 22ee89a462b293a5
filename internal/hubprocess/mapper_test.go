package hubprocess

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// counting counts the questions to a RESTMapper.
type counting struct {
	meta.RESTMapper
	asked int
}

func (c *counting) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	c.asked++
	return c.RESTMapper.RESTMapping(kind, versions...)
}

func TestTheResourcesOfOurKindsAreRemembered(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, appsv1.AddToScheme(scheme))
	revision, foreign := appsv1.SchemeGroupVersion.WithKind("ControllerRevision"),
		schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	served := meta.NewDefaultRESTMapper([]schema.GroupVersion{revision.GroupVersion()})
	below := &counting{RESTMapper: served}
	mapper := &steadyMapper{RESTMapper: below, scheme: scheme}
	ask := func(kind schema.GroupVersionKind) error {
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err == nil {
			assert.Equal(t, kind, mapping.GroupVersionKind)
		}
		return err
	}

	for range 2 {
		assert.True(t, meta.IsNoMatchError(ask(revision)), "what is not served yet is asked for again")
	}
	assert.Equal(t, 2, below.asked)
	served.Add(revision, meta.RESTScopeNamespace)
	served.Add(foreign, meta.RESTScopeRoot)
	for range 3 {
		require.NoError(t, ask(revision))
	}
	assert.Equal(t, 3, below.asked)
	for range 3 {
		require.NoError(t, ask(foreign))
	}
	assert.Equal(t, 6, below.asked, "a kind of somebody else may change its scope")
	mapping, err := mapper.RESTMapping(revision.GroupKind())
	require.NoError(t, err)
	assert.Equal(t, revision, mapping.GroupVersionKind, "any version")
	assert.Equal(t, 7, below.asked)
}
