package work

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/feedback"
)

func TestWhichErrorsLast(t *testing.T) {
	maps := schema.GroupResource{Resource: "configmaps"}
	forbidden := apierrors.NewForbidden(maps, "a", errors.New("exceeded quota"))
	down := errors.New("connection refused")
	going := apierrors.NewForbidden(maps, "a", errors.New("its namespace is being terminated"))
	going.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":                             {nil, false},
		"a right or a quota":                  {forbidden, true},
		"an object that is invalid":           {apierrors.NewInvalid(schema.GroupKind{}, "a", nil), true},
		"a request that is not understood":    {apierrors.NewBadRequest("strict decoding error"), true},
		"a verb that the kind does not have":  {apierrors.NewMethodNotSupported(maps, "update"), true},
		"an object that is too large":         {apierrors.NewRequestEntityTooLargeError("no"), true},
		"an options error":                    {&failure{message: "x"}, true},
		"one that is wrapped":                 {fmt.Errorf("creating: %w", forbidden), true},
		"a namespace that is missing":         {apierrors.NewNotFound(maps, "a"), false},
		"a namespace that is going":           {going, false},
		"a conflict":                          {apierrors.NewConflict(maps, "a", down), false},
		"a server that is busy":               {apierrors.NewTooManyRequests("later", 1), false},
		"a server that fails":                 {apierrors.NewInternalError(down), false},
		"a token that has expired":            {apierrors.NewUnauthorized("who"), false},
		"a server that is away":               {down, false},
		"a refusal, and no read either":       {unreadableError{because: forbidden, read: down}, true},
		"a failure, although a read was fine": {unreadableError{because: down, read: forbidden}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := lastingFailure(c.err)
			assert.Equal(t, c.want, got != nil)
			if got != nil {
				assert.Equal(t, c.err.Error(), got.Error())
			}
		})
	}
}

func TestHowLongARefusedManifestWaits(t *testing.T) {
	for name, c := range map[string]struct {
		refusedFor time.Duration
		least, max time.Duration
	}{
		"at first a moment":                 {0, firstRetry, firstRetry},
		"then as long as it was refused":    {10 * time.Second, 10 * time.Second, 10 * time.Second},
		"for a minute":                      {time.Minute, time.Minute, time.Minute},
		"in the end as rarely as a recheck": {24 * time.Hour, recheckPause, recheckPause + recheckPause/2},
	} {
		t.Run(name, func(t *testing.T) {
			one := taskOn("configmaps", "a")
			one.prior = record{failure: &failure{}, checked: asked.Add(c.refusedFor), refused: asked}
			pause := one.retryAt().Sub(one.prior.checked)
			assert.GreaterOrEqual(t, pause, c.least)
			assert.LessOrEqual(t, pause, c.max)
		})
	}
}

// refusedTask applies a ConfigMap that the API server refuses to update, at an instant, after prior.
func refusedTask(t *testing.T, now time.Time, prior record, change ...func(*task)) (result, record) {
	t.Helper()
	live := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: app, uid: u, resourceVersion: "7"},
		data: {k: theirs}}`)
	c := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
	c.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetVerb() == "get" {
			return true, live.DeepCopy(), nil
		}
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("no"))
	})
	one := taskOn("configmaps", "a", change...)
	one.raw = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"app"},"data":{"k":"v"}}`)
	one.now, one.prior, one.expected, one.heard = now, prior, true, newsChanged
	one.owner = ownerReference("applied", "o")
	res, rec, noted := (&applier{spoke: spoke{client: c}, evaluator: feedback.New(false, 0)}).apply(t.Context(), one)
	require.True(t, noted)
	return res, rec
}

