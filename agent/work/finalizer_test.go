package work

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/watch"
	"github.com/spokelet/spokelet/internal/names"
)

// TestACompletionIsNotForgottenWhenTheFinalizerIsPut has a finalizer that was removed by hand while the agent knows of a
// completion that the hub does not.
//
// Shows: work/complete
func TestACompletionIsNotForgottenWhenTheFinalizerIsPut(t *testing.T) {
	for sentence, finalizers := range map[string][]string{
		"the finalizer is there (control)": {names.FinalizerManifestWork},
		"the finalizer has to be put":      nil,
	} {
		t.Run(sentence, func(t *testing.T) {
			sent := 0
			r := publishing(func(context.Context, string) error { sent++; return nil })
			defer r.queues.works.ShutDown()
			r.mapper, r.store = mapper(), watch.NewStore(func(watch.Owner) {}, func() {})
			work := completable()
			work.Finalizers = finalizers
			f := &facts{now: time.Now(), owner: watch.Owner{Name: "w"}, work: work}
			f.manifests = readBy(t, r, f)
			complete := metav1.Condition{
				Type: workv1.ManifestComplete, Status: metav1.ConditionTrue, Reason: "ConditionRuleEvaluated",
			}
			learned := workv1.ManifestWorkStatus{ResourceStatus: workv1.ManifestResourceStatus{
				Manifests: []workv1.ManifestCondition{{ResourceMeta: f.manifests[0].Meta(), Conditions: []metav1.Condition{complete}}},
			}}
			r.notes.change(f.owner, func(n *note) { n.learned, n.learnedOf = &learned, work.UID })

			// A pass as Reconcile makes it, as far as it concerns the hub.
			require.NoError(t, r.recall(t.Context(), f))
			require.NotNil(t, f.atHub, "the hub does not know it")
			kept, _ := r.ensureFinalizer(t.Context(), f)
			require.True(t, kept)
			before := sent
			r.publishStatus(t.Context(), f, f.work.Status) // what the pass concludes: still complete

			assert.Equal(t, 1, sent-before, "the hub gets the completion")
			if sent == before {
				assert.NotNil(t, r.notes.of(f.owner).learned, "what the hub did not get must stay known")
			}
			// the next pass, the cache shows the finalizer and the status that the hub really has
			again := completable()
			again.Finalizers, again.ResourceVersion = []string{names.FinalizerManifestWork}, "9"
			if sent > before {
				again.Status = learned
			}
			g := &facts{now: time.Now(), owner: watch.Owner{Name: "w"}, work: again, manifests: f.manifests}
			require.NoError(t, r.recall(t.Context(), g))
			require.Len(t, g.work.Status.ResourceStatus.Manifests, 1, "a Job that was done runs again")
			assert.True(t, meta.IsStatusConditionTrue(g.work.Status.ResourceStatus.Manifests[0].Conditions, workv1.ManifestComplete))
		})
	}
}

// TestAHubThatRefusesToLetAWorkGoLateIsTold has a webhook that is down: the API server waits ten seconds for it, which is
// its default, and refuses then.
//
// Shows: work/slow-hub
func TestAHubThatRefusesToLetAWorkGoLateIsTold(t *testing.T) {
	for _, takes := range []time.Duration{time.Second, 10 * time.Second} {
		t.Run("after "+takes.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				scheme := runtime.NewScheme()
				require.NoError(t, workv1.Install(scheme))
				spoke := fake.NewClientBuilder().WithScheme(scheme).Build()
				refused := 0
				var told []string
				hub := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
					Patch: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ client.Patch, _ ...client.PatchOption) error {
						select {
						case <-ctx.Done():
							return ctx.Err()
						case <-time.After(takes):
						}
						refused++
						return apierrors.NewInternalError(errors.New(`failed calling webhook "check.example.com": context deadline exceeded`))
					},
					SubResourceUpdate: func(_ context.Context, _ client.Client, _ string, o client.Object, _ ...client.SubResourceUpdateOption) error {
						work, is := o.(*workv1.ManifestWork)
						if !is {
							return fmt.Errorf("%T has no status", o)
						}
						if c := meta.FindStatusCondition(work.Status.Conditions, workv1.WorkDeleting); c != nil {
							told = append(told, c.Message)
						}
						return nil
					},
				})
				r := publishing(func(context.Context, string) error { return nil })
				defer r.queues.works.ShutDown()
				r.Hub = stubHub{client: hub}
				r.inventory = &inventory.Writer{Client: spoke, Live: spoke, HubHash: "hash", AgentID: "agent"}
				defer startPublisher(t, r)()
				for range 60 { // ten minutes of passes
					f := factsOf("w")
					f.now = time.Now()
					f.work.ResourceVersion = "7"
					f.work.Finalizers = []string{names.FinalizerManifestWork}
					f.work.DeletionTimestamp = &metav1.Time{Time: time.Now()}
					r.deleteWork(t.Context(), f)
					time.Sleep(10 * time.Second)
					synctest.Wait()
				}
				require.Greater(t, refused, 10)
				assert.Contains(t, strings.Join(told, " "), "the hub refuses to let the work go")
			})
		})
	}
}

