package template

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/names"
)

// TestLargeTemplatesAreCompiledOnce: a hub has some large templates, such as dashboards and definitions, which every
// cluster needs. Contents that were are kept only within a limit of bytes.
func TestLargeTemplatesAreCompiledOnce(t *testing.T) {
	templateOf := func(name string, value any) addon.ChosenConfig {
		u, _ := confighash.New(confighash.Template())
		u.SetName(name)
		u.Object["spec"] = map[string]any{"addonName": "a", "agentSpec": map[string]any{"workload": map[string]any{
			"manifests": []any{map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "namespace": "ns"}, "data": value,
			}},
		}}}
		return chosen(t, u)
	}
	r := &Registry{}
	var all []addon.ChosenConfig
	for i := range 12 {
		all = append(all, templateOf(fmt.Sprint("t", i), map[string]any{"text": strings.Repeat("x", 660_000)}))
	}
	seen := map[*Compiled]bool{}
	for range 5 {
		for _, config := range all {
			c, err := r.read(config)
			require.NoError(t, err)
			seen[c] = true
		}
	}
	assert.Len(t, seen, 12)
	for i := range 8 {
		_, err := r.read(templateOf("dense", map[string]any{"n": fmt.Sprint(i), "x": slices.Repeat([]any{map[string]any{}}, 200_000)}))
		require.NoError(t, err)
	}
	assert.Less(t, r.compiled[1].known.Len(), 12+8, "each edit of a dense template takes some 13 MiB")
	assert.LessOrEqual(t, r.compiled[1].known.Size(), maxTemplates)
}

// TestWhatIsKeptOfATemplateIsWeighed: an author fills any part of a template with what takes many times its bytes.
func TestWhatIsKeptOfATemplateIsWeighed(t *testing.T) {
	many := func(one string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(one+",", 300_000/(len(one)+1)), ",") + "]"
	}
	manifests := func(data string) string {
		return `"agentSpec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":` + data + `}]}}`
	}
	rules := `"agentSpec":{"manifestConfigs":[{"resourceIdentifier":{"group":"","resource":"configmaps","name":"x","namespace":"ns"},` +
		`"feedbackRules":[{"type":"JSONPaths","jsonPaths":` + many(`{"name":"a","path":".b"}`) + `}]}]}`
	for sentence, c := range map[string]struct{ spec, probe string }{
		"text":               {spec: manifests(`{"x":"` + strings.Repeat("y", 500_000) + `"}`)},
		"empty maps":         {spec: manifests(`{"x":` + many(`{}`) + `}`)},
		"maps with a number": {spec: manifests(`{"x":` + many(`{"a":0}`) + `}`)},
		"one large map":      {spec: manifests(`{` + strings.TrimSuffix(numbered(50_000, `"%d":"",`), ",") + `}`)},
		"variables":          {spec: manifests(`{"x":` + many(`"{{A}}"`) + `}`)},
		"many in one text":   {spec: manifests(`{"x":"` + strings.Repeat("{{A}}", 100_000) + `"}`)},
		"variables as keys":  {spec: manifests(`{` + strings.TrimSuffix(numbered(30_000, `"{{A%d}}":"",`), ",") + `}`)},
		"feedback rules":     {spec: rules},
		"registrations": {spec: `"registration":[{"type":"CustomSigner","customSigner":{"signerName":"a.b/c","subject":{"user":"x","groups":` +
			many(`"g"`) + `}}}]`},
		"a long probe": {spec: manifests(`{}`), probe: strings.Repeat("y", 200_000)},
	} {
		t.Run(sentence, func(t *testing.T) {
			text := []byte(`{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"AddOnTemplate","metadata":{"name":"t","annotations":{"` +
				names.AnnotationHealthProbe + `":"` + c.probe + `"}},"spec":{"addonName":"a",` + c.spec + `}}`)
			r := &Registry{}
			before := heapInUse()
			u := &unstructured.Unstructured{}
			require.NoError(t, u.UnmarshalJSON(text))
			_, err := r.read(chosen(t, u))
			require.NoError(t, err)
			took := heapInUse() - before
			require.Equal(t, 1, r.compiled[0].known.Len()+r.compiled[1].known.Len())
			counted := r.compiled[0].known.Size() + r.compiled[1].known.Size()
			assert.Less(t, took, counted*5/4+32<<10, "it is counted with %d KiB and takes %d", counted>>10, took>>10)
			runtime.KeepAlive(text)
		})
	}
}

// TestATemplateIsCompiledOnceForAllWorkers: they need it at the same moment.
func TestATemplateIsCompiledOnceForAllWorkers(t *testing.T) {
	u, _ := confighash.New(confighash.Template())
	u.SetName("t")
	u.Object["spec"] = map[string]any{"addonName": "a", "agentSpec": map[string]any{"x": strings.Repeat("x", 1_000_000)}}
	r := &Registry{}
	config := chosen(t, u)
	all := make([]*Compiled, 10)
	var group errgroup.Group
	for i := range all {
		group.Go(func() (err error) {
			all[i], err = r.read(config)
			return err
		})
	}
	require.NoError(t, group.Wait())
	for _, one := range all {
		assert.Same(t, all[0], one)
	}
}

// numbered returns many texts with their numbers.
func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func heapInUse() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
