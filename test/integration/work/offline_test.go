package work_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/agent/work/offline"
	ournames "github.com/spokelet/spokelet/internal/names"
)

// openCache opens the copies of works of the test, with the rights of the agent; nil where it wants none.
func (e *env) openCache() *offline.Store {
	e.Helper()
	if e.settings.cache == "" {
		return nil
	}
	secrets, err := client.New(e.settings.spoke, client.Options{Scheme: scheme})
	require.NoError(e, err)
	cache, err := offline.Open(e.Context(), offline.Config{
		Dir: e.settings.cache, Secrets: secrets, Namespace: e.cluster, HubHash: e.settings.hubHash, Cluster: e.cluster,
	})
	require.NoError(e, err)
	return cache
}

// outage makes the works of the hub unreachable while the switch is on. Discovery goes on, for the agent knows the
// kinds of the hub without it, and this fixture does not.
func (e *env) outage() *atomic.Bool {
	var cut atomic.Bool
	e.settings.hubFault = func(req *http.Request) error {
		if cut.Load() && strings.Contains(req.URL.Path, "/namespaces/") {
			return errors.New("the hub is away")
		}
		return nil
	}
	return &cut
}

// copies are the files of copies of works.
func (e *env) copies() []string {
	e.Helper()
	files, err := filepath.Glob(filepath.Join(e.settings.cache, "works", "*.work"))
	require.NoError(e, err)
	return files
}

// copied waits until there are that many copies.
func (e *env) copied(count int) {
	e.Helper()
	e.eventually("copies of the works", func() bool { return len(e.copies()) == count })
}

// mapUID is the UID of a ConfigMap; empty when there is none.
func (e *env) mapUID(name string) types.UID {
	var cm corev1.ConfigMap
	e.get(&cm, e.cluster, name)
	return cm.UID
}

// removeMap deletes a ConfigMap on the spoke.
func (e *env) removeMap(name string) {
	e.Helper()
	require.NoError(e, e.Delete(e.Context(), e.configMap(name, nil)))
}

// spoilMap changes a ConfigMap on the spoke.
func (e *env) spoilMap(name string) {
	e.Helper()
	var cm corev1.ConfigMap
	require.True(e, e.get(&cm, e.cluster, name))
	cm.Data = map[string]string{"k": "spoiled"}
	require.NoError(e, e.Update(e.Context(), &cm))
}

// mapSays waits until a ConfigMap says so.
func (e *env) mapSays(name, value string) {
	e.Helper()
	e.eventually(name+" must say "+value, func() bool {
		var cm corev1.ConfigMap
		return e.get(&cm, e.cluster, name) && cm.Data["k"] == value
	})
}

// TestWorksWithoutTheHub restarts the agent while the hub is away for long: it repairs what it knew, deletes nothing,
// and takes the word of the hub when that is back.
// Shows: work/offline
func TestWorksWithoutTheHub(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.settings.cache, e.settings.grace = t.TempDir(), time.Second
	away := e.outage()
	data := map[string]string{"k": "v"}
	first := e.start()
	kept := e.work("kept", e.configMap("a", data), e.configMap("b", data), defaulted(e, "defaulted"))
	edited := e.work("edited", e.configMap("c", data), e.configMap("dropped", data))
	deleted := e.work("deleted", e.configMap("d", data))
	for _, w := range []*workv1.ManifestWork{kept, edited, deleted} {
		e.create(w)
	}
	for _, w := range []*workv1.ManifestWork{kept, edited, deleted} {
		e.settled(w)
	}
	e.copied(3)
	first.stop()

	away.Store(true)
	e.edit(edited, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(e.configMap("c", map[string]string{"k": "new"}), e.configMap("made", data))
	})
	require.NoError(t, e.Delete(t.Context(), deleted))
	e.removeMap("a")
	second := e.start()
	e.mapSays("a", "v")
	for _, name := range []string{"b", "c", "d"} {
		e.spoilMap(name)
		e.mapSays(name, "v")
	}
	e.removeMap("dropped")
	e.mapSays("dropped", "v")
	e.quiet(second)
	assert.Empty(t, e.mapUID("made"), "the hub has the word about what is new")
	before := map[string]types.UID{}
	for _, name := range []string{"a", "b", "c"} {
		before[name] = e.mapUID(name)
	}

	n := second.spoke.count()
	away.Store(false)
	e.mapSays("c", "new")
	e.mapSays("made", "v")
	e.eventually("what left the work goes", func() bool { return e.mapUID("dropped") == "" })
	e.eventually("the deleted work goes", func() bool {
		return e.mapUID("d") == "" && !e.get(&workv1.ManifestWork{}, e.cluster, "deleted")
	})
	e.settled(kept)
	e.settled(edited)
	e.copied(2)
	e.quiet(second)
	for name, uid := range before {
		assert.Equal(t, uid, e.mapUID(name), "%s is the same object", name)
	}
	for _, line := range second.spoke.since(n) {
		for _, name := range []string{"/configmaps/a", "/configmaps/b", "/deployments/defaulted", "-kept"} {
			assert.False(t, strings.HasSuffix(line, name), "what is in place costs nothing: %s", line)
		}
	}
	var list workv1.AppliedManifestWorkList
	require.NoError(t, e.List(t.Context(), &list))
	for i := range list.Items {
		if list.Items[i].Spec.HubHash == e.settings.hubHash {
			assert.Nil(t, list.Items[i].Status.EvictionStartTime, list.Items[i].Name)
		}
	}
}

