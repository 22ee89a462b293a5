package main

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// record is a ConfigMap on the hub in which the part of an add-on says what it did.
type record struct {
	namespace, name string
	labels          map[string]string
}

// write creates the ConfigMap with the data, or sets them in it.
func (r record) write(ctx context.Context, hub kubernetes.Interface, data map[string]string) error {
	configMaps := hub.CoreV1().ConfigMaps(r.namespace)
	found, err := configMaps.Get(ctx, r.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = configMaps.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: r.name, Labels: r.labels}, Data: data,
		}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("creating record %s/%s: %w", r.namespace, r.name, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading record %s/%s: %w", r.namespace, r.name, err)
	}
	merged := maps.Clone(found.Data)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, data)
	if maps.Equal(merged, found.Data) {
		return nil
	}
	found.Data = merged
	if _, err := configMaps.Update(ctx, found, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("updating record %s/%s: %w", r.namespace, r.name, err)
	}
	return nil
}
