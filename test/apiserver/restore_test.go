package apiserver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestARestoreForgetsWhatWasSince(t *testing.T) {
	s := New(Options{})
	configMaps := clientOf(t, s).CoreV1().ConfigMaps("default")
	ctx := t.Context()
	owner, err := configMaps.Create(ctx, configMap("owner", "0"), metav1.CreateOptions{})
	require.NoError(t, err)
	owned := configMap("owned", "0")
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID}}
	_, err = configMaps.Create(ctx, owned, metav1.CreateOptions{})
	require.NoError(t, err)
	before, err := configMaps.List(ctx, metav1.ListOptions{})
	require.NoError(t, err)

	backup := s.Backup()
	_, err = configMaps.Update(ctx, configMap("owner", "1"), metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = configMaps.Create(ctx, configMap("later", "1"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, configMaps.Delete(ctx, "owned", metav1.DeleteOptions{}))
	watch, err := configMaps.Watch(ctx, metav1.ListOptions{ResourceVersion: before.ResourceVersion})
	require.NoError(t, err)
	s.Restore(backup)

	for range watch.ResultChan() { // it ends
		continue
	}
	after, err := configMaps.List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	assert.Equal(t, before.ResourceVersion, after.ResourceVersion, "versions go back")
	assert.Equal(t, before.Items, after.Items)
	require.NoError(t, configMaps.Delete(ctx, "owner", metav1.DeleteOptions{}))
	_, err = configMaps.Get(ctx, "owned", metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "what an object owns is known again")
}
