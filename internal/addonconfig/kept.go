package addonconfig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Kept returns a content that is stored for an add-on; nil when it is not. The object must not be changed.
func (s *Store) Kept(ctx context.Context, addOn string, c Chosen) (*unstructured.Unstructured, error) {
	return s.kept(ctx, revisionName(addOn, c))
}

// Content returns a content of an add-on: the stored one, or else the present one if it has the same hash. It returns
// nil when there is neither. The object must not be changed.
func (s *Store) Content(ctx context.Context, addOn string, c Chosen) (*unstructured.Unstructured, error) {
	if kept, err := s.Kept(ctx, addOn, c); kept != nil || err != nil {
		return kept, err
	}
	state, object, err := s.find(ctx, c.Config())
	if err != nil || object == nil || state.Hash != c.SpecHash {
		return nil, err
	}
	return object, nil
}

// kept returns the content of a ControllerRevision; nil when there is none.
func (s *Store) kept(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	key := types.NamespacedName{Namespace: s.Home, Name: name}
	revision, err := reconcile.Peek(ctx, s.Client, key, &appsv1.ControllerRevision{})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	if revision != nil {
		delete(s.created, name) // From here on the cache shows whether it exists.
		if lost := s.lost[name]; lost != nil && lost.UID != revision.UID {
			delete(s.lost, name) // Else it was lost after it was read here.
		}
	} else if revision = s.lost[name]; revision == nil {
		delete(s.contents, name) // A person may have deleted it.
	}
	entry, known := s.contents[name]
	s.mu.Unlock()
	if revision == nil {
		return nil, nil
	}
	if known && entry.uid == revision.UID {
		return entry.object, nil
	}
	object, err := readRevision(revision, s.Packed)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.contents == nil {
		s.contents = map[string]contentEntry{}
	}
	s.contents[name] = contentEntry{uid: revision.UID, object: object}
	return object, nil
}

// Keep stores the present content of a configuration for an add-on, unless it is stored already. It must be called
// before the hash is recorded as desired anywhere. Configurations of other kinds are not stored: nothing is rendered
// from them, and some, such as Secrets, must not be copied.
func (s *Store) Keep(ctx context.Context, addOn string, c Chosen) error {
	if _, known := confighash.Kind(c.ConfigGroupResource); !known {
		return nil
	}
	name := revisionName(addOn, c)
	if exists, err := s.exists(ctx, name); exists || err != nil {
		return err
	}
	// All clusters need the same content at the same moment: one of them stores it.
	leave, err := s.keeping.Enter(ctx, "store "+Describe(c.Config()))
	if err != nil {
		return err
	}
	defer leave()
	if exists, err := s.exists(ctx, name); exists || err != nil {
		return err
	}
	state, object, err := s.find(ctx, c.Config())
	if err != nil || object == nil || state.Hash != c.SpecHash {
		return err // It changed meanwhile, and the change starts another pass.
	}
	others, err := s.Revisions(ctx, addOn)
	if err != nil {
		return err
	}
	revision, err := newRevision(s.Home, addOn, c, object)
	if err != nil {
		return err
	}
	for _, other := range others { // The numbers order them for people.
		revision.Revision = max(revision.Revision, other.Revision+1)
	}
	before := s.seen()
	if err := s.create(ctx, revision); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("storing the content of %s in namespace %s: %w", Describe(c.Config()), s.Home, err)
	}
	s.note(name, before)
	return nil
}

