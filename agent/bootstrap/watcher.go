package bootstrap

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	kit "github.com/spokelet/spokelet/internal/reconcile"
)

// Watcher watches the inputs by which a phase was chosen: the bootstrap kubeconfigs, the stored credential, and in
// hosted mode the kubeconfig of the managed cluster. It ends the phase when the choice would be another one now.
type Watcher struct {
	// Sources are the bootstrap kubeconfigs, Candidates their content when the phase was chosen.
	Sources    []Source
	Candidates []Candidate
	// Over returns why the phase has to end, given what the sources contain now; empty when it goes on.
	Over func(now []Candidate) string
	// Spoke is the kubeconfig of the managed cluster, nil outside hosted mode.
	Spoke *SpokeFile
	// Credential makes a change of the stored credential end the phase; nil does not watch it.
	Credential *StoredCredential
	// End ends the phase; it must not block.
	End func(reason string)
	// Clock measures the pauses.
	Clock clock.Clock
	// Poll reads the files now and then and does not watch them.
	Poll bool

	mu sync.Mutex
}

// SpokeFile is the kubeconfig of the managed cluster.
type SpokeFile struct {
	// Path is where it is.
	Path string
	// Content holds what the phase uses; nil when the phase has none.
	Content []byte
}

// StoredCredential is the Secret of the agent's own credential.
type StoredCredential struct {
	// Key names the Secret.
	Key types.NamespacedName
	// Data is its content when the phase was chosen; nil when there was none.
	Data map[string][]byte
}

// Latest returns what the sources contained at the last read.
func (w *Watcher) Latest() []Candidate {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Candidates
}

// SetupWithManager adds the watcher to the manager of its phase.
func (w *Watcher) SetupWithManager(mgr ctrl.Manager) error {
	one := ctrl.Request{NamespacedName: types.NamespacedName{Name: "bootstrap"}}
	events := make(chan event.GenericEvent, 1)
	files := &FileWatch{Clock: w.Clock, Poll: w.Poll, Paths: w.files, Changed: func() {
		select {
		case events <- event.GenericEvent{Object: &corev1.Secret{}}:
		default:
		}
	}}
	if err := mgr.Add(files); err != nil {
		return fmt.Errorf("adding the watch of files: %w", err)
	}
	enqueue := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []ctrl.Request {
		return []ctrl.Request{one}
	})
	b := ctrl.NewControllerManagedBy(mgr).Named("agent.bootstrap").WithOptions(kit.Options(1)).
		WatchesRawSource(source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
			q.Add(one)
			return nil
		})).
		WatchesRawSource(source.Channel(events, enqueue))
	if w.Credential != nil || slices.ContainsFunc(w.Sources, func(s Source) bool { return s.File == "" }) {
		b = b.WatchesRawSource(source.Kind(mgr.GetCache(), client.Object(&corev1.Secret{}), enqueue,
			predicate.NewPredicateFuncs(w.isInput)))
	}
	check := func(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
		return ctrl.Result{}, w.check(ctx, mgr.GetClient())
	}
	if err := b.Complete(reconcile.Func(check)); err != nil {
		return fmt.Errorf("setting up agent.bootstrap: %w", err)
	}
	return nil
}

// isInput reports whether a Secret is one of the inputs.
func (w *Watcher) isInput(o client.Object) bool {
	key := client.ObjectKeyFromObject(o)
	return w.Credential != nil && key == w.Credential.Key ||
		slices.ContainsFunc(w.Sources, func(s Source) bool { return s.File == "" && s.Secret == key })
}

// files returns the paths of all files to watch, given the last read.
func (w *Watcher) files() []string {
	var files []string
	for _, one := range w.Latest() {
		files = append(files, one.Files...)
	}
	if w.Spoke != nil {
		files = append(files, w.Spoke.Path)
	}
	return files
}

// check reads all inputs again and ends the phase if it must.
func (w *Watcher) check(ctx context.Context, r client.Reader) error {
	now, err := ReadAll(ctx, w.Sources, r)
	if err != nil {
		return err
	}
	w.mu.Lock()
	before := w.Candidates
	w.Candidates = now
	w.mu.Unlock()
	logger := log.FromContext(ctx)
	if problems := Problems(now); problems != "" && problems != Problems(before) {
		logger.Info("the bootstrap kubeconfig cannot be used", "reason", problems)
	}
	if why := w.Over(now); why != "" {
		w.End(why)
		return nil
	}
	if err := w.checkCredential(ctx, r); err != nil {
		return err
	}
	return w.checkSpoke(ctx)
}

// checkCredential ends the phase if a user changed the stored credential, as a restore from a backup does.
func (w *Watcher) checkCredential(ctx context.Context, r client.Reader) error {
	if w.Credential == nil {
		return nil
	}
	var secret corev1.Secret
	if err := r.Get(ctx, w.Credential.Key, &secret); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the stored credential %s: %w", w.Credential.Key, err)
	}
	if !maps.EqualFunc(secret.Data, w.Credential.Data, bytes.Equal) {
		w.End("the stored credential changed")
	}
	return nil
}

// checkSpoke ends the phase if the kubeconfig of the managed cluster was replaced by another one that can be used.
func (w *Watcher) checkSpoke(ctx context.Context) error {
	if w.Spoke == nil {
		return nil
	}
	raw, err := os.ReadFile(w.Spoke.Path)
	if err == nil && bytes.Equal(raw, w.Spoke.Content) {
		return nil
	}
	if err == nil {
		_, err = RESTConfig(raw, w.Spoke.Path)
	}
	if err != nil {
		if w.Spoke.Content != nil {
			log.FromContext(ctx).Error(err, "the kubeconfig of the managed cluster cannot be used, going on with the former one")
		}
		return nil
	}
	w.End("the kubeconfig of the managed cluster changed: " + w.Spoke.Path)
	return nil
}
