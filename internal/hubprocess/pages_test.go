package hubprocess

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// olderServer is an API server that streams no lists. It counts pages and knows how many objects nobody has trimmed.
type olderServer struct {
	objects                []certificatesv1.CertificateSigningRequest
	pages, untrimmed, most int
	fails                  error
}

func (s *olderServer) list(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if s.fails != nil {
		return nil, s.fails
	}
	all := &certificatesv1.CertificateSigningRequestList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	from, _ := strconv.Atoi(o.Continue)
	to := len(s.objects)
	if o.Limit > 0 && o.ResourceVersion != "0" { // from its memory it gives all at once
		to = min(to, from+int(o.Limit))
	}
	for n := range s.objects[from:to] {
		all.Items = append(all.Items, *s.objects[from+n].DeepCopy())
	}
	if to < len(s.objects) {
		all.Continue = strconv.Itoa(to)
	}
	s.pages++
	s.untrimmed += len(all.Items)
	s.most = max(s.most, s.untrimmed)
	return all, nil
}

func (s *olderServer) follow(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if o.SendInitialEvents != nil {
		return nil, apierrors.NewInvalid(certificatesv1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", nil)
	}
	return watch.NewFake(), nil
}

func (s *olderServer) trim(in any) (any, error) {
	if r, ok := in.(*certificatesv1.CertificateSigningRequest); ok && r.Annotations != nil {
		r.Annotations = nil
		s.untrimmed--
	}
	return in, nil
}

// fill runs an informer until its cache is filled.
func fill(t *testing.T, informer cache.SharedIndexInformer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan struct{})
	go func() { defer close(done); informer.RunWithContext(ctx) }()
	require.True(t, cache.WaitForCacheSync(ctx.Done(), informer.HasSynced))
	cancel()
	<-done
}

// TestACacheNeverHoldsMoreThanAPageThatIsNotTrimmed fills the cache of an informer from an API server that streams no
// lists.
// Shows: security/lists-in-pages
func TestACacheNeverHoldsMoreThanAPageThatIsNotTrimmed(t *testing.T) {
	s := &olderServer{}
	const flood = 5*listPage + 1
	for n := range flood {
		s.objects = append(s.objects, certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{
			Name: "r" + strconv.Itoa(n), Annotations: map[string]string{"a": strings.Repeat("x", 1000)},
		}})
	}
	informer := InPages(cache.NewSharedIndexInformer)(
		&cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.follow},
		&certificatesv1.CertificateSigningRequest{}, 0, cache.Indexers{})
	require.NoError(t, informer.SetTransform(s.trim))
	fill(t, informer)
	kept := informer.GetStore().List()
	require.Len(t, kept, flood)
	for _, one := range kept {
		r, ok := one.(*certificatesv1.CertificateSigningRequest)
		require.True(t, ok)
		assert.Empty(t, r.Annotations)
	}
	assert.Equal(t, 6, s.pages)
	assert.Equal(t, listPage, s.most)
	assert.Equal(t, "7", informer.LastSyncResourceVersion())
}

// A cache asks for one object to see whether its API server went back to an earlier state.
func TestAListOfOneObjectReadsNoMore(t *testing.T) {
	s := &olderServer{objects: make([]certificatesv1.CertificateSigningRequest, 5*listPage)}
	p := &pages{from: cache.ToListerWatcherWithContext(&cache.ListWatch{ListWithContextFunc: s.list})}
	_, err := p.list(t.Context(), metav1.ListOptions{Limit: 1})
	require.NoError(t, err)
	assert.Equal(t, 1, s.pages)
	assert.Equal(t, 1, s.untrimmed)
}

func TestAListThatFailsKeepsItsCause(t *testing.T) {
	gone := apierrors.NewResourceExpired("too old")
	p := &pages{from: cache.ToListerWatcherWithContext(
		&cache.ListWatch{ListWithContextFunc: (&olderServer{fails: gone}).list})}
	_, err := p.list(t.Context(), metav1.ListOptions{ResourceVersion: "0", Limit: 500})
	assert.True(t, apierrors.IsResourceExpired(err), "the reflector starts again")

	s := &olderServer{objects: make([]certificatesv1.CertificateSigningRequest, 1)}
	p = &pages{from: cache.ToListerWatcherWithContext(&cache.ListWatch{ListWithContextFunc: s.list})}
	broken := errors.New("broken")
	trim := cache.TransformFunc(func(any) (any, error) { return nil, broken })
	p.trim.Store(&trim)
	_, err = p.list(t.Context(), metav1.ListOptions{})
	assert.ErrorIs(t, err, broken)
}

// A configuration may take sixty times its bytes until it is trimmed.
func TestPagesOfConfigurationsAreSmall(t *testing.T) {
	limits := map[int64]bool{}
	list := func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
		limits[o.Limit] = true
		all := &unstructured.UnstructuredList{Items: make([]unstructured.Unstructured, 1)}
		all.Items[0].Object = map[string]any{"metadata": map[string]any{"name": "a" + o.Continue}}
		if o.Continue == "" {
			all.SetContinue("b")
		}
		all.SetResourceVersion("7")
		return all, nil
	}
	informer := InPages(cache.NewSharedIndexInformer)(
		&cache.ListWatch{ListWithContextFunc: list, WatchFuncWithContext: (&olderServer{}).follow},
		&unstructured.Unstructured{}, 0, cache.Indexers{})
	fill(t, informer)
	assert.Len(t, informer.GetStore().List(), 2)
	assert.Equal(t, map[int64]bool{configPage: true}, limits)
}
