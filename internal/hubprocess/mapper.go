package hubprocess

import (
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// newMapper returns a function that makes the RESTMapper of a manager.
func newMapper(scheme *runtime.Scheme) func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	return func(cfg *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
		mapper, err := apiutil.NewDynamicRESTMapper(cfg, httpClient)
		if err != nil {
			return nil, fmt.Errorf("building the mapper from kinds to resources: %w", err)
		}
		return &steadyMapper{RESTMapper: mapper, scheme: scheme}, nil
	}
}

// steadyMapper is a RESTMapper that remembers the resources of the kinds of its scheme: a manager ends when the hub no
// longer serves one of them. A cache of one namespace asks for the scope of the kind with every read, and finding it
// again took a twelfth of all that a start allocates.
type steadyMapper struct {
	meta.RESTMapper
	scheme *runtime.Scheme
	// known has a *meta.RESTMapping for each schema.GroupVersionKind that was found.
	known sync.Map
}

// RESTMapping implements meta.RESTMapper.
func (m *steadyMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) != 1 || !m.scheme.Recognizes(kind.WithVersion(versions[0])) {
		return m.RESTMapper.RESTMapping(kind, versions...) //nolint:wrapcheck // it is the answer of the library
	}
	known, found := m.known.Load(kind.WithVersion(versions[0]))
	if mapping, isMapping := known.(*meta.RESTMapping); found && isMapping {
		return mapping, nil
	}
	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	if err != nil {
		return nil, err //nolint:wrapcheck // callers ask whether there is no match
	}
	m.known.Store(kind.WithVersion(versions[0]), mapping)
	return mapping, nil
}
