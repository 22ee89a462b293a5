package watch

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
)

// pagedServer is an API server that streams no lists (Kubernetes up to 1.31, and 1.33). It gives pages, and takes a list
// with a limit and a version as one of exactly that version, as each API server does ("Legacy exact match" of
// k8s.io/apiserver/pkg/storage/cacher/delegator). Up to 1.33 the answer is the error of etcd where its store has yet to
// reach that version (kubernetes/kubernetes#132374). It ignores the limit of a list of any state.
type pagedServer struct{ backedUp }

func (p *pagedServer) List(options metav1.ListOptions) (runtime.Object, error) {
	all, err := p.backedUp.List(options)
	if err != nil && options.Limit > 0 {
		return nil, apierrors.NewInternalError(errors.New("etcdserver: mvcc: required revision is a future revision"))
	}
	list, isList := all.(*corev1.ConfigMapList)
	if err != nil || !isList {
		return nil, err
	}
	from, _ := strconv.Atoi(options.Continue)
	list.Items = list.Items[from:]
	if most := int(options.Limit); most > 0 && options.ResourceVersion != anyState && len(list.Items) > most {
		list.Items, list.Continue = list.Items[:most], strconv.Itoa(from+most)
	}
	return list, nil
}

// saying are some ConfigMaps with a text.
func saying(text string, count int) []corev1.ConfigMap {
	all := make([]corev1.ConfigMap, count)
	for i := range all {
		all[i].Namespace, all[i].Name, all[i].ResourceVersion = "ns", fmt.Sprintf("c%04d", i), "1"
		all[i].Data = map[string]string{"k": text}
	}
	return all
}

// Shows: work/restored-cache
func TestACacheOfManyObjectsNoticesAStoreThatWasRestored(t *testing.T) {
	// One of them sleeps by a clock that is not that of synctest.
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil
	defer func() { utilruntime.ErrorHandlers = handlers }()
	for name, objects := range map[string]int{"one page (control)": 500, "more than a page": 501} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &pagedServer{}
				server.become("5000", saying("lost", objects)...)
				informer := NewInformer(server, &corev1.ConfigMap{}, 0, cache.Indexers{})
				ended := make(chan struct{})
				ctx, cancel := context.WithCancel(t.Context())
				go func() { defer close(ended); informer.RunWithContext(ctx) }()
				defer func() { cancel(); <-ended }()
				says := func() string {
					live, found, err := informer.GetStore().GetByKey("ns/c0000")
					require.NoError(t, err)
					if !found {
						return ""
					}
					configMap, _ := live.(*corev1.ConfigMap)
					return configMap.Data["k"]
				}
				time.Sleep(10 * time.Second)
				require.Equal(t, "lost", says())
				server.mu.Lock()
				server.watches[0].Modify(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x", ResourceVersion: "5001"}})
				server.mu.Unlock()
				time.Sleep(10 * time.Second)
				server.mu.Lock()
				server.lists = nil
				server.mu.Unlock()
				server.become("100", saying("restored", objects)...)
				time.Sleep(time.Hour)
				server.mu.Lock()
				assert.Equal(t, "restored", says(), "an hour after the restore; the lists since: %q", server.lists)
				server.mu.Unlock()
				server.become("101") // ends the watches
			})
		})
	}
}
