package decode

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

const good = `{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster",` +
	`"metadata":{"name":"good","uid":"u1","resourceVersion":"1"},"spec":{"hubAcceptsClient":true,"leaseDurationSeconds":60}}`

// bad is a ManagedCluster with a number beyond 32 bits.
const bad = `{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster",` +
	`"metadata":{"name":"bad","uid":"u2","resourceVersion":"2","labels":{"a":"b"},"finalizers":["f"],` +
	`"managedFields":[{"manager":"m"}]},"spec":{"hubAcceptsClient":true,"leaseDurationSeconds":99999999999}}`

func clusters(tb testing.TB) (kind, *runtime.Scheme) {
	tb.Helper()
	scheme := runtime.NewScheme()
	require.NoError(tb, clusterv1.Install(scheme))
	return newKind(scheme, schema.GroupVersionKind{
		Group: clusterv1.GroupName, Version: "v1", Kind: "ManagedCluster",
	}), scheme
}

func listOf(items ...string) string {
	return `{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedClusterList",` +
		`"metadata":{"resourceVersion":"9"},"items":[` + strings.Join(items, ",") + `]}`
}

func TestAListWithoutTheObjectThatCannotBeDecodedHasItsMetadata(t *testing.T) {
	k, _ := clusters(t)
	whole, verdicts, err := k.list([]byte(listOf(good, bad)))
	require.NoError(t, err)
	var list clusterv1.ManagedClusterList
	require.NoError(t, json.Unmarshal(whole, &list))
	assert.Equal(t, "9", list.ResourceVersion)
	require.Len(t, list.Items, 2)
	assert.Equal(t, int32(60), list.Items[0].Spec.LeaseDurationSeconds)
	_, unknown := Unknown(&list.Items[0])
	assert.False(t, unknown)
	cause, unknown := Unknown(&list.Items[1])
	assert.True(t, unknown)
	assert.Contains(t, cause, "leaseDurationSeconds")
	assert.Equal(t, "bad", list.Items[1].Name)
	assert.Equal(t, []string{"f"}, list.Items[1].Finalizers)
	assert.Equal(t, map[string]string{"a": "b"}, list.Items[1].Labels)
	assert.Empty(t, list.Items[1].ManagedFields)
	assert.False(t, list.Items[1].Spec.HubAcceptsClient, "nothing is known but the metadata")
	assert.False(t, verdicts[0].bad)
	assert.Equal(t, "ManagedCluster bad: "+cause, verdicts[1].about.String())
}

func TestEventsOfObjectsThatCannotBeDecodedHaveTheirMetadata(t *testing.T) {
	k, _ := clusters(t)
	for _, kind := range []string{"ADDED", "MODIFIED", "DELETED"} {
		out, e, v, ours := k.event([]byte(`{"type":"` + kind + `","object":` + bad + `}`))
		assert.True(t, ours)
		assert.True(t, v.bad)
		var cluster clusterv1.ManagedCluster
		require.NoError(t, json.Unmarshal(e.Object, &cluster))
		assert.Equal(t, "bad", cluster.Name)
		assert.Contains(t, string(out), `"type":"`+kind+`"`)
		in := `{"type":"` + kind + `","object":` + good + `}`
		out, _, v, _ = k.event([]byte(in))
		assert.Equal(t, in, string(out))
		assert.False(t, v.bad)
	}
	for _, in := range []string{
		`{"type":"BOOKMARK","object":{"kind":"ManagedCluster","metadata":{"resourceVersion":"3"}}}`,
		`{"type":"ERROR","object":{"kind":"Status","code":410}}`, `{"type":7}`, `[]`,
	} {
		out, _, _, ours := k.event([]byte(in))
		assert.Equal(t, in, string(out))
		assert.False(t, ours)
	}
	out, _, v, ours := k.event([]byte(`{"type":"ADDED","object":{"metadata":{"name":7}}}`))
	assert.Nil(t, out, "without metadata nothing is left")
	assert.True(t, v.bad && ours)
}

func TestNobodyCanMarkAnObject(t *testing.T) {
	k, _ := clusters(t)
	forged := strings.Replace(good, `"name":"good"`, `"name":"good","selfLink":"unknown:AAAAAAAAAAAAAAAAAAAAAAAAAA:x"`, 1)
	v := k.item([]byte(forged))
	assert.False(t, v.bad)
	var cluster clusterv1.ManagedCluster
	require.NoError(t, json.Unmarshal(v.raw, &cluster))
	_, unknown := Unknown(&cluster)
	assert.False(t, unknown)
}

func FuzzAnObjectIsDecodedOrReplacedByItsMetadata(f *testing.F) {
	for _, seed := range []string{
		good, bad, `{}`, `null`, `[]`, `"`, `{"metadata":{"name":7}}`, `{"metadata":{"creationTimestamp":"2026-01-02t03:04:05z"}}`,
		strings.Replace(good, "60", "6e1", 1), strings.Replace(good, "60", `"60"`, 1), strings.Replace(good, "60", "null", 1),
		strings.Replace(good, `"spec"`, `"status":{"capacity":{"cpu":"1e1.5"}},"spec"`, 1),
	} {
		f.Add(seed)
	}
	k, scheme := clusters(f)
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	f.Fuzz(func(t *testing.T, raw string) {
		v := k.item([]byte(raw))
		if v.raw != nil {
			_, err := k.decode(v.raw)
			require.NoError(t, err, "a client decodes what is left")
		}
		_, plain := k.decode([]byte(raw))
		assert.Equal(t, plain != nil, v.bad, "what can be decoded is not touched")
		if !json.Valid([]byte(raw)) {
			return
		}
		whole, verdicts, err := k.list([]byte(listOf(good, raw, good)))
		require.NoError(t, err)
		require.Len(t, verdicts, 3)
		var list clusterv1.ManagedClusterList
		_, _, err = decoder.Decode(whole, nil, &list)
		require.NoError(t, err)
		assert.Equal(t, "good", list.Items[0].Name)
		assert.Equal(t, "good", list.Items[len(list.Items)-1].Name)
	})
}

func many(n int) []byte {
	items := make([]string, n)
	for i := range items {
		items[i] = strings.Replace(good, `"good"`, fmt.Sprintf(`"good-%d"`, i), 1)
	}
	return []byte(listOf(items...))
}

// BenchmarkAWholeList measures what every list costs, with this package or without it.
func BenchmarkAWholeList(b *testing.B) {
	_, scheme := clusters(b)
	raw := many(1000)
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	for b.Loop() {
		if _, _, err := decoder.Decode(raw, nil, &clusterv1.ManagedClusterList{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAListTakenApart measures what a list costs besides, when one of its items cannot be decoded.
func BenchmarkAListTakenApart(b *testing.B) {
	k, _ := clusters(b)
	raw := many(1000)
	for b.Loop() {
		if _, _, err := k.list(raw); err != nil {
			b.Fatal(err)
		}
	}
}
