package watch

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// reading is a Named for requests whose watches the test plays, and the number of reads that reached the API server.
type reading struct {
	*Named
	t     *testing.T
	reads int
}

func newReading(t *testing.T) *reading {
	t.Helper()
	r := &reading{t: t}
	api := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(
			ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, o ...client.GetOption,
		) error {
			r.reads++
			return c.Get(ctx, key, into, o...)
		},
	})
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	t.Cleanup(queue.ShutDown)
	r.Named = &Named{
		client: api, kind: certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest"), queue: queue,
		changed: NewTrigger(), waiting: map[ctrl.Request][]string{}, watched: map[string]*named{},
	}
	require.NoError(t, api.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "one", UID: "uid"},
	}))
	return r
}

// read reads the request and returns it with the number of reads that this took.
func (r *reading) read() (*certificatesv1.CertificateSigningRequest, int) {
	r.t.Helper()
	before, request := r.reads, &certificatesv1.CertificateSigningRequest{}
	require.NoError(r.t, r.Get(r.t.Context(), client.ObjectKey{Name: "one"}, request))
	return request, r.reads - before
}

// watch begins a watch of the request that shows nothing yet.
func (r *reading) watch() *named {
	r.start("one")
	return r.watched["one"]
}

func TestAWatchedObjectIsReadAgainOnlyAfterAChange(t *testing.T) {
	r := newReading(t)
	for range 2 {
		_, sent := r.read()
		assert.Equal(t, 1, sent, "nothing watches it")
	}
	watched := r.watch()
	request, sent := r.read()
	assert.Equal(t, 1, sent, "the watch has shown nothing")
	watched.Replace(t.Context(), []client.Object{request}, "")
	again, sent := r.read()
	assert.Zero(t, sent)
	assert.Equal(t, request, again)
	again.Labels = map[string]string{"changed": "by the reader"}
	again, _ = r.read()
	assert.Empty(t, again.Labels, "each reader gets a copy")

	changed := request.DeepCopy()
	changed.Labels = map[string]string{"changed": "on the hub"}
	require.NoError(t, r.client.Update(t.Context(), changed))
	watched.Update(t.Context(), changed)
	again, sent = r.read()
	assert.Equal(t, 1, sent)
	assert.Equal(t, changed.Labels, again.Labels)
	_, sent = r.read()
	assert.Zero(t, sent)
}

func TestAnObjectThatIsNotShownIsReadAgain(t *testing.T) {
	tests := map[string]func(watched *named, request *certificatesv1.CertificateSigningRequest){
		"it was deleted": func(watched *named, request *certificatesv1.CertificateSigningRequest) {
			watched.Delete(context.Background(), request)
		},
		"a list without it": func(watched *named, _ *certificatesv1.CertificateSigningRequest) {
			watched.Replace(context.Background(), nil, "")
		},
		"the watch failed": func(watched *named, _ *certificatesv1.CertificateSigningRequest) { watched.show(nil) },
		"the watch ended":  func(watched *named, _ *certificatesv1.CertificateSigningRequest) { watched.end() },
		"it was made again with the same version": func(
			watched *named, request *certificatesv1.CertificateSigningRequest,
		) {
			request.UID = "another"
			watched.Update(context.Background(), request)
		},
	}
	for name, happens := range tests {
		t.Run(name, func(t *testing.T) {
			r := newReading(t)
			watched := r.watch()
			request, _ := r.read()
			watched.Replace(t.Context(), []client.Object{request}, "")
			happens(watched, request)
			_, sent := r.read()
			assert.Equal(t, 1, sent)
		})
	}
}

func TestWhatEndedIsForgotten(t *testing.T) {
	r := newReading(t)
	former := r.watch()
	next := r.watch()
	former.end()
	assert.Same(t, next, r.watched["one"], "the end of a former watch does not end the next one")
	next.end()
	assert.Empty(t, r.watched)
}