// exists reports whether a ControllerRevision exists: the cache has it, or this process created it a moment ago.
func (s *Store) exists(ctx context.Context, name string) (bool, error) {
	kept, err := s.kept(ctx, name)
	if err != nil || kept != nil {
		return kept != nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.created[name], nil
}

// Reads reports whether the store reads any kind of configuration, and so the stored contents.
func (s *Store) Reads() bool { return s.Kinds == nil || len(s.Kinds) > 0 }

// Revisions lists the ControllerRevisions of an add-on. They belong to the cache.
func (s *Store) Revisions(ctx context.Context, addOn string) ([]*appsv1.ControllerRevision, error) {
	if !s.Reads() {
		return nil, nil
	}
	var list appsv1.ControllerRevisionList
	err := s.Client.List(ctx, &list, client.InNamespace(s.Home), client.UnsafeDisableDeepCopy,
		client.MatchingLabels{names.LabelAddonName: addOn, names.LabelConfigRevision: "true"})
	if err != nil {
		return nil, fmt.Errorf("listing the stored configurations of add-on %s: %w", addOn, err)
	}
	return reconcile.Pointers(list.Items), nil
}

// Forget deletes a ControllerRevision.
func (s *Store) Forget(ctx context.Context, revision *appsv1.ControllerRevision) error {
	s.Deleted(revision)
	uid := revision.UID
	if err := s.Client.Delete(ctx, revision, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the stored configuration %s/%s: %w", revision.Namespace, revision.Name, err)
	}
	return nil
}

// Deleted notes that a ControllerRevision is gone, no matter who deleted it, so that its content is stored again where
// it is needed.
func (s *Store) Deleted(revision client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deletions++
	delete(s.created, revision.GetName())
	delete(s.contents, revision.GetName())
	delete(s.lost, revision.GetName()) // It was stored again, and whether it is needed is asked again.
}

// maxLost is how many bytes of lost contents are kept at most; the next one replaces another.
const maxLost = 16 << 20

// Lost notes a ControllerRevision that is gone and that add-ons run with: they do so further on, and Restore stores it
// again. Its configuration may have another content by now, or be gone, too.
func (s *Store) Lost(revision *appsv1.ControllerRevision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == nil {
		s.lost = map[string]*appsv1.ControllerRevision{}
	}
	bytes := len(revision.Data.Raw)
	for name, other := range s.lost {
		if bytes += len(other.Data.Raw); bytes > maxLost {
			delete(s.lost, name)
		}
	}
	s.lost[revision.Name] = revision
}

// Restore stores the contents of an add-on again that were lost. It is asked with each pass of the add-on on any
// cluster, and stores what other clusters run with, too: the one that has the pass may have gone on to another content.
// own are the contents of the one that has it; what it fails for is told apart from the contents of others.
func (s *Store) Restore(ctx context.Context, addOn string, own []Chosen) (failed, others error) {
	for _, name := range s.lostBy(addOn) {
		err := s.restore(ctx, name)
		if err == nil {
			continue
		}
		err = fmt.Errorf("storing %s in namespace %s again: %w", name, s.Home, err)
		if slices.ContainsFunc(own, func(c Chosen) bool { return revisionName(addOn, c) == name }) {
			failed = errors.Join(failed, err)
		} else {
			others = errors.Join(others, err)
		}
	}
	return failed, others
}

// Abandon forgets the lost contents of an add-on that is on no cluster.
func (s *Store) Abandon(addOn string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.lost, func(_ string, revision *appsv1.ControllerRevision) bool { return AddOnOf(revision) == addOn })
}

// HasLost reports whether contents of an add-on were lost and are not stored again.
func (s *Store) HasLost(addOn string) bool { return len(s.lostBy(addOn)) > 0 }

