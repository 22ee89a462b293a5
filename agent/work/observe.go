package work

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/agent/work/apply"
	"github.com/spokelet/spokelet/agent/work/executor"
	"github.com/spokelet/spokelet/agent/work/feedback"
	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/status"
	"github.com/spokelet/spokelet/agent/work/watch"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// observe collects the facts about a work.
func (r *Reconciler) observe(ctx context.Context, name string) (*facts, error) {
	f := &facts{now: r.Clock.Now(), owner: watch.Owner{Name: name}, room: r.room.Pass()}
	if r.offline() {
		return r.observeOffline(ctx, f)
	}
	work := &workv1.ManifestWork{}
	err := r.Hub.GetClient().Get(ctx, types.NamespacedName{Namespace: r.Cluster, Name: name}, work)
	switch {
	case apierrors.IsNotFound(err):
		f.applied, err = r.abandoned(ctx, f)
		return f, err
	case err != nil:
		return f, fmt.Errorf("reading the ManifestWork %s: %w", name, err)
	}
	if !r.enter(f, lengthOf(work)) {
		return f, nil
	}
	f.work = work
	f.applied, err = inventory.Read(ctx, r.inventory.Client, r.inventory.Name(name))
	if err != nil {
		return f, err
	}
	r.checkLag(f)
	if f.applied == nil && !f.stale && !work.DeletionTimestamp.IsZero() {
		// The cache may lack an AppliedManifestWork that was created a moment ago, so the API server decides.
		f.applied, err = inventory.Read(ctx, r.inventory.Live, r.inventory.Name(name))
	}
	return f, err
}

// enter reports whether the work may have its pass now.
func (r *Reconciler) enter(f *facts, pass reconcile.Length) bool {
	f.crowded = !r.turns.Enter(r.request(f.owner.Name), pass)
	return !f.crowded
}

// abandoned returns the AppliedManifestWork that was created for a work which vanished before it had a status, if any.
// Its objects are deleted at once, so the hub has to confirm that the work does not exist.
func (r *Reconciler) abandoned(ctx context.Context, f *facts) (*workv1.AppliedManifestWork, error) {
	created := r.notes.of(f.owner).justCreated(f.now)
	if created == "" {
		return nil, nil // absence is an answer here
	}
	work, err := r.liveWork(ctx, f.owner.Name)
	if err != nil || work != nil {
		return nil, err
	}
	live, err := inventory.Read(ctx, r.inventory.Live, r.inventory.Name(f.owner.Name))
	if err != nil || live == nil || live.UID != created {
		return nil, err
	}
	return live, nil
}

// onHub reads a work from a hub, and reports whether it exists there.
func (r *Reconciler) onHub(ctx context.Context, hub client.Reader, name string, work client.Object) (bool, error) {
	err := hub.Get(ctx, types.NamespacedName{Namespace: r.Cluster, Name: name}, work)
	if reconcile.ObjectGone(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the ManifestWork %s: %w", name, err)
	}
	return true, nil
}

// checkLag compares the caches with the last writes of this process.
func (r *Reconciler) checkLag(f *facts) {
	known := r.notes.of(f.owner)
	if f.applied != nil && known.applied.gone && f.applied.UID == known.applied.uid {
		f.applied = nil
	}
	var uid types.UID
	var version string
	deleting := false
	if f.applied != nil {
		uid, version = f.applied.UID, f.applied.ResourceVersion
		deleting = !f.applied.DeletionTimestamp.IsZero()
	}
	f.stale = known.work.lag(f.work.UID, f.work.ResourceVersion, true, f.now) ||
		known.applied.lag(uid, version, deleting, f.now) || known.work.left(f.work.UID, f.now)
	if !f.stale {
		r.believe(f, known)
	}
}

// readManifests decodes and maps the manifests of the spec, once per generation; manifests that could not be mapped are
// mapped again.
func (r *Reconciler) readManifests(ctx context.Context, f *facts) ([]manifest.Manifest, error) {
	known := r.notes.of(f.owner)
	spec := &f.work.Spec
	manifests := slices.Clone(known.manifests)
	changed := known.uid != f.work.UID || known.generation != f.work.Generation
	if changed {
		manifests = make([]manifest.Manifest, len(spec.Workload.Manifests))
		for i := range manifests {
			raw := spec.Workload.Manifests[i].Raw
			if err := f.room.Decode(ctx, len(raw), func() { manifests[i] = manifest.Parse(i, raw) }); err != nil {
				return nil, err
			}
		}
	}
	for i := range manifests {
		if err := ctx.Err(); err != nil {
			return nil, err // each kind that is not served may be a request
		}
		if manifests[i].Retriable() {
			manifests[i].Resolve(r.mapper, spec, usableRules)
			changed = true
		}
	}
	manifest.RefuseDuplicates(manifests)
	if changed {
		r.notes.change(f.owner, func(n *note) {
			n.uid, n.generation, n.manifests = f.work.UID, f.work.Generation, slices.Clone(manifests)
		})
	}
	return manifests, nil
}

// usableRules divides condition rules into those that can be evaluated and the reasons why the others cannot.
func usableRules(gvk schema.GroupVersionKind, rules []workv1.ConditionRule) ([]workv1.ConditionRule, []string) {
	return feedback.UsableRules(gvk, rules, status.Reserved()...)
}

