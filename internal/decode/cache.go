package decode

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// listOption says what a list of a cache does with objects that are unknown.
type listOption int

const (
	// LeaveOut leaves unknown objects out of a list. It is for lists of which a part is as good, such as the objects that
	// an event concerns: it must never make anything look gone.
	LeaveOut listOption = iota + 1
	// Metadata keeps unknown objects in a list. It is for callers that read metadata only, or ask Unknown about each.
	Metadata
)

// ApplyToList implements client.ListOption.
func (listOption) ApplyToList(*client.ListOptions) {}

// newKind returns the decoder of a kind, which decodes as the clients do.
func newKind(scheme *runtime.Scheme, gvk schema.GroupVersionKind) kind {
	return kind{gvk: gvk, decoder: json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme,
		json.SerializerOptions{})}
}

// NewCache returns a cache that goes on without the objects that cannot be decoded; it fits the options of a manager.
func (o *Objects) NewCache(config *rest.Config, opts cache.Options) (cache.Cache, error) {
	if opts.HTTPClient == nil {
		built, err := rest.HTTPClientFor(config)
		if err != nil {
			return nil, fmt.Errorf("building the client of a cache: %w", err)
		}
		opts.HTTPClient = built
	}
	below := opts.HTTPClient.Transport
	if below == nil {
		below = http.DefaultTransport
	}
	wrapped := *opts.HTTPClient
	wrapped.Transport = transport{below}
	opts.HTTPClient, opts.NewInformer = &wrapped, o.constructor(opts.NewInformer)
	c, err := cache.New(config, opts)
	if err != nil {
		return nil, fmt.Errorf("building a cache: %w", err)
	}
	return reader{Cache: c, objects: o}, nil
}

// reader is a cache whose reads fail for unknown objects.
type reader struct {
	cache.Cache
	objects *Objects
}

// Get implements client.Reader.
func (r reader) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if err := r.Cache.Get(ctx, key, into, opts...); err != nil {
		return err // callers ask what error it is
	}
	return r.check(into)
}

// List implements client.Reader.
func (r reader) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	if err := r.Cache.List(ctx, into, opts...); err != nil || !r.objects.seen.Load() {
		return err // likewise
	}
	var how listOption
	for _, option := range opts {
		if given, ok := option.(listOption); ok {
			how = given
		}
	}
	if how == Metadata {
		return nil
	}
	return r.sift(into, how)
}

// sift takes the unknown objects out of a list, or fails for the first of them.
func (r reader) sift(into client.ObjectList, how listOption) error {
	var known []runtime.Object
	total := 0
	err := meta.EachListItem(into, func(item runtime.Object) error {
		total++
		if o, isObject := item.(metav1.Object); isObject {
			if err := r.check(o); err != nil {
				if how == LeaveOut {
					return nil
				}
				return err
			}
		}
		known = append(known, item)
		return nil
	})
	if err != nil || len(known) == total {
		return err // it is our Error
	}
	if err := meta.SetList(into, known); err != nil {
		return fmt.Errorf("leaving objects out of a list: %w", err)
	}
	return nil
}

// check returns an Error for an unknown object.
func (r reader) check(o metav1.Object) error {
	if _, unknown := Unknown(o); !unknown {
		return nil
	}
	kind := ""
	if typed, isObject := o.(runtime.Object); isObject {
		if kinds, _, err := r.objects.Scheme.ObjectKinds(typed); err == nil && len(kinds) > 0 {
			kind = kinds[0].Kind
		}
	}
	return Check(kind, o)
}