// defaulted is a manifest that the API server fills in.
func defaulted(e *env, name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: e.cluster, Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/none"}}},
			},
		},
	}
}

// TestACopyWaitsForAHubThatAnswers restarts the agent beside a hub that is there, but slow. The work was deleted on it
// meanwhile, and its object by hand.
//
// Shows: work/offline-hub-first
func TestACopyWaitsForAHubThatAnswers(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.settings.cache, e.settings.hubPatience = t.TempDir(), time.Minute
	listed := make(chan struct{})
	var slow atomic.Bool
	e.settings.hubFault = func(req *http.Request) error {
		if slow.Load() && strings.HasSuffix(req.URL.Path, "/manifestworks") {
			select {
			case <-listed:
			case <-req.Context().Done():
			}
		}
		return nil
	}
	first := e.start()
	w := e.work("w", e.configMap("a", map[string]string{"k": "v"}))
	e.create(w)
	e.settled(w)
	e.copied(1)
	first.stop()
	require.NoError(t, e.Delete(t.Context(), w))
	e.letGo(w, e.cluster, "w")
	e.removeMap("a")

	slow.Store(true)
	second := e.start()
	e.quiet(second)
	close(listed)
	e.eventually("the word of the hub counts", func() bool { return len(e.copies()) == 0 })
	e.quiet(second)
	assert.Empty(t, e.mapUID("a"))
	for _, line := range second.spoke.since(0) {
		assert.False(t, strings.HasPrefix(line, "POST ") && strings.Contains(line, "configmaps"), line)
	}
}

// TestCopiesThatAreNotTrusted spoils the copies in every way: the agent then does what it does without them, which is
// to wait for the hub.
// Shows: work/offline
func TestCopiesThatAreNotTrusted(t *testing.T) {
	t.Parallel()
	cases := map[string]func(e *env){
		"the directory is empty": func(e *env) { e.settings.cache = e.TempDir() },
		"there is none":          func(e *env) { e.settings.cache = "" },
		"the files are cut off": func(e *env) {
			for _, file := range e.copies() {
				info, err := os.Stat(file)
				require.NoError(e, err)
				require.NoError(e, os.Truncate(file, info.Size()-1))
			}
		},
		"the files say something else": func(e *env) {
			for _, file := range e.copies() {
				content, err := os.ReadFile(file)
				require.NoError(e, err)
				content[len(content)-20] ^= 1
				require.NoError(e, os.WriteFile(file, content, 0o600))
			}
		},
		"the key is gone": func(e *env) {
			require.NoError(e, e.Delete(e.Context(), &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: e.cluster, Name: ournames.SecretWorkCache},
			}))
		},
		"another agent has kept the works since": func(e *env) {
			former := e.settings.cache
			e.settings.cache = e.TempDir()
			other := e.start()
			e.copied(1)
			other.stop()
			e.settings.cache = former
		},
		"the AppliedManifestWork is another one": func(e *env) {
			was := e.applied()
			was.Finalizers = nil
			require.NoError(e, e.Update(e.Context(), was))
			require.NoError(e, e.Delete(e.Context(), was))
			e.create(&workv1.AppliedManifestWork{
				ObjectMeta: metav1.ObjectMeta{Name: was.Name}, Spec: was.Spec,
			})
		},
	}
	for sentence, spoil := range cases {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.settings.cache = t.TempDir()
			away := e.outage()
			first := e.start()
			w := e.work("w", e.configMap("a", map[string]string{"k": "v"}))
			e.create(w)
			e.settled(w)
			e.copied(1)
			first.stop()
			spoil(e)
			away.Store(true)
			var cm corev1.ConfigMap
			if e.get(&cm, e.cluster, "a") {
				cm.Data["k"] = "spoiled"
				// The garbage collector may be faster where the owner is gone.
				require.NoError(t, client.IgnoreNotFound(e.Update(t.Context(), &cm)))
			}
			second := e.start()
			e.quiet(second)
			assert.Empty(t, writes(second.spoke.since(0)), "nothing is written on the word of such a copy")
			away.Store(false)
			e.mapSays("a", "v")
			e.settled(w)
		})
	}
}

