package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// pageSize is how many objects the hub sends at a time.
const pageSize = 500

// Hub is the Source that an API server is.
type Hub struct {
	client *rest.RESTClient
	host   string

	once    sync.Once
	version string
	failed  error
}

// NewHub returns the source of a hub.
func NewHub(config *rest.Config) (*Hub, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion = &schema.GroupVersion{}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.AcceptContentTypes, config.ContentType = "application/json", "application/json"
	config.QPS, config.Burst = -1, 0 // The API server has priority and fairness.
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of the hub: %w", err)
	}
	return &Hub{client: client, host: config.Host}, nil
}

// Name implements Source.
func (h *Hub) Name() string { return h.host }

// Version implements Source.
func (h *Hub) Version(ctx context.Context) (string, error) {
	raw, err := answer(ctx, h.client.Get().AbsPath("/version"))
	if err != nil {
		return "", fmt.Errorf("asking the hub for its version: %w: %w", unanswered(err, false), err)
	}
	var v struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return "", fmt.Errorf("decoding the version of the hub: %w", err)
	}
	return v.GitVersion, nil
}

// Pages implements Source.
func (h *Hub) Pages(ctx context.Context, q Query) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		path, err := h.path(ctx, q)
		if err != nil {
			yield(nil, err)
			return
		}
		for more, offered := "", false; ; {
			page, err := answer(ctx, parameters(h.client.Get().AbsPath(path), q, more))
			if other := olderPath(path, q); other != "" && (unconverted(err) || apierrors.IsNotFound(err)) {
				path = other
				continue
			}
			if token := offeredBy(err); token != "" && !offered {
				more, offered = token, true
				continue
			}
			if err != nil {
				yield(nil, err)
				return
			}
			offered = false
			if !yield(page, nil) {
				return
			}
			if more, err = next(page); err != nil {
				yield(nil, err)
				return
			}
			if more == "" {
				return
			}
		}
	}
}

// offeredBy returns the token that an API server offers in place of one that has ended: a list goes on with it, with
// the objects as they are now. Empty for none.
func offeredBy(err error) string {
	var status apierrors.APIStatus
	if !isExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}

// beta and alpha are parts of paths of the two versions of the add-on API.
const (
	beta  = "/apis/" + addonv1beta1.GroupName + "/v1beta1/"
	alpha = "/apis/" + addonv1beta1.GroupName + "/v1alpha1/"
)

// olderPath returns the path of the older version of a resource whose version the source chooses; empty for none. A hub
// may serve some resources of add-ons in the older version alone.
func olderPath(path string, q Query) string {
	if q.Resource.Version != "" || !strings.HasPrefix(path, beta) {
		return ""
	}
	return strings.Replace(path, beta, alpha, 1)
}

// unconverted reports whether the API server cannot convert objects between versions. The hub manager does that, and
// the version that is stored can be read while it does not run.
func unconverted(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "conversion webhook")
}

// answer sends a request. Its error has what the API server says, which that of DoRaw has not.
func answer(ctx context.Context, request *rest.Request) ([]byte, error) {
	result := request.Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// next returns the token of the page that follows; empty after the last one. The metadata stand before the items, which
// are not looked at here.
func next(page []byte) (string, error) {
	tokens := json.NewDecoder(bytes.NewReader(page))
	if _, err := tokens.Token(); err != nil {
		return "", fmt.Errorf("decoding a list: %w", err)
	}
	for tokens.More() {
		key, err := tokens.Token()
		if err != nil {
			return "", fmt.Errorf("decoding a list: %w", err)
		}
		if key == "metadata" {
			var head metav1.ListMeta
			if err := tokens.Decode(&head); err != nil {
				return "", fmt.Errorf("decoding the metadata of a list: %w", err)
			}
			return head.Continue, nil
		}
		var other json.RawMessage
		if err := tokens.Decode(&other); err != nil {
			return "", fmt.Errorf("decoding a list: %w", err)
		}
	}
	return "", nil
}

// path returns the path of a resource.
func (h *Hub) path(ctx context.Context, q Query) (string, error) {
	version := q.Resource.Version
	if q.Resource.Group == addonv1beta1.GroupName && version == "" {
		var err error
		if version, err = h.addOnVersion(ctx); err != nil {
			return "", err
		}
	}
	path := "/apis/" + q.Resource.Group + "/" + version
	if q.Resource.Group == "" {
		path = "/api/" + version
	}
	if q.Resource.Namespaced && q.Namespace != "" {
		path += "/namespaces/" + url.PathEscape(q.Namespace)
	}
	return path + "/" + q.Resource.Plural, nil
}

// addOnVersion returns the version of the add-on API that the hub serves, the newer one where it has both.
func (h *Hub) addOnVersion(ctx context.Context) (string, error) {
	h.once.Do(func() {
		raw, err := answer(ctx, h.client.Get().AbsPath("/apis/"+addonv1beta1.GroupName))
		if err != nil {
			h.failed = err
			return
		}
		var group metav1.APIGroup
		if h.failed = json.Unmarshal(raw, &group); h.failed != nil {
			return
		}
		h.version = "v1alpha1"
		isBeta := func(v metav1.GroupVersionForDiscovery) bool { return v.Version == "v1beta1" }
		if slices.ContainsFunc(group.Versions, isBeta) {
			h.version = "v1beta1"
		}
	})
	return h.version, h.failed
}

// partial is the type of a list of metadata.
const partial = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// selector is the selector of labels of a query; empty for any.
func (q Query) selector() string {
	if len(q.Labels) == 0 {
		return q.Selector
	}
	of := labels.SelectorFromSet(q.Labels).String()
	if q.Selector != "" {
		of += "," + q.Selector
	}
	return of
}

// parameters adds the query of a page to a request.
func parameters(request *rest.Request, q Query, more string) *rest.Request {
	if !q.Whole {
		request.Param("limit", strconv.Itoa(pageSize))
	}
	of := fields.Set{}
	maps.Copy(of, q.Fields)
	if q.Name != "" {
		of[metav1.ObjectNameField] = q.Name
	}
	if len(of) > 0 {
		request.Param("fieldSelector", of.AsSelector().String())
	}
	if selector := q.selector(); selector != "" {
		request.Param("labelSelector", selector)
	}
	if q.Partial {
		request.SetHeader("Accept", partial)
	}
	if more != "" {
		request.Param("continue", more)
	}
	return request
}
