package watch

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// inPages returns a list of the API server in pages. Without a limit, or from its cache, it has one page.
func inPages(all []corev1.ConfigMap, expired func() bool) func(
	context.Context, metav1.ListOptions) (runtime.Object, error) {
	return func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
		list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "10"}}
		from, _ := strconv.Atoi(options.Continue)
		to := from + int(options.Limit)
		switch {
		case from > 0 && expired():
			return nil, apierrors.NewResourceExpired("the list is too old")
		case to == from || to >= len(all) || options.ResourceVersion != "":
			to = len(all)
		default:
			list.Continue = strconv.Itoa(to)
		}
		list.Items = all[from:to:to]
		return list, nil
	}
}

func TestAWatchSiftsEachPageOfAList(t *testing.T) {
	var all []corev1.ConfigMap
	for n := range 7 {
		all = append(all, *configMap(fmt.Sprint("c", n)))
	}
	for name, expires := range map[string]bool{"": false, "a list that expires is sifted anew": true} {
		t.Run(name, func(t *testing.T) {
			api, sifts, most, seen := &server{version: "10"}, 0, 0, 0
			list := inPages(all, func() bool { was := expires; expires = false; return was })
			pages := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				most, seen = max(most, seen), 0 // objects that were looked at since the last page
				return list(ctx, options)
			}
			again := expires
			r := start(t, api, func(w *Watch[*corev1.ConfigMap]) {
				w.Source = From(nil, pages, func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
					assert.Nil(t, o.SendInitialEvents, "a stream is not in pages")
					return api.watch(ctx, o)
				})
				w.Source.PageSize = 2
				w.Sift = func() func(*corev1.ConfigMap) bool {
					sifts++
					return func(c *corev1.ConfigMap) bool { seen++; return c.Name == "c1" || c.Name == "c6" }
				}
			})
			require.Eventually(t, func() bool { return r.open() != nil }, patience, tick)
			r.open().Add(configMap("c2"))
			require.Eventually(t, func() bool { return len(r.read()) == 2 }, patience, tick)
			assert.Equal(t, []string{"replace at 10: c10 1 c60 1", "update c2"}, r.read(), "events are not sifted")
			assert.Equal(t, 2, most)
			assert.Equal(t, map[bool]int{false: 1, true: 2}[again], sifts)
		})
	}
}