// input collects what is known of the objects of the manifests.
func (r *Reconciler) input(f *facts) *input {
	in := &input{
		now: f.now, manifests: f.manifests,
		raw: make([][]byte, len(f.manifests)), objects: make([]object, len(f.manifests)),
	}
	if f.applied != nil {
		in.owner = f.applied.UID
	}
	listed := inventory.IDs(inventory.Tracked(f.applied))
	before := status.Index(f.work.Status.ResourceStatus.Manifests)
	for i := range f.manifests {
		m := &f.manifests[i]
		in.raw[i] = f.work.Spec.Workload.Manifests[i].Raw
		if m.Err != nil {
			continue
		}
		was := before.Find(m.Meta())
		o := &in.objects[i]
		o.known = apply.Known{
			Listed: listed[m.ID()] != "", Current: status.AppliedAt(was, f.work.Generation), Offline: f.onlyKept(),
		}
		o.known.State, o.known.Drift = r.store.Look(f.owner, m.ID())
		o.frozen = status.Frozen(f.work, m, was)
		o.unwatched = r.store.Unwatched(f.owner, m.ID())
	}
	return in
}

// authorize asks about all manifests of a work with an executor whether they may be applied, and puts the decisions
// into the input, with the session that answers what comes up while they are applied.
func (r *Reconciler) authorize(ctx context.Context, f *facts, in *input) {
	if f.work.Spec.Executor == nil {
		r.authorizer.Forget(f.owner.Name)
		return
	}
	who, wrong := executor.Of(f.work.Spec.Executor)
	if wrong != nil {
		r.authorizer.Forget(f.owner.Name)
		denied := executor.Decision{Verdict: executor.Denied, Err: wrong, ReadErr: wrong}
		for i := range in.objects {
			in.objects[i].decision = &denied
		}
		return
	}
	in.session = r.authorizer.Begin(f.owner.Name, who, f.now)
	var questions []executor.Question
	var asked []*object
	for i := range in.objects {
		m, o := &in.manifests[i], &in.objects[i]
		if m.Err != nil {
			continue
		}
		o.question = &executor.Question{
			Object: m.ID(), Version: m.Resource.Version, Desired: m.Desired, Verbs: verbsFor(m, o.frozen),
		}
		questions, asked = append(questions, *o.question), append(asked, o)
	}
	decisions := in.session.Decide(ctx, questions)
	for i := range decisions {
		asked[i].decision = &decisions[i]
	}
}

// verbsFor are the verbs that an executor needs for a manifest. An object that is only read, because of its strategy or
// because its manifest is complete, needs no more than that.
func verbsFor(m *manifest.Manifest, frozen bool) executor.Verbs {
	switch {
	case frozen || m.Options.Strategy.Type == workv1.UpdateStrategyTypeReadOnly:
		return executor.VerbsRead
	case m.Options.Owned:
		return executor.VerbsOwn
	}
	return executor.VerbsApply
}

const (
	// largeWork is from how many bytes of manifests a work counts as large, and largeManifest from how many of one
	// manifest: then its pass may take long, because its objects wait for those of other works.
	largeWork, largeManifest = 64 << 10, 15 << 10
	// largeRules is the same for the expressions of condition rules, of which each manifest may have all.
	largeRules = 256 << 10
)

// lengthOf is how long a pass over a work may take. A deletion goes first: the work may have what the others wait for.
func lengthOf(work *workv1.ManifestWork) reconcile.Length {
	switch {
	case !isLarge(work):
		return reconcile.Short
	case !work.DeletionTimestamp.IsZero():
		return reconcile.LongFirst
	}
	return reconcile.Long
}

// isLarge reports whether a pass over a work may take long.
func isLarge(work *workv1.ManifestWork) bool {
	sum, rules := 0, 0
	for i := range work.Spec.ManifestConfigs {
		for _, rule := range work.Spec.ManifestConfigs[i].ConditionRules {
			rules += len(rule.MessageExpression)
			for _, expression := range rule.CelExpressions {
				rules += len(expression)
			}
		}
	}
	if rules*len(work.Spec.Workload.Manifests) > largeRules {
		return true
	}
	for i := range work.Spec.Workload.Manifests {
		bytes := len(work.Spec.Workload.Manifests[i].Raw)
		if sum += bytes; bytes > largeManifest || sum > largeWork {
			return true
		}
	}
	return false
}

// believe forgets a last write that a cache has still not seen after its time: what is decided on the older copy may be
// wrong, and the event of the write, when it comes at last, must wake the work.
func (r *Reconciler) believe(f *facts, known note) {
	work := known.work.unseenIn(f.work)
	applied := f.applied != nil && known.applied.uid == f.applied.UID &&
		watch.Older(f.applied.ResourceVersion, known.applied.version)
	if !work && !applied {
		return
	}
	r.notes.change(f.owner, func(n *note) {
		if work {
			n.work.unseen = true
		}
		if applied {
			n.applied.version = ""
		}
	})
}

// liveWork asks the hub for the metadata of a work; nil when it does not exist. A hub that does not answer soon is an
// error.
func (r *Reconciler) liveWork(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	within, cancel := context.WithTimeout(ctx, hubTimeout)
	defer cancel()
	live := manifestWork(metav1.ObjectMeta{})
	if exists, err := r.onHub(within, r.Hub.GetAPIReader(), name, live); err != nil || !exists {
		return nil, err
	}
	return live, nil
}