func TestARefusalIsRememberedWithItsBeginning(t *testing.T) {
	res, first := refusedTask(t, asked, record{})
	require.ErrorContains(t, res.err, "forbidden")
	assert.True(t, res.lasting)
	assert.Equal(t, presencePresent, res.presence)
	assert.Equal(t, asked, first.refused)
	assert.Equal(t, asked.Add(firstRetry), res.wake)

	later := asked.Add(time.Minute)
	res, second := refusedTask(t, later, first)
	assert.Equal(t, asked, second.refused, "it is refused since then")
	assert.Equal(t, later.Add(time.Minute), res.wake)

	_, other := refusedTask(t, later, first, func(t *task) { t.wish.content[0]++ })
	assert.Equal(t, later, other.refused, "another manifest begins anew")
}

func TestWhatARefusedManifestIsNot(t *testing.T) {
	_, rec := refusedTask(t, asked, record{})
	one := taskOn("configmaps", "a")
	one.prior, one.owner = rec, ownerReference("applied", "o")
	assert.True(t, one.holds(), "nothing is asked again before its time")
	assert.False(t, one.granted(), "but it is not applied, so that applying it later is no repair")
	live := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"k": "theirs"}}}
	assert.False(t, one.settled(live), "nor is the content of the object known to be what the API server made of it")
	one.frozen = true
	one.freeze()
	assert.True(t, one.wish.frozen, "a manifest that is complete is not held up by a refusal of before")
	assert.False(t, one.holds())
}

func TestAnObjectThatCouldNotBeReadIsUnknown(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("no"))
	one := taskOn("configmaps", "a")
	a := &applier{evaluator: feedback.New(false, 0)}
	one.prior = a.record(t.Context(), one, nil, unreadableError{read: forbidden})
	res := recorded(one)
	assert.Equal(t, presenceUnknown, res.presence)
	assert.Equal(t, forbidden, res.readErr)
	require.EqualError(t, res.err, forbidden.Error())
	assert.True(t, res.lasting)
	reason, message := appliedFailure(res.err)
	assert.Equal(t, workv1.AppliedManifestFailed, reason)
	assert.Equal(t, "Failed to apply manifest: "+forbidden.Error(), message)
}

func TestWhatIsToldOfAListThatCannotBeWritten(t *testing.T) {
	listed := schema.GroupResource{Group: "work.open-cluster-management.io", Resource: "appliedmanifestworks"}
	missing := apierrors.NewGenericServerResponse(404, "create", listed, "", "the server could not find it", 0, true)
	for name, c := range map[string]struct {
		err     error
		says    string
		lasting bool
	}{
		"a right is missing": {
			apierrors.NewForbidden(listed, "x", errors.New(`User "agent" cannot create resource`)), "; grant the agent ", false,
		},
		"a webhook refuses it": {
			apierrors.NewForbidden(listed, "x", errors.New("admission webhook denied the request")),
			"; correct what refuses it on the managed cluster", false,
		},
		"it is invalid":               {apierrors.NewInvalid(schema.GroupKind{}, "x", nil), "; correct what refuses it", false},
		"its kind is not served":      {missing, "; install the CustomResourceDefinition", false},
		"its kind is not known":       {&meta.NoKindMatchError{}, "; install the CustomResourceDefinition", false},
		"the name is too long":        {nameFailure("w", strings.Repeat("x", 254)), "; create the work under a shorter", true},
		"it went meanwhile":           {apierrors.NewNotFound(listed, "x"), "", false},
		"somebody else changed it":    {apierrors.NewConflict(listed, "x", errors.New("newer")), "", false},
		"the API server is not there": {errors.New("connection refused"), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			applied, lasting := unlistedCondition(fmt.Errorf("creating the AppliedManifestWork: %w", c.err))
			assert.Equal(t, c.lasting, lasting)
			if c.says == "" {
				assert.Nil(t, applied, "it may be another matter the next moment")
				return
			}
			require.NotNil(t, applied)
			assert.Equal(t, "AppliedManifestWorkFailed", applied.Reason)
			assert.Contains(t, applied.Message, "Failed to apply manifest work: ")
			assert.Contains(t, applied.Message, c.says)
		})
	}
	assert.Nil(t, nameFailure("w", strings.Repeat("x", 253)))
}
