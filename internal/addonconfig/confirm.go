package addonconfig

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/objectwatch"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Confirm returns an error, which is a lost race, if a configuration that States has read is not the one that the API
// server has. It is asked when another content or a later generation was seen before: a cache may be behind, or the
// configuration was created again. Each version is asked for once.
func (s *Store) Confirm(ctx context.Context, config addonv1beta1.AddOnConfig) error {
	kind, read := s.kindOf(config)
	s.mu.Lock()
	cached := s.hashes[keyOf(config)]
	s.mu.Unlock()
	if s.Live == nil || !read || cached.confirmed {
		return nil
	}
	var live metav1.PartialObjectMetadataList
	live.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := s.Live.List(ctx, &live, client.InNamespace(config.Namespace),
		client.MatchingFields{metav1.ObjectNameField: config.Name})
	switch {
	case apierrors.IsForbidden(err): // One object can be watched without the right to list it.
		return nil
	case err != nil:
		return fmt.Errorf("confirming the present content of %s: %w", Describe(config), err)
	}
	if len(live.Items) != 1 || live.Items[0].UID != cached.uid || live.Items[0].ResourceVersion != cached.resourceVersion {
		return reconcile.Behind(config.Group, config.Resource, config.Name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hashes[keyOf(config)] == cached {
		cached.confirmed = true
		s.hashes[keyOf(config)] = cached
	}
	return nil
}

// kindOf returns the kind of a configuration, if it is one of those that are read.
func (s *Store) kindOf(config addonv1beta1.AddOnConfig) (schema.GroupVersionKind, bool) {
	if object, known := s.Versions.New(config.ConfigGroupResource); known {
		return object.GroupVersionKind(), true
	}
	if s.Others == nil {
		return schema.GroupVersionKind{}, false
	}
	found := s.Others.Get(refOf(config))
	if found.Phase != objectwatch.Found {
		return schema.GroupVersionKind{}, false
	}
	return found.Object.GroupVersionKind(), true
}
