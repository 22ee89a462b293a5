package agent

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

// lookout watches what the choice of a phase was made by: the bootstrap kubeconfigs and, in hosted mode, the kubeconfig
// of the managed cluster. It ends the phase when the choice would be another one now.
type lookout struct {
	sources []bootstrapSource
	// over says why the phase has to end by what the bootstrap kubeconfigs say now; empty when it goes on.
	over func(now []finding) string
	// spokeFile is the kubeconfig of the managed cluster, spokeBegan its content at the start of the phase; a file that
	// is empty is none.
	spokeFile  string
	spokeBegan []byte
	// credential makes a change of the Secret of the stored credential, stored at the start of the phase, end it too.
	credential bool
	secret     types.NamespacedName
	stored     map[string][]byte
	end        context.CancelCauseFunc
	clock      clock.Clock

	mu  sync.Mutex
	now []finding
}

// newLookout returns a lookout of a phase that was chosen by v.
func (a *agent) newLookout(v view, over func(now []finding) string, end context.CancelCauseFunc) *lookout {
	l := &lookout{
		sources: a.config.sources(), now: v.found, over: over, end: end, clock: a.clock,
		spokeFile: a.config.SpokeKubeconfig, spokeBegan: a.spokeRaw, secret: a.hubSecret(),
	}
	if v.stored != nil {
		l.stored = v.stored.Data
	}
	return l
}

// latest returns what was found last.
func (l *lookout) latest() []finding {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// setup adds the lookout to the manager of its phase.
func (l *lookout) setup(mgr ctrl.Manager) error {
	one := ctrl.Request{NamespacedName: types.NamespacedName{Name: "bootstrap"}}
	ring := make(chan event.GenericEvent, 1)
	watch := &fileWatch{clock: l.clock, paths: l.files, changed: func() {
		select {
		case ring <- event.GenericEvent{Object: &corev1.Secret{}}:
		default:
		}
	}}
	if err := mgr.Add(watch); err != nil {
		return fmt.Errorf("adding the watch of files: %w", err)
	}
	always := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []ctrl.Request {
		return []ctrl.Request{one}
	})
	b := ctrl.NewControllerManagedBy(mgr).Named("agent.bootstrap").WithOptions(kit.Options(1)).
		WatchesRawSource(source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
			q.Add(one)
			return nil
		})).
		WatchesRawSource(source.Channel(ring, always))
	if l.credential || slices.ContainsFunc(l.sources, func(s bootstrapSource) bool { return s.file == "" }) {
		b = b.WatchesRawSource(source.Kind(mgr.GetCache(), client.Object(&corev1.Secret{}), always,
			predicate.NewPredicateFuncs(l.ownSecret)))
	}
	look := func(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
		return ctrl.Result{}, l.look(ctx, mgr.GetClient())
	}
	if err := b.Complete(reconcile.Func(look)); err != nil {
		return fmt.Errorf("setting up agent.bootstrap: %w", err)
	}
	return nil
}

func (l *lookout) ownSecret(o client.Object) bool {
	key := client.ObjectKeyFromObject(o)
	return l.credential && key == l.secret ||
		slices.ContainsFunc(l.sources, func(s bootstrapSource) bool { return s.file == "" && s.secret == key })
}

// files are all files to watch, as the last look knows them.
func (l *lookout) files() []string {
	var files []string
	for _, one := range l.latest() {
		files = append(files, one.files...)
	}
	if l.spokeFile != "" {
		files = append(files, l.spokeFile)
	}
	return files
}

// look looks at everything again and ends the phase if it must.
func (l *lookout) look(ctx context.Context, r client.Reader) error {
	now, err := lookAll(ctx, l.sources, r)
	if err != nil {
		return err
	}
	l.mu.Lock()
	before := l.now
	l.now = now
	l.mu.Unlock()
	logger := log.FromContext(ctx)
	if told := problems(now); told != "" && told != problems(before) {
		logger.Info("the bootstrap kubeconfig cannot be used", "reason", told)
	}
	if why := l.over(now); why != "" {
		l.end(phaseOverError(why))
		return nil
	}
	if err := l.lookAtCredential(ctx, r); err != nil {
		return err
	}
	return l.lookAtSpoke(ctx)
}

// lookAtCredential ends a phase that waits when somebody changed the stored credential, as from a backup.
func (l *lookout) lookAtCredential(ctx context.Context, r client.Reader) error {
	if !l.credential {
		return nil
	}
	var secret corev1.Secret
	if err := r.Get(ctx, l.secret, &secret); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the stored credential %s: %w", l.secret, err)
	}
	if !maps.EqualFunc(secret.Data, l.stored, bytes.Equal) {
		l.end(phaseOverError("the stored credential changed"))
	}
	return nil
}

// lookAtSpoke ends the phase when the kubeconfig of the managed cluster is another one, and a good one.
func (l *lookout) lookAtSpoke(ctx context.Context) error {
	if l.spokeFile == "" {
		return nil
	}
	raw, err := os.ReadFile(l.spokeFile)
	if err == nil && bytes.Equal(raw, l.spokeBegan) {
		return nil
	}
	if err == nil {
		_, err = kubeconfigOf(raw, l.spokeFile)
	}
	if err != nil {
		if l.spokeBegan != nil {
			log.FromContext(ctx).Error(err, "the kubeconfig of the managed cluster cannot be used, going on with the former one")
		}
		return nil
	}
	l.end(phaseOverError("the kubeconfig of the managed cluster changed: " + l.spokeFile))
	return nil
}
