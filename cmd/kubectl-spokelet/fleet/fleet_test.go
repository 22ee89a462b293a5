package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// noon is the time of the tests.
func noon() time.Time { return time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC) }

// failing is a source that answers with an error.
type failing struct{ err error }

func (f failing) Pages(context.Context, Query) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) { yield(nil, f.err) }
}
func (failing) Version(context.Context) (string, error) { return "v1.37.0", nil }
func (failing) Name() string                            { return "failing" }

func TestWhatCannotBeReadIsAGapOrTheEnd(t *testing.T) {
	of := schema.GroupResource{Resource: "things"}
	forbidden := apierrors.NewForbidden(of, "", errors.New("no"))
	for sentence, tc := range map[string]struct {
		err     error
		cluster bool
		q       Query
		gap     Gap
		is      error
	}{
		"what a person may not read is a gap with the rule": {
			err: forbidden, q: Query{Resource: Events(), Namespace: "ns"},
			gap: Gap{What: "events in namespace ns", Rule: `{apiGroups: [""], resources: [events], verbs: [list]}`},
		},
		"the rule for a Secret names it": {
			err: forbidden, cluster: true, q: Query{Resource: Secrets(), Namespace: "ns", Name: "one"},
			gap: Gap{
				What: "secrets in namespace ns", Cluster: true,
				Rule: `{apiGroups: [""], resources: [secrets], resourceNames: [one], verbs: [list]}`,
			},
		},
		"what a hub does not serve is missing": {
			err: apierrors.NewNotFound(of, ""), q: Query{Resource: Records()},
			gap: Gap{What: "appliedmanifestworks.work.open-cluster-management.io", Missing: true, Why: "the hub does not serve it"},
		},
		"what a cluster does not serve is missing there": {
			err: apierrors.NewNotFound(of, ""), cluster: true, q: Query{Resource: Pods()},
			gap: Gap{What: "pods", Missing: true, Cluster: true, Why: "the cluster does not serve it"},
		},
		"a hub that does not answer is the end":           {err: errors.New("refused"), q: Query{Resource: Pods()}, is: ErrUnreachable},
		"so is a cluster, and it is told from the hub":    {err: errors.New("refused"), cluster: true, is: ErrClusterUnreachable},
		"a cluster that refuses the person says no more":  {err: apierrors.NewUnauthorized("who"), cluster: true, is: ErrClusterRefused},
		"a hub that does not know the person is no ruin":  {err: apierrors.NewUnauthorized("who"), is: ErrRefused},
		"an answer of an overloaded hub is no right lost": {err: apierrors.NewTooManyRequests("later", 1), is: ErrUnreachable},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := &Reader{Source: failing{tc.err}, Cluster: tc.cluster}
			for range 2 {
				_, err := Read[Event](t.Context(), r, tc.q)
				if tc.is != nil {
					require.ErrorContains(t, err, tc.is.Error())
					assert.Empty(t, r.Gaps)
					continue
				}
				require.NoError(t, err)
				require.Len(t, r.Gaps, 1, "the same is told once")
				if tc.gap.Why == "" {
					tc.gap.Why = tc.err.Error()
				}
				assert.Equal(t, tc.gap, r.Gaps[0])
				assert.True(t, r.Lacks(tc.q.Resource.Plural))
				assert.False(t, r.Lacks(tc.q.Resource.Plural[1:]))
				assert.False(t, r.Lacks(tc.q.Resource.Plural[:3]), "the name of another resource may begin so")
			}
		})
	}
}

func TestWhenAndHowOftenAnEventHappened(t *testing.T) {
	for sentence, tc := range map[string]struct {
		event        string
		began, ended time.Time
		times        int
		from         string
	}{
		"an Event of the older API": {
			`{"firstTimestamp": "2026-11-29T11:00:00Z", "lastTimestamp": "2026-11-29T12:00:00Z", "count": 7, "source": {"component": "c"}}`,
			noon().Add(-time.Hour), noon(), 7, "c",
		},
		"an Event of the newer API": {
			`{"eventTime": "2026-11-29T12:00:00.000000Z", "firstTimestamp": null, "reportingComponent": "r", "source": {}}`,
			noon(), noon(), 1, "r",
		},
		"an Event of the newer API that happened again": {
			`{"eventTime": "2026-11-29T11:00:00.000000Z", "series": {"count": 3, "lastObservedTime": "2026-11-29T12:00:00.000000Z"}}`,
			noon().Add(-time.Hour), noon(), 3, "",
		},
		"an Event that says nothing happened when it was made": {
			`{"metadata": {"creationTimestamp": "2026-11-29T12:00:00Z"}}`, noon(), noon(), 1, "",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			var e Event
			require.NoError(t, json.Unmarshal([]byte(tc.event), &e))
			assert.Equal(t, tc.began, e.Began().UTC())
			assert.Equal(t, tc.ended, e.Ended().UTC())
			assert.Equal(t, tc.times, e.Times())
			assert.Equal(t, tc.from, e.From())
		})
	}
}

func TestWhichKindsAreThoseOfAFleet(t *testing.T) {
	assert.True(t, OfFleet("work.open-cluster-management.io/v1", "ManifestWork"))
	assert.True(t, OfFleet("certificates.k8s.io/v1", "CertificateSigningRequest"))
	assert.False(t, OfFleet("v1", "Pod"))
	assert.False(t, OfFleet("open-cluster-management.io.example.com/v1", "Pod"))
}

