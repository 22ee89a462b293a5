package addonconfig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/objectwatch"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// reportedElse follows the cause why the hub manager does not read a config.
const reportedElse = "; or the manager of the add-on has to report it"

// Objects are objects of any kind, each watched by its name; objectwatch.Watcher implements it.
type Objects interface {
	// Want replaces the objects that an owner wants, and those beyond its share, which are not watched for it.
	Want(owner string, refs []objectwatch.Ref, beyond ...objectwatch.Ref)
	// Get returns what is known of an object.
	Get(ref objectwatch.Ref) objectwatch.State
}

// Store reads configurations and keeps their content. It may be used from several goroutines.
type Store struct {
	// Client reads configurations and ControllerRevisions, usually from a cache, and writes ControllerRevisions.
	Client client.Client
	// Live lists from the API server; nil confirms nothing.
	Live client.Reader
	// Versions are the versions in which the hub serves configurations.
	Versions confighash.Versions
	// Home is the namespace of the ControllerRevisions.
	Home string
	// Kinds restricts Watched to kinds; nil does not. Without any kind, no stored content is read.
	Kinds []addonv1beta1.ConfigGroupResource
	// Packed keeps stored contents as confighash.Pack makes them, for callers that read each by confighash.Unpack.
	Packed bool
	// Others are configurations of other kinds than AddOnTemplate and AddOnDeploymentConfig; nil reads none.
	Others Objects
	// Limit is how many of them are watched, of which one add-on may have half; zero means objectwatch.DefaultLimit.
	Limit int

	// Clock says when a creation that was refused may be tried again; nil tries it each time.
	Clock clock.PassiveClock

	// keeping is held while a content is stored.
	keeping reconcile.Gate

	// wanting is held while shares are computed; wants are the specs of all add-ons that name configurations of other
	// kinds.
	wanting sync.Mutex
	wants   map[string][]Named

	mu sync.Mutex
	// hashes are the hashes of the latest content of configurations, by index key.
	hashes map[string]hashEntry
	// contents are those of ControllerRevisions by name; they must not be changed.
	contents map[string]contentEntry
	// created are the names of ControllerRevisions that this process created and that the cache has not had yet.
	created map[string]bool
	// refused are the creations that were refused lately, by name.
	refused map[string]failure
	// deletions counts the deletions that this process has seen.
	deletions uint64
	// lost are ControllerRevisions that add-ons run with and that another client deleted.
	lost map[string]*appsv1.ControllerRevision
}

// hashEntry is a hash with the object that it was computed from.
type hashEntry struct {
	uid             types.UID
	resourceVersion string
	hash            string
	// confirmed reports whether the API server had this object when Confirm asked.
	confirmed bool
	// weight is how many bytes the content takes when it is decoded.
	weight int
}

// contentEntry is a content with the ControllerRevision that it was read from.
type contentEntry struct {
	uid    types.UID
	object *unstructured.Unstructured
}

// States reads the states of configurations.
func (s *Store) States(ctx context.Context, configs ...addonv1beta1.AddOnConfig) (States, error) {
	states := make(States, len(configs))
	for _, config := range configs {
		if _, known := states[config]; known {
			continue
		}
		state, _, err := s.find(ctx, config)
		if err != nil {
			return nil, err
		}
		states[config] = state
	}
	return states, nil
}

// find reads a configuration. The object belongs to the cache and may be packed; it is nil unless it was read.
func (s *Store) find(ctx context.Context, config addonv1beta1.AddOnConfig) (State, *unstructured.Unstructured, error) {
	object, known := s.Versions.New(config.ConfigGroupResource)
	if !known {
		return s.findOther(config)
	}
	key := types.NamespacedName{Namespace: config.Namespace, Name: config.Name}
	err := s.Client.Get(ctx, key, object, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		return State{Missing: true}, nil, nil
	case err != nil:
		return State{}, nil, fmt.Errorf("reading %s: %w", Describe(config), err)
	}
	content, err := s.hash(config, object)
	if err != nil {
		return State{}, nil, fmt.Errorf("hashing %s: %w", Describe(config), err)
	}
	if refused := refusal(config, content.weight); refused != "" {
		return State{Refused: refused}, nil, nil
	}
	return State{Hash: content.hash, Generation: object.GetGeneration()}, object, nil
}

// refusal returns why a configuration is too large to be used. What is stored was used before, and is used still.
func refusal(config addonv1beta1.AddOnConfig, takes int) string {
	// A template of definitions takes four to fifteen times its JSON, of which there may be 1.4 MB.
	most := 8 << 20
	if config.ConfigGroupResource == confighash.Template() {
		most = 24 << 20
	}
	if takes <= most {
		return ""
	}
	return fmt.Sprintf("it takes about %d MiB of memory when it is decoded, and may take %d; "+
		"it has too many small values: divide it", takes>>20, most>>20)
}