// lostBy returns the names of the ControllerRevisions of an add-on that were lost.
func (s *Store) lostBy(addOn string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for name, revision := range s.lost {
		if AddOnOf(revision) == addOn && !s.created[name] {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// lostOf returns a ControllerRevision that was lost and is not stored again.
func (s *Store) lostOf(name string) *appsv1.ControllerRevision {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.created[name] {
		return nil
	}
	return s.lost[name]
}

// restore creates a ControllerRevision that was lost. What is there without the labels by which the cache knows it is
// replaced.
func (s *Store) restore(ctx context.Context, name string) error {
	leave, err := s.keeping.Enter(ctx, "store "+name)
	if err != nil {
		return err
	}
	defer leave()
	lost := s.lostOf(name)
	if lost == nil {
		return nil
	}
	again := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: lost.Namespace, Name: lost.Name, Labels: lost.Labels, Annotations: lost.Annotations,
		},
		Data: lost.Data, Revision: lost.Revision,
	}
	before := s.seen()
	if err = s.create(ctx, again.DeepCopy()); apierrors.IsAlreadyExists(err) {
		var there bool
		if there, err = s.isThere(ctx, again); err == nil && !there {
			if err = client.IgnoreNotFound(s.Client.Delete(ctx, again)); err == nil {
				err = s.Client.Create(ctx, again)
			}
		}
	}
	if err == nil {
		s.note(name, before)
	}
	return err
}

// isThere reports whether the API server has a ControllerRevision with the labels by which the cache knows it: a client
// created it again, or this process did and had no answer. Replacing it would be a deletion that is to be mended, again
// and again.
func (s *Store) isThere(ctx context.Context, revision *appsv1.ControllerRevision) (bool, error) {
	if s.Live == nil {
		return false, nil
	}
	var list appsv1.ControllerRevisionList
	err := s.Live.List(ctx, &list, client.InNamespace(revision.Namespace),
		client.MatchingFields{"metadata.name": revision.Name})
	return slices.ContainsFunc(list.Items, func(r appsv1.ControllerRevision) bool {
		labels := maps.Clone(r.Labels) // which may be more
		maps.Copy(labels, revision.Labels)
		return r.Name == revision.Name && len(r.Labels) > 0 && maps.Equal(r.Labels, labels)
	}), err
}

// refusedFor is how long a creation that a policy or a quota refused is not tried again: all clusters of an add-on may
// wait for one content.
const refusedFor = 10 * time.Second

// failure is why the creation of a ControllerRevision was refused, and when.
type failure struct {
	err error
	at  time.Time
}

// create creates a ControllerRevision, unless that was refused a moment ago.
func (s *Store) create(ctx context.Context, revision *appsv1.ControllerRevision) error {
	if s.Clock == nil {
		return s.Client.Create(ctx, revision)
	}
	now := s.Clock.Now()
	s.mu.Lock()
	maps.DeleteFunc(s.refused, func(_ string, r failure) bool { return !now.Before(r.at.Add(refusedFor)) })
	earlier := s.refused[revision.Name].err
	s.mu.Unlock()
	if earlier != nil {
		return earlier
	}
	err := s.Client.Create(ctx, revision)
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.refused == nil {
			s.refused = map[string]failure{}
		}
		s.refused[revision.Name] = failure{err, now}
	}
	return err
}

// seen returns how many deletions of ControllerRevisions this process has seen.
func (s *Store) seen() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deletions
}

// note notes that this process created a ControllerRevision, which the cache does not have yet, unless a deletion was
// seen since before: an answer may come after the object was created and deleted. Without the note it is created once
// more, which changes nothing.
func (s *Store) note(created string, before uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deletions != before {
		return
	}
	if s.created == nil {
		s.created = map[string]bool{}
	}
	s.created[created] = true
}

// Return is what an add-on returns to, To, by How, from a target that was undone, From.
type Return struct {
	From Target
	How  Undo
	To   []Chosen
}

// Lacks returns which content cannot be given again; empty when all can. Of kinds that are not stored, only the content
// can that the target, which was undone, has as well. What the policy does not have as completed, the agent of the
// cluster may have written into its status: it counts where it is stored for the add-on.
func (s *Store) Lacks(ctx context.Context, addOn string, r Return) (string, error) {
	has := ChosenBy(r.From.References)
	for _, c := range r.To {
		if slices.Contains(has, c) {
			continue
		}
		if _, stored := confighash.Kind(c.ConfigGroupResource); !stored {
			return Describe(c.Config()) + " is of a kind whose former contents are not stored", nil
		}
		if c.SpecHash == "" { // It did not exist, and the add-on does not support the kind.
			continue
		}
		content := s.Kept
		if r.How.Has(c) {
			content = s.Content
		}
		kept, err := content(ctx, addOn, c)
		if err != nil {
			return "", fmt.Errorf("finding the content of %s that add-on %s had: %w", Describe(c.Config()), addOn, err)
		}
		if kept == nil {
			return "the content that " + Describe(c.Config()) + " had is not stored any more", nil
		}
	}
	return "", nil
}
