package addonconfig

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/confighash"
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
