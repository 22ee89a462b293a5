package fleet

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// answers is an API server; it returns a reader of it.
func answers(t *testing.T, handler http.HandlerFunc) *Reader {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		handler(w, r)
	}))
	t.Cleanup(server.Close)
	hub, err := NewHub(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	return &Reader{Source: hub}
}

// refuses answers with a Status, which may offer a token.
func refuses(w http.ResponseWriter, code int, reason, token string) {
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "metadata": {"continue": %q}, "status": "Failure", "reason": %q,
		"code": %d, "message": %q}`, token, reason, code, reason)
}

// namesOf are the names of clusters.
func namesOf(all []Cluster) string {
	var names []string
	for i := range all {
		names = append(names, all[i].Metadata.Name)
	}
	return strings.Join(names, " ")
}

// A token lives for minutes. The API server may offer another one, with which the list goes on where it was. Where it
// does not, or where the other one has ended, too, the list begins again in one page.
func TestAListWhoseTokenEnded(t *testing.T) {
	for sentence, tc := range map[string]struct {
		offers map[string]string
		want   []string
	}{
		"it goes on with the token that is offered": {
			offers: map[string]string{"1": "1-now"}, want: []string{"500 ", "500 1", "500 1-now"},
		},
		"it begins again where none is offered": {
			offers: map[string]string{"1": ""}, want: []string{"500 ", "500 1", " "},
		},
		"it begins again where the token that is offered is of no use": {
			offers: map[string]string{"1": "2", "2": "3"}, want: []string{"500 ", "500 1", "500 2", " "},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			var asked []string
			r := answers(t, func(w http.ResponseWriter, r *http.Request) {
				limit, token := r.URL.Query().Get("limit"), r.URL.Query().Get("continue")
				asked = append(asked, limit+" "+token)
				offered, ended := tc.offers[token]
				switch {
				case ended:
					refuses(w, http.StatusGone, "Expired", offered)
				case limit == "":
					fmt.Fprint(w, `{"metadata": {}, "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]}`)
				case token == "":
					fmt.Fprint(w, `{"metadata": {"continue": "1"}, "items": [{"metadata": {"name": "a"}}]}`)
				default:
					fmt.Fprint(w, `{"metadata": {}, "items": [{"metadata": {"name": "b"}}]}`)
				}
			})
			found, err := List[Cluster](t.Context(), r, Query{})
			require.NoError(t, err)
			assert.Equal(t, "a b", namesOf(found), "each once")
			assert.Equal(t, tc.want, asked)
			raw, err := Raw(t.Context(), r, Query{Resource: ResourceOf[Cluster]()}, Query{Resource: ResourceOf[Cluster]()})
			require.NoError(t, err)
			assert.Len(t, raw, 4)
			var packed bytes.Buffer
			_, err = WriteBundle(t.Context(), onlyClusters{r.Source}, &packed, noon())
			require.NoError(t, err)
			file := filepath.Join(t.TempDir(), "x.tgz")
			require.NoError(t, os.WriteFile(file, packed.Bytes(), 0o600))
			bundle, err := OpenBundle(file)
			require.NoError(t, err)
			found, err = List[Cluster](t.Context(), &Reader{Source: bundle}, Query{})
			require.NoError(t, err)
			assert.Equal(t, "a b", namesOf(found))
		})
	}
	r := answers(t, func(w http.ResponseWriter, _ *http.Request) { refuses(w, http.StatusGone, "Expired", "") })
	_, err := List[Cluster](t.Context(), r, Query{})
	require.ErrorIs(t, err, ErrUnreachable, "a list that never comes is not empty")
}

// Some hubs serve resources of add-ons in the older version alone, and newer ones will serve the newer version alone.
func TestAResourceOfTheOtherVersionIsRead(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		r := answers(t, func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/apis/addon.open-cluster-management.io":
				fmt.Fprint(w, `{"versions": [{"version": "v1beta1"}, {"version": "v1alpha1"}]}`)
			case "/apis/addon.open-cluster-management.io/" + version + "/managedclusteraddons":
				fmt.Fprint(w, `{"metadata": {}, "items": [{"metadata": {"name": "a"}}]}`)
			default:
				refuses(w, http.StatusNotFound, "NotFound", "")
			}
		})
		found, err := List[AddOn](t.Context(), r, Query{})
		require.NoError(t, err)
		assert.Len(t, found, 1, version)
		assert.Empty(t, r.Gaps)
		_, err = List[Definition](t.Context(), r, Query{})
		require.NoError(t, err)
		assert.True(t, r.Lacks("clustermanagementaddons"), "one of neither version is a gap")
	}
}

