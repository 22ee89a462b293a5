package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func original(data string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "m", Labels: map[string]string{copyLabel: "true", "a": "b"}},
		Data:       map[string]string{"text": data},
	}
}

func owners() []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceAccount", Name: "hello-agent", UID: "1"}}
}

func copyOf(t *testing.T, o *corev1.ConfigMap) *corev1.ConfigMap {
	t.Helper()
	step, made := decide(o, nil, "ns", owners())
	require.Equal(t, create, step)
	made.ResourceVersion = "7"
	return made
}

func TestDecide(t *testing.T) {
	immutable := copyOf(t, original("old"))
	immutable.Immutable = new(true)
	going := original("x")
	going.DeletionTimestamp = &metav1.Time{Time: metav1.Now().Time}
	orphaned := copyOf(t, original("x"))
	orphaned.OwnerReferences = nil
	relabelled := copyOf(t, original("x"))
	relabelled.Labels["a"] = "drifted"
	tests := map[string]struct {
		original, copied *corev1.ConfigMap
		want             step
	}{
		"neither exists":                        {nil, nil, nothing},
		"the original is new":                   {original("x"), nil, create},
		"the copy is as the original":           {original("x"), copyOf(t, original("x")), nothing},
		"the original changed":                  {original("y"), copyOf(t, original("x")), update},
		"somebody changed the copy":             {original("x"), relabelled, update},
		"the copy lost its owner":               {original("x"), orphaned, update},
		"an immutable copy is out of date":      {original("new"), immutable, remove},
		"the original is gone":                  {nil, copyOf(t, original("x")), remove},
		"the original is going":                 {going, copyOf(t, original("x")), remove},
		"the original went before it was there": {going, nil, nothing},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			step, object := decide(tc.original, tc.copied, "ns", owners())
			assert.Equal(t, tc.want, step)
			if step == create || step == update {
				assert.Equal(t, "ns", object.Namespace)
				assert.Equal(t, tc.original.Data, object.Data)
				assert.Equal(t, owners(), object.OwnerReferences)
				assert.Equal(t, map[string]string{copiedLabel: "true", "a": "b"}, object.Labels)
			}
			if step == update {
				assert.Equal(t, "7", object.ResourceVersion, "an update is guarded by what was seen")
			}
		})
	}
}

func TestOptionsSayWhatIsMissing(t *testing.T) {
	require.ErrorContains(t, options{}.validate(), "--cluster-name")
	require.ErrorContains(t, options{Cluster: "c1"}.validate(), "--hub-kubeconfig")
	require.NoError(t, options{Cluster: "c1", HubKubeconfig: "/x"}.validate())
}