func TestTheFieldsOfAQuery(t *testing.T) {
	const object = `{"type": "Warning", "involvedObject": {"kind": "Pod"}}`
	for sentence, tc := range map[string]struct {
		fields map[string]string
		want   bool
	}{
		"none means any":                 {nil, true},
		"a field of the object":          {map[string]string{"type": "Warning"}, true},
		"a field of a field":             {map[string]string{"involvedObject.kind": "Pod"}, true},
		"all of them have to fit":        {map[string]string{"type": "Warning", "involvedObject.kind": "Job"}, false},
		"a field that is not there":      {map[string]string{"involvedObject.name": "x"}, false},
		"a field of what has no fields":  {map[string]string{"type.name": "x"}, false},
		"an empty value of what is gone": {map[string]string{"reason": ""}, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, tc.want, matchesFields([]byte(object), tc.fields))
		})
	}
	assert.False(t, matchesFields([]byte("not json"), map[string]string{"a": "b"}))
}

func TestWhatABundleLeavesOut(t *testing.T) {
	for sentence, tc := range map[string]struct{ before, after string }{
		"the content of manifests": {
			`{"spec": {"workload": {"manifests": [{"kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "b"}}]}}}`,
			`{"spec": {"workload": {"manifests": [{"apiVersion": null, "kind": "Secret", "metadata": {"name": "s", "namespace": null}}]}}}`,
		},
		"annotations that no command reads: what kubectl and others applied last, and values": {
			`{"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "x", "kapp.k14s.io/original": "x",
				"a.io/values": "x", "addon.open-cluster-management.io/hosting-cluster-name": "c"}}}`,
			`{"metadata": {"annotations": {"addon.open-cluster-management.io/hosting-cluster-name": "c"}}}`,
		},
		"who wrote which field": {`{"metadata": {"name": "n", "managedFields": []}}`, `{"metadata": {"name": "n"}}`},
		"values that agents report": {
			`{"status": {"resourceStatus": {"manifests": [{"statusFeedback": {}, "conditions": []}]}}}`,
			`{"status": {"resourceStatus": {"manifests": [{"conditions": []}]}}}`,
		},
		"certificates and their requests": {
			`{"spec": {"request": "x", "extra": {}, "username": "u"}, "status": {"certificate": "x"}}`,
			`{"spec": {"username": "u"}, "status": {"certificate": "bGVmdCBvdXQ="}}`,
		},
		"no certificate where there is none": {
			`{"spec": {"request": "x"}, "status": {"certificate": ""}}`, `{"spec": {}, "status": {"certificate": ""}}`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			var object map[string]any
			require.NoError(t, json.Unmarshal([]byte(tc.before), &object))
			redact(object)
			raw, err := json.Marshal(object)
			require.NoError(t, err)
			assert.JSONEq(t, tc.after, string(raw))
		})
	}
}

func TestABundleSaysWhatItLacks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.tgz")
	var packed bytes.Buffer
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("no"))
	gaps, err := WriteBundle(t.Context(), failing{forbidden}, &packed, noon())
	require.NoError(t, err)
	assert.Len(t, gaps, len(resources())+len(ofState())+1, "also the Leases of hub managers, which are asked for apart")
	require.NoError(t, os.WriteFile(file, packed.Bytes(), 0o600))
	b, err := OpenBundle(file)
	require.NoError(t, err)
	assert.Equal(t, noon(), b.Taken())
	assert.Equal(t, "failing in "+file, b.Name())
	r := &Reader{Source: b}
	_, err = List[Cluster](t.Context(), r, Query{})
	require.NoError(t, err)
	assert.True(t, r.Lacks("managedclusters"), "what could not be read then cannot be read now")
	_, err = r.OpenLog(t.Context(), LogOptions{})
	require.NoError(t, err)
	assert.True(t, r.Lacks("logs"))
	for _, err := range Changes[Event](t.Context(), r, Query{Resource: Events()}, nil) {
		require.ErrorContains(t, err, "does not change")
	}
}

// The hub manager converts between the versions of the add-on API. While it does not run, the stored one can be read.
func TestAddOnsAreReadWithoutTheHubManager(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/apis/addon.open-cluster-management.io":
			_, _ = w.Write([]byte(`{"versions": [{"version": "v1beta1"}, {"version": "v1alpha1"}]}`))
		case "/apis/addon.open-cluster-management.io/v1alpha1/managedclusteraddons":
			_, _ = w.Write([]byte(`{"metadata": {}, "items": [{"metadata": {"name": "a"}}]}`))
		default:
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "InternalError",
				"code": 500, "message": "conversion webhook for ManagedClusterAddOn failed: connection refused"}`))
		}
	}))
	defer server.Close()
	hub, err := NewHub(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	r := &Reader{Source: hub}
	found, err := List[AddOn](t.Context(), r, Query{})
	require.NoError(t, err)
	assert.Len(t, found, 1)
	assert.Empty(t, r.Gaps)
	_, err = List[Cluster](t.Context(), r, Query{})
	require.ErrorIs(t, err, ErrUnreachable, "of others, that is an error as before")
}