// TestAnOlderCopyIsNotUsed puts the copy of an earlier generation back on the disk, as a user might who can write
// there: the agent that starts without the hub leaves its work alone.
// Shows: work/offline
func TestAnOlderCopyIsNotUsed(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.settings.cache = t.TempDir()
	away := e.outage()
	first := e.start()
	w := e.work("w", e.configMap("a", map[string]string{"k": "old"}))
	e.create(w)
	e.settled(w)
	e.copied(1)
	file := e.copies()[0]
	old, err := os.ReadFile(file)
	require.NoError(t, err)
	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(e.configMap("a", map[string]string{"k": "v"}))
	})
	e.settled(w)
	e.eventually("the new generation is copied", func() bool {
		now, err := os.ReadFile(file)
		return err == nil && string(now) != string(old)
	})
	n, _ := e.quiet(first)
	e.edit(w, func(w *workv1.ManifestWork) { w.Labels = map[string]string{"touched": "1"} })
	e.eventually("a pass", func() bool { return e.applied().Labels["touched"] == "1" })
	e.quiet(first)
	assert.Len(t, writes(first.spoke.since(n)), 1, "the generation is written down once, not with each pass")
	first.stop()

	require.NoError(t, os.WriteFile(file, old, 0o600))
	away.Store(true)
	second := e.start()
	e.quiet(second)
	assert.Empty(t, writes(second.spoke.since(0)), "nothing is written on the word of an old copy")
	e.mapSays("a", "v")
	away.Store(false)
	e.settled(w)
}

// TestANamespaceDeletedWithoutTheHubComesBackWithItsContent has the objects refused as long as the namespace is going.
//
// Shows: work/offline-repairs-again
func TestANamespaceDeletedWithoutTheHubComesBackWithItsContent(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.settings.cache = t.TempDir()
	away := e.outage()
	first := e.start()
	own := e.cluster + "-own"
	inside := e.configMap("inside", map[string]string{"k": "v"})
	inside.Namespace = own
	slow := inside.DeepCopy()
	slow.Name = "slow"
	w := e.work("w", "{apiVersion: v1, kind: Namespace, metadata: {name: "+own+"}}", inside, slow)
	e.create(w)
	e.settled(w)
	e.copied(1)
	first.stop()
	record := e.applied()
	record.Annotations = nil // as an agent leaves it that does not know what we write there
	require.NoError(t, e.Update(t.Context(), record))

	away.Store(true)
	e.start()
	var cm corev1.ConfigMap
	require.True(t, e.get(&cm, own, "slow"))
	cm.Finalizers = []string{hold} // the namespace goes slowly
	require.NoError(t, e.Update(t.Context(), &cm))
	var namespace corev1.Namespace
	require.True(t, e.get(&namespace, "", own))
	require.NoError(t, e.Delete(t.Context(), &namespace))
	e.eventually("the content goes", func() bool { return !e.get(&corev1.ConfigMap{}, own, "inside") })
	e.letGo(&corev1.ConfigMap{}, own, "slow")
	for _, name := range []string{"inside", "slow"} {
		e.eventually(name+" comes back", func() bool {
			return e.get(&cm, own, name) && cm.Data["k"] == "v" && cm.DeletionTimestamp.IsZero()
		})
	}
	away.Store(false)
	e.settled(w)
	require.NoError(t, e.Delete(t.Context(), w))
	e.gone("w")
}

// TestWhatBecameCompleteWithoutTheHub lets a manifest become complete, and its object be cleared away, while the hub is
// away and the agent is restarted twice. It is not made again.
// Shows: work/offline
func TestWhatBecameCompleteWithoutTheHub(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.settings.cache = t.TempDir()
	away := e.outage()
	first := e.start()
	w := e.work("w", e.configMap("once", map[string]string{"k": "begun"}))
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
		ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Namespace: e.cluster, Name: "once"},
		UpdateStrategy:     &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly},
		ConditionRules: []workv1.ConditionRule{{
			Type: workv1.CelConditionExpressionsType, Condition: workv1.ManifestComplete,
			CelExpressions: []string{"object.data.k == 'done'"},
		}},
	}}
	e.create(w)
	e.settled(w)
	e.copied(1)
	first.stop()

	away.Store(true)
	second := e.start()
	written := modified(t, e.copies()[0])
	var cm corev1.ConfigMap
	require.True(t, e.get(&cm, e.cluster, "once"))
	cm.Data["k"] = "done"
	require.NoError(t, e.Update(t.Context(), &cm))
	e.eventually("the copy says that it is complete", func() bool { return modified(t, e.copies()[0]).After(written) })
	e.removeMap("once")
	e.quiet(second)
	assert.Empty(t, e.mapUID("once"), "what is complete is not made again")
	second.stop()

	third := e.start()
	e.quiet(third)
	assert.Empty(t, e.mapUID("once"), "nor after a further restart")
	away.Store(false)
	e.is(w, workv1.WorkComplete, metav1.ConditionTrue)
	e.quiet(third)
	assert.Empty(t, e.mapUID("once"), "nor when the hub is back")
}

// modified is when a file was written.
func modified(t *testing.T, file string) time.Time {
	t.Helper()
	info, err := os.Stat(file)
	require.NoError(t, err)
	return info.ModTime()
}
