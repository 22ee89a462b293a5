package reconcile_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/internal/reconcile"
)

func TestMetadataIsPatchedByWhatChanges(t *testing.T) {
	before := func() *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: "n", UID: "u", Labels: map[string]string{"keep": "it", "a/b~c": "old"}, Finalizers: []string{"x/y"},
		}}
	}
	for sentence, tc := range map[string]struct {
		was, is func(*corev1.Node)
		// ops are the operations after the test of the UID.
		ops string
		// others holds what another client did in between, and fits whether the patch goes on.
		others func(*corev1.Node)
		fits   bool
	}{
		"nothing changes": {is: func(*corev1.Node) {}, fits: true},
		"a label changes, whose key is no JSON pointer": {
			is: func(n *corev1.Node) { n.Labels["a/b~c"] = "new" }, fits: true,
			ops: `[{"op":"test","path":"/metadata/labels/a~1b~0c","value":"old"},` +
				`{"op":"replace","path":"/metadata/labels/a~1b~0c","value":"new"}]`,
		},
		"a label comes, and another client writes another one and the status": {
			is: func(n *corev1.Node) { n.Labels["new"] = "1" }, fits: true,
			others: func(n *corev1.Node) { n.Labels["keep"], n.Status.Phase = "other", "Running" },
			ops: `[{"op":"test","path":"/metadata/labels/new","value":null},` +
				`{"op":"add","path":"/metadata/labels/new","value":"1"}]`,
		},
		"a label goes that another client changed": {
			is: func(n *corev1.Node) { delete(n.Labels, "keep") }, others: func(n *corev1.Node) { n.Labels["keep"] = "other" },
			ops: `[{"op":"test","path":"/metadata/labels/keep","value":"it"},{"op":"remove","path":"/metadata/labels/keep"}]`,
		},
		"the first annotation": {
			is: func(n *corev1.Node) { n.Annotations = map[string]string{"k": "v"} }, fits: true,
			ops: `[{"op":"test","path":"/metadata/annotations","value":null},` +
				`{"op":"add","path":"/metadata/annotations","value":{"k":"v"}}]`,
		},
		"the first annotation that the cache has, beside one that it does not keep": {
			is: func(n *corev1.Node) { metav1.SetMetaDataAnnotation(&n.ObjectMeta, "k", "v") }, fits: true,
			others: func(n *corev1.Node) { n.Annotations = map[string]string{"of": "others"} },
		},
		"the last finalizer goes": {
			is: func(n *corev1.Node) { n.Finalizers = nil }, fits: true,
			ops: `[{"op":"test","path":"/metadata/finalizers","value":["x/y"]},{"op":"remove","path":"/metadata/finalizers"}]`,
		},
		"a finalizer goes, and another client added one": {
			is: func(n *corev1.Node) { n.Finalizers = nil }, others: func(n *corev1.Node) { n.Finalizers = append(n.Finalizers, "o/o") },
		},
		"a finalizer comes": {is: func(n *corev1.Node) { n.Finalizers = append(n.Finalizers, "z/z") }, fits: true},
		"it is another object of the name": {
			is: func(n *corev1.Node) { n.Labels["keep"] = "not" }, others: func(n *corev1.Node) { n.UID = "other" },
		},
		"it has another generation": {
			was: func(n *corev1.Node) { n.Generation = 1 }, is: func(n *corev1.Node) { n.Labels["keep"] = "not" },
			others: func(n *corev1.Node) { n.Generation = 2 },
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			cached := before()
			if tc.was != nil {
				tc.was(cached)
			}
			live := cached.DeepCopy()
			if tc.others != nil {
				tc.others(live)
			}
			var sent []types.PatchType
			c := fake.NewClientBuilder().WithObjects(live).WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
					sent = append(sent, p.Type())
					raw, err := p.Data(o)
					require.NoError(t, err)
					if tc.ops != "" && p.Type() == types.JSONPatchType {
						var all []json.RawMessage
						require.NoError(t, json.Unmarshal(raw, &all))
						assert.JSONEq(t, `{"op":"test","path":"/metadata/uid","value":"u"}`, string(all[0]))
						rest, err := json.Marshal(all[1:])
						require.NoError(t, err)
						assert.JSONEq(t, tc.ops, string(rest))
					}
					err = c.Patch(ctx, o, p, opts...)
					if err != nil && p.Type() == types.JSONPatchType { // An API server says so.
						return &apierrors.StatusError{ErrStatus: metav1.Status{Code: 422, Reason: metav1.StatusReasonInvalid, Message: err.Error()}}
					}
					return err
				},
			}).Build()
			// The cache has the version before the other write.
			cached.ResourceVersion = "1"
			after := cached.DeepCopy()
			tc.is(after)
			changed, err := reconcile.PatchMetadata(t.Context(), c, cached, after)
			if !tc.fits {
				assert.True(t, apierrors.IsConflict(err), "%v", err)
				assert.Equal(t, []types.PatchType{types.JSONPatchType, types.MergePatchType}, sent)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, len(sent) > 0, changed)
			assert.Equal(t, sentence != "nothing changes", changed)
			var stored corev1.Node
			require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(cached), &stored))
			want := live.DeepCopy()
			tc.is(want)
			assert.Equal(t, want.Labels, stored.Labels)
			assert.Equal(t, want.Annotations, stored.Annotations)
			assert.Len(t, stored.Finalizers, len(want.Finalizers))
		})
	}
}