// again is a pause that takes no time.
func again(context.Context, time.Duration) error { return nil }

// A watch goes on for as long as the hub may answer again, and tells an outage once.
func TestAWatchGoesOn(t *testing.T) {
	const added = `{"type": "ADDED", "object": {"metadata": {"name": "a"}}}`
	watches := 0
	r := answers(t, func(w http.ResponseWriter, _ *http.Request) {
		switch watches++; watches {
		case 1, 2:
			refuses(w, http.StatusServiceUnavailable, "ServiceUnavailable", "")
		case 3:
			const bad = `{"type": "ADDED", "object": {"metadata": {"name": "b"}, "lastTimestamp": "10000-01-01T00:00:00Z"}}`
			fmt.Fprint(w, bad, bad, added, `{"type": "ERROR", "object": {"reason": "Expired", "code": 410}}`)
		default:
			refuses(w, http.StatusUnauthorized, "Unauthorized", "")
		}
	})
	var told []string
	for event, err := range Changes[Event](t.Context(), r, Query{Resource: Events()}, again) {
		if err != nil {
			told = append(told, err.Error())
		} else {
			told = append(told, event.Metadata.Name)
		}
	}
	require.Len(t, told, 4, "%v", told)
	assert.Contains(t, told[0], ErrUnreachable.Error())
	assert.Contains(t, told[1], ErrUndecodable.Error()+", b", "told once")
	assert.Equal(t, "a", told[2], "and it hides no other")
	assert.Contains(t, told[3], ErrRefused.Error(), "which time does not mend")
	assert.Equal(t, []string{"b"}, r.Gaps[0].Objects)

	for sentence, tc := range map[string]struct {
		answer func(http.ResponseWriter)
		told   error
		gaps   int
	}{
		"a resource that is not served":   {answer: func(w http.ResponseWriter) { refuses(w, http.StatusNotFound, "NotFound", "") }, gaps: 1},
		"a right that is missing":         {answer: func(w http.ResponseWriter) { refuses(w, http.StatusForbidden, "Forbidden", "") }, gaps: 1},
		"an answer that is not an object": {answer: func(w http.ResponseWriter) { fmt.Fprint(w, `{"type": "ERROR", "object": 7}`) }, told: errMalformed},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := answers(t, func(w http.ResponseWriter, _ *http.Request) { tc.answer(w) })
			var last error
			for _, last = range Changes[Event](t.Context(), r, Query{Resource: Events()}, again) {
				require.Error(t, last)
			}
			require.ErrorIs(t, last, tc.told)
			assert.Len(t, r.Gaps, tc.gaps)
		})
	}
}

// A bundle is refused before it takes the memory.
func TestABundleThatIsTooLarge(t *testing.T) {
	var packed bytes.Buffer
	const size = 3 << 20
	members := map[string][]byte{fileOf(ResourceOf[Cluster]()): bytes.Repeat([]byte(" "), size), aboutFile: []byte(`{"format": 1}`)}
	require.NoError(t, pack(&packed, members, noon()))
	file := filepath.Join(t.TempDir(), "x.tgz")
	require.NoError(t, os.WriteFile(file, packed.Bytes(), 0o600))
	_, err := openBundle(file, 4<<20)
	require.NoError(t, err)
	_, err = openBundle(file, 2<<20)
	require.ErrorContains(t, err, "it has more than 2 MiB")
}

// onlyClusters is a source of which all but clusters is missing.
type onlyClusters struct{ Source }

// Pages implements Source.
func (o onlyClusters) Pages(ctx context.Context, q Query) iter.Seq2[[]byte, error] {
	if q.Resource == ResourceOf[Cluster]() {
		return o.Source.Pages(ctx, q)
	}
	return func(yield func([]byte, error) bool) { yield([]byte(`{"items": []}`), nil) }
}

// Version implements Source.
func (onlyClusters) Version(context.Context) (string, error) { return "v1.37.0", nil }