// findOther is find for a config of any other kind.
func (s *Store) findOther(config addonv1beta1.AddOnConfig) (State, *unstructured.Unstructured, error) {
	if s.Others == nil {
		return State{Unread: "the hub manager reads AddOnTemplates and AddOnDeploymentConfigs only" + reportedElse}, nil, nil
	}
	found := s.Others.Get(refOf(config))
	switch found.Phase {
	case objectwatch.Missing:
		return State{Missing: true}, nil, nil
	case objectwatch.Unknown:
		if found.Cause.Reason == objectwatch.ShareExceeded {
			return State{Unread: fmt.Sprintf("the hub manager reads %d configurations of such kinds for an add-on on one "+
				"cluster, %d for all add-ons on one cluster, and %d for an add-on, and more are named; name fewer in "+
				"spec.configs, or let it watch more (--watched-configs; an add-on may have half of them)",
				maxOfCluster, maxOfTenant, mostOfAddOn(s.Limit))}, nil, nil
		}
		if found.Cause.Reason == objectwatch.LimitExceeded {
			return State{Unread: found.Cause.Message + "; name fewer, or let it watch more (--watched-configs)"}, nil, nil
		}
		return State{Unread: found.Cause.Message + reportedElse}, nil, nil
	case objectwatch.Found:
	}
	content, err := s.hash(config, found.Object)
	if err != nil {
		return State{}, nil, fmt.Errorf("hashing %s: %w", Describe(config), err)
	}
	return State{Hash: content.hash, Generation: found.Object.GetGeneration()}, found.Object, nil
}

// Want watches the configurations of other kinds that the specs of an add-on name, within its share and that of each
// cluster, and no others for it. No specs mean that the add-on is gone.
func (s *Store) Want(addOn string, named ...Named) {
	if s.Others == nil {
		return
	}
	s.wanting.Lock()
	defer s.wanting.Unlock()
	others, tenants := ofOtherKinds(named)
	if slices.EqualFunc(others, s.wants[addOn], Named.equal) {
		return // Nearly all passes, and the shares of all add-ons cost time in proportion to the fleet.
	}
	_, before := ofOtherKinds(s.wants[addOn])
	if s.wants == nil {
		s.wants = map[string][]Named{}
	}
	if s.wants[addOn] = others; len(others) == 0 {
		delete(s.wants, addOn)
		s.Others.Want(addOn, nil)
	}
	if !tenants && !before {
		watched, beyond := shares(others, mostOfAddOn(s.Limit), map[string]int{})
		s.Others.Want(addOn, watched, beyond...)
		return
	}
	// What one add-on leaves, another one on the same cluster gets. The order of names decides, so that it is the same
	// after a restart.
	used := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(s.wants)) {
		watched, beyond := shares(s.wants[name], mostOfAddOn(s.Limit), used)
		s.Others.Want(name, watched, beyond...)
	}
}

func refOf(config addonv1beta1.AddOnConfig) objectwatch.Ref {
	return objectwatch.Ref{
		Group: config.Group, Resource: config.Resource, Namespace: config.Namespace, Name: config.Name,
	}
}

// KeyOf returns the index key of a configuration of another kind.
func KeyOf(ref objectwatch.Ref) string {
	return confighash.Key(addonv1beta1.ConfigGroupResource{Group: ref.Group, Resource: ref.Resource},
		addonv1beta1.ConfigReferent{Namespace: ref.Namespace, Name: ref.Name})
}

// hash returns the hash of an object and what it takes, which every cluster needs and which is computed once.
func (s *Store) hash(config addonv1beta1.AddOnConfig, object *unstructured.Unstructured) (hashEntry, error) {
	entry := hashEntry{uid: object.GetUID(), resourceVersion: object.GetResourceVersion()}
	s.mu.Lock()
	known := s.hashes[keyOf(config)]
	s.mu.Unlock()
	if known.uid == entry.uid && known.resourceVersion == entry.resourceVersion && known.hash != "" {
		return known, nil
	}
	var err error
	if entry.hash, err = confighash.SpecHash(object); err != nil {
		return hashEntry{}, err
	}
	entry.weight = confighash.Weigh(object)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hashes == nil {
		s.hashes = map[string]hashEntry{}
	}
	s.hashes[keyOf(config)] = entry
	return entry, nil
}

// Drop forgets what is known of the present content of a configuration that changed or is gone, by its index key.
// A user who makes configurations and deletes them takes no memory.
func (s *Store) Drop(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.hashes, key)
}

// keyOf returns the index key of a configuration.
func keyOf(config addonv1beta1.AddOnConfig) string {
	return confighash.Key(config.ConfigGroupResource, config.ConfigReferent)
}

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

// Content is a configuration with its content.
type Content struct {
	Chosen
	// Object is the content; nil for a kind that the hub manager does not read. It must not be changed.
	Object *unstructured.Unstructured
}

// Present returns the present content of a configuration; nil when it does not exist.
func (s *Store) Present(ctx context.Context, config addonv1beta1.AddOnConfig) (*Content, error) {
	state, object, err := s.find(ctx, config)
	if err != nil || state.Missing {
		return nil, err
	}
	if state.Refused != "" {
		return nil, fmt.Errorf("%s cannot be used: %s", Describe(config), state.Refused)
	}
	c := Chosen{ConfigGroupResource: config.ConfigGroupResource, ConfigSpecHash: addonv1beta1.ConfigSpecHash{
		ConfigReferent: config.ConfigReferent, SpecHash: state.Hash,
	}}
	return &Content{Chosen: c, Object: object}, nil
}
