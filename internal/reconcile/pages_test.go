package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// pager answers lists by what they continue.
type pager struct {
	client.Reader
	answer map[string]any
}

func (p pager) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(options)
	switch answer := p.answer[o.Continue].(type) {
	case error:
		return answer
	case metav1.PartialObjectMetadataList:
		list, is := into.(*metav1.PartialObjectMetadataList)
		if !is {
			return fmt.Errorf("nobody is to list %T", into)
		}
		answer.DeepCopyInto(list)
	}
	return nil
}

func TestAListThatExpiresGoesOn(t *testing.T) {
	page := func(name, more string) metav1.PartialObjectMetadataList {
		return metav1.PartialObjectMetadataList{
			ListMeta: metav1.ListMeta{Continue: more},
			Items:    []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: name}}},
		}
	}
	expired := func(more string) error {
		err := apierrors.NewResourceExpired("the list is too old")
		err.ErrStatus.Continue = more
		return err
	}
	for sentence, tc := range map[string]struct {
		answer map[string]any
		want   []string
		fails  bool
	}{
		"all pages":              {answer: map[string]any{"": page("a", "2"), "2": page("b", "")}, want: []string{"a", "b"}},
		"the second has expired": {answer: map[string]any{"": page("a", "2"), "2": expired("3"), "3": page("b", "")}, want: []string{"a", "b"}},
		"it expires at once again": {
			answer: map[string]any{"": page("a", "2"), "2": expired("2")}, want: []string{"a"}, fails: true,
		},
		"there is no way to go on": {
			answer: map[string]any{"": page("a", "2"), "2": expired("")}, want: []string{"a"}, fails: true,
		},
		"the hub is away": {answer: map[string]any{"": errors.New("away")}, fails: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			var got []string
			var failed error
			newPage := func() *metav1.PartialObjectMetadataList { return &metav1.PartialObjectMetadataList{} }
			for page, err := range reconcile.Pages(t.Context(), pager{answer: tc.answer}, newPage, client.Limit(1)) {
				if failed = err; err != nil {
					continue // it ends
				}
				for _, item := range page.Items {
					got = append(got, item.Name)
				}
			}
			assert.Equal(t, tc.fails, failed != nil)
			assert.Equal(t, tc.want, got)
		})
	}
}
