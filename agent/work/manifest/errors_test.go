package manifest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWhichErrorsArePermanent(t *testing.T) {
	maps := schema.GroupResource{Resource: "configmaps"}
	forbidden := apierrors.NewForbidden(maps, "a", errors.New("exceeded quota"))
	down := errors.New("connection refused")
	going := apierrors.NewForbidden(maps, "a", errors.New("its namespace is being terminated"))
	going.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":                            {nil, false},
		"a right or a quota":                 {forbidden, true},
		"an object that is invalid":          {apierrors.NewInvalid(schema.GroupKind{}, "a", nil), true},
		"a request that is not understood":   {apierrors.NewBadRequest("strict decoding error"), true},
		"a verb that the kind does not have": {apierrors.NewMethodNotSupported(maps, "update"), true},
		"an object that is too large":        {apierrors.NewRequestEntityTooLargeError("no"), true},
		"an options error":                   {&PermanentError{Message: "x"}, true},
		"one that is wrapped":                {fmt.Errorf("creating: %w", forbidden), true},
		"a namespace that is missing":        {apierrors.NewNotFound(maps, "a"), false},
		"a namespace that is going":          {going, false},
		"a conflict":                         {apierrors.NewConflict(maps, "a", down), false},
		"a server that is busy":              {apierrors.NewTooManyRequests("later", 1), false},
		"a server that fails":                {apierrors.NewInternalError(down), false},
		"a token that has expired":           {apierrors.NewUnauthorized("who"), false},
		"a server that is away":              {down, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := AsFailure(c.err)
			assert.Equal(t, c.want, got != nil)
			if got != nil {
				assert.Equal(t, c.err.Error(), got.Error())
			}
		})
	}
}
