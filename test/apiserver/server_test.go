package apiserver

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// clientOf returns a client of a server.
func clientOf(t *testing.T, s *Server) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://memory", Transport: s.Transport("jane"), QPS: -1})
	require.NoError(t, err)
	return client
}

// configMap is one with a value.
func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Data: map[string]string{"k": value}}
}

func TestAnInformerFollowsADayOfEditsInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		client := clientOf(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		factory := informers.NewSharedInformerFactory(client, 0)
		informer := factory.Core().V1().ConfigMaps()
		deleted := 0
		_, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(any) { deleted++ }})
		require.NoError(t, err)
		factory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())
		maps := client.CoreV1().ConfigMaps("default")
		_, err = maps.Create(ctx, configMap("kept", "0"), metav1.CreateOptions{})
		require.NoError(t, err)
		for hour := range 24 {
			time.Sleep(time.Hour)
			_, err := maps.Update(ctx, configMap("kept", fmt.Sprint(hour)), metav1.UpdateOptions{})
			require.NoError(t, err)
			_, err = maps.Create(ctx, configMap("short", ""), metav1.CreateOptions{})
			require.NoError(t, err)
			require.NoError(t, maps.Delete(ctx, "short", metav1.DeleteOptions{}))
			synctest.Wait()
			seen, err := informer.Lister().ConfigMaps("default").Get("kept")
			require.NoError(t, err)
			assert.Equal(t, fmt.Sprint(hour), seen.Data["k"])
		}
		assert.Equal(t, 24, deleted)
		cancel()
		factory.Shutdown()
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, one := range s.tables {
			assert.Empty(t, one.watches, "nothing is left of watches that ended")
		}
	})
}

func TestAVersionIsForgottenAfterSomeChanges(t *testing.T) {
	s := New(Options{Keep: 10})
	maps := clientOf(t, s).CoreV1().ConfigMaps("default")
	first, err := maps.Create(t.Context(), configMap("a", "0"), metav1.CreateOptions{})
	require.NoError(t, err)
	from := func(version string) watch.Event {
		events, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
		require.NoError(t, err)
		defer events.Stop()
		return <-events.ResultChan()
	}
	last := first
	for i := range 30 {
		before := last
		last, err = maps.Update(t.Context(), configMap("a", fmt.Sprint("v", i)), metav1.UpdateOptions{})
		require.NoError(t, err)
		if i == 5 {
			event := from(first.ResourceVersion)
			assert.Equal(t, watch.Modified, event.Type, "all are kept still")
		}
		event := from(before.ResourceVersion)
		require.Equal(t, watch.Modified, event.Type)
		assert.Equal(t, last, event.Object, "a watch goes on where it was")
	}
	event := from(first.ResourceVersion)
	assert.Equal(t, watch.Error, event.Type)
	assert.True(t, apierrors.IsResourceExpired(apierrors.FromObject(event.Object)), "%v", event.Object)
}

func TestPagesOfAListShowOneState(t *testing.T) {
	maps := clientOf(t, New(Options{})).CoreV1().ConfigMaps("default")
	for i := range 5 {
		_, err := maps.Create(t.Context(), configMap(fmt.Sprint("c", i), ""), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	var names []string
	options := metav1.ListOptions{Limit: 2}
	for {
		page, err := maps.List(t.Context(), options)
		require.NoError(t, err)
		for i := range page.Items {
			names = append(names, page.Items[i].Name)
		}
		_ = maps.Delete(t.Context(), "c3", metav1.DeleteOptions{}) // after the first page
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	assert.Equal(t, []string{"c0", "c1", "c2", "c3", "c4"}, names[:5])
}

func TestAWriteThatOnlyTakesFieldsAwayHasNoTime(t *testing.T) {
	of := func(labels, status map[string]any) object {
		return object{"metadata": map[string]any{"name": "a", "labels": labels}, "status": status}
	}
	had := of(map[string]any{"one": "1", "two": "2"}, nil)
	had.setMeta("managedFields", []any{entryOf("", time.Unix(1, 0))})
	for sentence, tc := range map[string]struct {
		after       object
		subresource string
		want        []any
	}{
		"a label that is taken off":       {of(map[string]any{"one": "1"}, nil), "", []any{entryOf("", time.Unix(1, 0))}},
		"a label with another value":      {of(map[string]any{"one": "2"}, nil), "", []any{entryOf("", time.Unix(2, 0))}},
		"a label that is put on":          {of(map[string]any{"one": "1", "two": "2", "three": "3"}, nil), "", []any{entryOf("", time.Unix(2, 0))}},
		"a status beside the rest":        {of(map[string]any{"one": "1", "two": "2"}, map[string]any{"ready": "1"}), "status", []any{entryOf("", time.Unix(1, 0)), entryOf("status", time.Unix(2, 0))}},
		"what only the API server counts": {of(map[string]any{"one": "1", "two": "2"}, nil), "", []any{entryOf("", time.Unix(1, 0))}},
	} {
		t.Run(sentence, func(t *testing.T) {
			tc.after.setMeta("generation", int64(7))
			tc.after.setMeta("managedFields", []any{map[string]any{"manager": "liar"}})
			noteWritten(had, tc.after, tc.subresource, time.Unix(2, 0))
			metadata, _ := tc.after["metadata"].(map[string]any)
			assert.Equal(t, tc.want, metadata["managedFields"])
		})
	}
}
