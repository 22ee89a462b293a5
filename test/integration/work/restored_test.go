package work_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// A store that was restored from a backup counts its resource versions from there again. What it has then is older than
// what the agent saw, by its versions, and must be believed all the same.
//
// Shows: work/restored-cache
func TestASpokeWhoseStoreWasRestoredIsRepaired(t *testing.T) {
	t.Parallel()
	const restart = 2 * time.Minute
	spoke := suite.Start(t, sandbox.Options{Name: "restored", Managed: true}, manifests.SpokeCRDs(), manifests.Klusterlet())
	admin := spoke.Client
	e := newEnv(t)
	require.NoError(t, admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.cluster}}))
	e.settings.spoke = spoke.AccountConfig(t, names.NamespaceAgent, names.ServiceAccountAgent)
	e.start()
	says := func(name, value string) func() bool {
		return func() bool {
			live := &corev1.ConfigMap{}
			err := admin.Get(t.Context(), client.ObjectKey{Namespace: e.cluster, Name: name}, live)
			return err == nil && live.Data["k"] == value
		}
	}
	w := e.work("w", e.configMap("changed", map[string]string{"k": "1"}), e.configMap("same", map[string]string{"k": "1"}))
	e.create(w)
	e.settled(w)
	require.NoError(t, spoke.BackUp(t.Context()))

	// What is written from here on is lost, and there is so much of it that the versions do not catch up by themselves.
	suite.Within(t, restart, suite.True("the busy object must be made", func() bool {
		busy := e.configMap("busy", nil)
		return client.IgnoreAlreadyExists(admin.Create(t.Context(), busy)) == nil
	}))
	for i := range 3000 {
		busy := e.configMap("busy", map[string]string{"k": strconv.Itoa(i)})
		require.NoError(t, admin.Update(t.Context(), busy))
	}
	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(e.configMap("changed", map[string]string{"k": "2"}),
			e.configMap("same", map[string]string{"k": "1"}), e.configMap("added", map[string]string{"k": "1"}))
	})
	suite.Within(t, restart, suite.True("what was added must be there", says("added", "1")))
	suite.Within(t, restart, suite.True("what was changed must be so", says("changed", "2")))
	e.settled(w)

	require.NoError(t, spoke.Restore(t.Context()))
	suite.Within(t, restart, suite.True("what went back is put right", says("changed", "2")))
	suite.Within(t, restart, suite.True("what is missing is made", says("added", "1")))
	assert.True(t, says("same", "1")())
	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(e.configMap("changed", map[string]string{"k": "3"}),
			e.configMap("same", map[string]string{"k": "1"}), e.configMap("later", map[string]string{"k": "1"}))
	})
	suite.Within(t, restart, suite.True("a work that is changed then is applied", says("changed", "3")))
	suite.Within(t, restart, suite.True("with what is new", says("later", "1")))
	live := e.configMap("same", nil)
	require.NoError(t, admin.Delete(t.Context(), live))
	suite.Within(t, restart, suite.True("and the watches count again", says("same", "1")))
}
