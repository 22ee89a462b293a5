package addonapi

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

var errUnserved = fmt.Errorf("failed to list: %w", apierrors.NewGenericServerResponse(404, "get",
	schema.GroupResource{Group: "addon.open-cluster-management.io", Resource: "managedclusteraddons"}, "", "", 0, true))

func TestIsUnserved(t *testing.T) {
	others := schema.GroupResource{Group: "cluster.open-cluster-management.io", Resource: "placements"}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"a version that is not served":    {errUnserved, true},
		"a 404 that names nothing":        {&apierrors.StatusError{ErrStatus: apierrors.NewNotFound(schema.GroupResource{}, "").ErrStatus}, true},
		"another kind that is not served": {apierrors.NewGenericServerResponse(404, "get", others, "", "", 0, true), false},
		"a right that is missing":         {apierrors.NewForbidden(others, "", errors.New("no")), false},
		"a hub that is away":              {errors.New("connection refused"), false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, isUnserved(tc.err)) })
	}
}

func TestVersionsNoticesAVersionThatIsNoLongerServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, wire, problem := 0, WireAlpha, error(nil)
		var told []string
		v := NewVersions()
		v.Wire = WireAlpha
		v.Detect = func() (Wire, error) { asked++; return wire, problem }
		v.Changed = func(now Wire) error { return fmt.Errorf("now %s", now) }
		v.Missing = func(why error) { told = append(told, fmt.Sprint(why)) }
		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { ended <- v.Start(ctx) }()
		fail := func(err error) {
			v.WatchError(ctx, cache.NewReflector(nil, nil, nil, 0), err)
			synctest.Wait()
		}

		fail(errors.New("connection refused"))
		assert.Zero(t, asked, "other errors are no reason to ask")
		for range 100 {
			fail(errUnserved)
		}
		assert.Equal(t, 1, asked, "many errors lead to one question")
		time.Sleep(time.Hour)
		assert.Equal(t, 2, asked, "and to another one after a pause")
		assert.Empty(t, told)

		problem = errors.New("neither is served")
		fail(errUnserved)
		time.Sleep(10 * time.Minute)
		assert.Greater(t, asked, 10, "while neither is served, it looks on")
		assert.Less(t, asked, 25)
		problem = nil
		time.Sleep(2 * time.Minute)
		assert.Equal(t, "<nil>", told[len(told)-1], "it is there again")
		before := asked
		time.Sleep(time.Hour)
		assert.Equal(t, before, asked)

		wire = WireBeta
		fail(errUnserved)
		time.Sleep(2 * time.Minute)
		require.ErrorContains(t, <-ended, "now v1beta1")
	})
}