// Shows: work/slow-hub
func TestAHubThatRefusesTheFinalizerLateIsLogged(t *testing.T) {
	for _, takes := range []time.Duration{time.Second, 10 * time.Second} {
		t.Run("after "+takes.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				refused := 0
				r := publishing(func(ctx context.Context, _ string) error {
					time.Sleep(takes)
					refused++
					return apierrors.NewForbidden(schema.GroupResource{Resource: "manifestworks"}, "w", errors.New("denied by webhook"))
				})
				defer r.queues.works.ShutDown()
				defer startPublisher(t, r)()
				logged := 0
				ctx := log.IntoContext(t.Context(), funcr.New(func(string, string) { logged++ }, funcr.Options{}))
				for range 60 {
					f := factsOf("w")
					f.now = time.Now()
					f.work.ResourceVersion = "7"
					if _, outcome := r.ensureFinalizer(ctx, f); outcome.Err() != nil {
						logged++
					}
					time.Sleep(10 * time.Second)
					synctest.Wait()
				}
				require.Greater(t, refused, 10)
				assert.NotZero(t, logged, "refused %d times", refused)
			})
		})
	}
}

// TestAWorkGoesThoughAStatusOfItHasNoAnswer has a status whose connection is dead; other requests are answered at once.
//
// Shows: work/slow-hub
func TestAWorkGoesThoughAStatusOfItHasNoAnswer(t *testing.T) {
	for sentence, inFlight := range map[string]bool{"no status is on its way (control)": false, "a status has no answer": true} {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				scheme := runtime.NewScheme()
				require.NoError(t, workv1.Install(scheme))
				spoke := fake.NewClientBuilder().WithScheme(scheme).Build()
				var released time.Time
				hub := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
					Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
						released = time.Now()
						return nil
					},
					SubResourceUpdate: func(ctx context.Context, _ client.Client, _ string, _ client.Object, _ ...client.SubResourceUpdateOption) error {
						<-ctx.Done()
						return ctx.Err()
					},
				})
				r := publishing(func(context.Context, string) error { return nil })
				defer r.queues.works.ShutDown()
				r.Hub = stubHub{client: hub}
				r.inventory = &inventory.Writer{Client: spoke, Live: spoke, HubHash: "hash", AgentID: "agent"}
				defer startPublisher(t, r)()
				if inFlight {
					r.publishStatus(t.Context(), factsOf("w"), feedbackOf(1, metav1.ConditionTrue))
				}
				began := time.Now()
				for released.IsZero() && time.Since(began) < 5*time.Minute {
					f := factsOf("w")
					f.now = time.Now()
					f.work.ResourceVersion = "7"
					f.work.Finalizers = []string{names.FinalizerManifestWork}
					f.work.DeletionTimestamp = &metav1.Time{Time: began}
					r.deleteWork(t.Context(), f)
					time.Sleep(time.Second)
					synctest.Wait()
				}
				require.False(t, released.IsZero())
				assert.LessOrEqual(t, released.Sub(began), 5*time.Second)
			})
		})
	}
}

// TestANewWorkDoesNotWaitForTheStatusesOfOthers has fifty works with large statuses and a slow link. The finalizer of the
// new work is a request of some hundred bytes, which the hub answers at once; nothing of it is applied before.
//
// Shows: work/slow-hub
func TestANewWorkDoesNotWaitForTheStatusesOfOthers(t *testing.T) {
	for _, takes := range []time.Duration{100 * time.Millisecond, 40 * time.Second} {
		t.Run("statuses take "+takes.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				told := map[string]bool{}
				hub := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
					Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
						o.SetResourceVersion("9")
						return nil
					},
					SubResourceUpdate: func(_ context.Context, _ client.Client, _ string, o client.Object, _ ...client.SubResourceUpdateOption) error {
						time.Sleep(takes)
						mu.Lock()
						defer mu.Unlock()
						told[o.GetName()] = true
						return nil
					},
				})
				r := publishing(func(context.Context, string) error { return nil })
				r.Hub = stubHub{client: hub}
				defer startPublisher(t, r)()
				var created, applied time.Time
				queue := r.queues.works
				pass := func(name string) (ctrl.Result, error) {
					f := factsOf(name)
					f.now = time.Now()
					if name == "new" {
						f.work.ResourceVersion = "7"
						kept, outcome := r.ensureFinalizer(t.Context(), f)
						if mu.Lock(); kept && applied.IsZero() {
							applied = time.Now()
						}
						mu.Unlock()
						return outcome.SettleIn(queue, r.request(name), f.now)
					}
					after := feedbackOf(1, metav1.ConditionTrue)
					if mu.Lock(); told[name] {
						f.work.Status = after
					}
					mu.Unlock()
					return r.publishStatus(t.Context(), f, after).SettleIn(queue, r.request(name), f.now)
				}
				var workers sync.WaitGroup
				for range DefaultWorkers {
					workers.Go(func() {
						for {
							request, shutdown := queue.Get()
							if shutdown {
								return
							}
							if result, err := pass(request.Name); err == nil && result.RequeueAfter > 0 {
								queue.AddAfter(request, result.RequeueAfter)
							}
							queue.Done(request)
						}
					})
				}
				for i := range 50 {
					queue.Add(ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "c1", Name: fmt.Sprint("w", i)}})
				}
				time.Sleep(time.Minute)
				created = time.Now()
				queue.Add(r.request("new"))
				time.Sleep(2 * time.Hour)
				queue.ShutDown()
				workers.Wait()
				mu.Lock()
				defer mu.Unlock()
				require.False(t, applied.IsZero())
				t.Logf("%d statuses told; the new work is applied after %s", len(told), applied.Sub(created))
				assert.LessOrEqual(t, applied.Sub(created), time.Minute)
			})
		})
	}
}
