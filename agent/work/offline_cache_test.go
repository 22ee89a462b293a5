package work

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/internal/names"
)

// secretsClient is the agent's namespace; refuse, unless nil, is what reading a Secret ends with.
func secretsClient(t *testing.T, refuse error) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if refuse != nil {
				return refuse
			}
			return c.Get(ctx, key, o, opts...)
		},
	}).Build()
}

// openIn opens the cache of a hub in a directory.
func openIn(t *testing.T, dir, hub string, secrets client.Client) *Cache {
	t.Helper()
	c, err := OpenCache(t.Context(), CacheConfig{
		Dir: dir, Secrets: secrets, Namespace: "agent", HubHash: hub, Cluster: "cluster1",
	})
	require.NoError(t, err)
	return c
}

// keepIn does what a pass and the copier do for a work.
func keepIn(t *testing.T, c *Cache, w *workv1.ManifestWork) copyLabel {
	t.Helper()
	c.outdate(w.Name, w.UID, w.Generation)
	require.NoError(t, c.ensureKey(t.Context()))
	label := labelOf(c.HubHash, c.Cluster, w, "uid-of-applied")
	require.NoError(t, c.put(label, w))
	return label
}

// files names the copies in a directory.
func files(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, cacheFolder, "*"+copySuffix))
	require.NoError(t, err)
	return found
}

func TestWhatIsKeptIsThereAfterARestart(t *testing.T) {
	dir, secrets := t.TempDir(), secretsClient(t, nil)
	first := openIn(t, dir, "hub", secrets)
	assert.Empty(t, first.works())
	label := keepIn(t, first, copiedWork("w", 7, configMap("a")))
	keepIn(t, first, copiedWork("v", 1, configMap("b")))
	assert.True(t, first.holds(label))

	second := openIn(t, dir, "hub", secrets)
	assert.Equal(t, []string{"v", "w"}, second.works())
	assert.True(t, second.holds(label), "and need not be written again")
	w, read, err := second.load(t.Context(), "w")
	require.NoError(t, err)
	assert.Equal(t, label, read)
	assert.Equal(t, configMap("a"), string(w.Spec.Workload.Manifests[0].Raw))
	for _, file := range files(t, dir) {
		info, err := os.Stat(file)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}

	assert.Empty(t, openIn(t, dir, "another hub", secrets).works())
	second.drop("w")
	assert.Equal(t, []string{"v"}, openIn(t, dir, "hub", secrets).works())
}

func TestACopyGoesBeforeItIsOutOfDate(t *testing.T) {
	dir, secrets := t.TempDir(), secretsClient(t, nil)
	c := openIn(t, dir, "hub", secrets)
	label := keepIn(t, c, copiedWork("w", 7, configMap("a")))
	c.outdate("w", label.UID, 7)
	assert.Len(t, files(t, dir), 1, "the same generation changes nothing")
	c.outdate("w", label.UID, 8)
	assert.Empty(t, files(t, dir))
	require.NoError(t, c.put(label, copiedWork("w", 7, configMap("a"))))
	assert.Empty(t, files(t, dir), "a copier that is late does not bring it back")
	assert.Zero(t, c.bytes)
}

func TestOnlyTheDirectoryOfTheKeyIsBelieved(t *testing.T) {
	first, second, secrets := t.TempDir(), t.TempDir(), secretsClient(t, nil)
	keepIn(t, openIn(t, first, "hub", secrets), copiedWork("w", 7, configMap("a")))
	other := openIn(t, second, "hub", secrets)
	assert.Len(t, openIn(t, first, "hub", secrets).works(), 1, "an agent that has kept nothing yet replaces nobody")
	keepIn(t, other, copiedWork("w", 8, configMap("a")))
	again := openIn(t, first, "hub", secrets)
	assert.Empty(t, again.works(), "what another agent kept since is newer")
	keepIn(t, again, copiedWork("v", 1, configMap("b")))
	assert.Len(t, files(t, first), 1, "what cannot be read any more is removed")
	assert.Empty(t, openIn(t, second, "hub", secrets).works())

	require.NoError(t, secrets.Delete(t.Context(), secretOf(again)))
	assert.Empty(t, openIn(t, first, "hub", secrets).works(), "without the key there is nothing")
}

// secretOf is the Secret with the key, by its name.
func secretOf(c *Cache) *corev1.Secret {
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = c.Namespace, c.keySecret().Name
	return secret
}

func TestAKeyThatCannotBeRead(t *testing.T) {
	dir, secrets := t.TempDir(), secretsClient(t, nil)
	keepIn(t, openIn(t, dir, "hub", secrets), copiedWork("w", 7, configMap("a")))
	config := CacheConfig{Dir: dir, Namespace: "agent", HubHash: "hub", Cluster: "cluster1"}

	config.Secrets = secretsClient(t, errors.New("the API server is away"))
	_, err := OpenCache(t.Context(), config)
	require.ErrorContains(t, err, names.SecretWorkCache, "what is not known is asked for again")
	assert.Len(t, openIn(t, dir, "hub", secrets).works(), 1, "and costs nothing")

	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, names.SecretWorkCache, nil)
	config.Secrets = secretsClient(t, forbidden)
	c, err := OpenCache(t.Context(), config)
	require.NoError(t, err)
	assert.Nil(t, c)
	assert.Empty(t, c.works())
	assert.Empty(t, openIn(t, dir, "hub", secrets).works(), "what nobody looked after is not believed later")
}

func TestACopyThatIsDamagedIsForgotten(t *testing.T) {
	dir, secrets := t.TempDir(), secretsClient(t, nil)
	keepIn(t, openIn(t, dir, "hub", secrets), copiedWork("w", 7, configMap("a")))
	keepIn(t, openIn(t, dir, "hub", secrets), copiedWork("v", 7, configMap("a")))
	c := openIn(t, dir, "hub", secrets)
	require.NoError(t, os.Truncate(c.path("w"), 300))
	require.NoError(t, os.Rename(c.path("v"), c.path("u")))
	require.NoError(t, os.WriteFile(filepath.Join(c.folder, tempPrefix+"1"), nil, 0o600))

	c = openIn(t, dir, "hub", secrets)
	assert.Equal(t, []string{"w"}, c.works(), "a copy under a wrong name is none")
	w, _, err := c.load(t.Context(), "w")
	require.NoError(t, err)
	assert.Nil(t, w)
	assert.Empty(t, c.works())
	assert.NoFileExists(t, c.path("w"))
	assert.NoFileExists(t, filepath.Join(c.folder, tempPrefix+"1"))
}

func TestTheCopiesHaveABound(t *testing.T) {
	dir, secrets := t.TempDir(), secretsClient(t, nil)
	c := openIn(t, dir, "hub", secrets)
	c.MaxBytes = 3 * blockSize
	keepIn(t, c, copiedWork("w", 1, configMap("a")))
	large := copiedWork("large", 1, strings.Repeat("x", 2*blockSize))
	c.outdate(large.Name, large.UID, large.Generation)
	err := c.put(labelOf("hub", "cluster1", large, "x"), large)
	require.ErrorContains(t, err, "a copy of 12288 bytes does not fit: the copies have 4096 bytes and may have 12288")
	assert.True(t, c.note(err), "it is told")
	assert.False(t, c.note(err), "once")
	assert.Equal(t, []string{"w"}, c.works())
	keepIn(t, c, copiedWork("small", 1, configMap("b")))
	assert.True(t, c.note(nil), "and that it is over")
	assert.Equal(t, int64(2*blockSize), c.bytes)
	assert.Equal(t, int64(2*blockSize), openIn(t, dir, "hub", secrets).bytes)
}

func TestADiskThatCannotBeWritten(t *testing.T) {
	dir, secrets := t.TempDir(), secretsClient(t, nil)
	c := openIn(t, dir, "hub", secrets)
	label := keepIn(t, c, copiedWork("w", 7, configMap("a")))
	// A folder in place of the file can neither be removed nor replaced.
	require.NoError(t, os.Remove(c.path("w")))
	require.NoError(t, os.MkdirAll(filepath.Join(c.path("w"), "x"), 0o700))
	require.Error(t, c.put(label, copiedWork("w", 7, configMap("a"))))
	c.outdate("w", label.UID, 8)
	disowned, closed := c.condition()
	assert.True(t, disowned, "what cannot be removed takes all with it")
	assert.False(t, closed)
	require.NoError(t, c.takeBackKey(t.Context()))
	_, closed = c.condition()
	assert.True(t, closed)
	assert.Empty(t, openIn(t, dir, "hub", secrets).works())

	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	assert.Nil(t, openIn(t, filepath.Join(dir, "file"), "hub", secrets), "a directory that is none")
}

func TestWhatWasLearnedIsKeptUntilTheHubKnows(t *testing.T) {
	dir, secrets := t.TempDir(), secretsClient(t, nil)
	label := keepIn(t, openIn(t, dir, "hub", secrets), copiedWork("w", 7, configMap("a")))
	c := openIn(t, dir, "hub", secrets)
	w, _, err := c.load(t.Context(), "w")
	require.NoError(t, err)
	w.Status.ResourceStatus.Manifests[0].ResourceMeta.Name = "learned"
	require.NoError(t, c.learn(label, w))

	for range 2 {
		c = openIn(t, dir, "hub", secrets)
		again, _, err := c.load(t.Context(), "w")
		require.NoError(t, err)
		assert.Equal(t, w.Status, again.Status)
		status, err := c.learned(t.Context(), "w", label.UID)
		require.NoError(t, err)
		assert.Equal(t, &w.Status, status)
	}
	status, err := c.learned(t.Context(), "w", "another work")
	require.NoError(t, err)
	assert.Nil(t, status)
	c.forgetLearned("w")
	status, err = c.learned(t.Context(), "w", label.UID)
	require.NoError(t, err)
	assert.Nil(t, status)
	assert.False(t, c.holds(labelOf("hub", "cluster1", w, "uid-of-applied")), "the copy is written again")
}

func TestCopiesOfOtherHubsGo(t *testing.T) {
	dir, secrets := t.TempDir(), secretsClient(t, nil)
	keepIn(t, openIn(t, dir, "former hub", secrets), copiedWork("w", 7, configMap("a")))
	c := openIn(t, dir, "hub", secrets)
	keepIn(t, c, copiedWork("w", 1, configMap("a")))
	assert.Len(t, files(t, dir), 2)
	assert.Equal(t, int64(2*blockSize), c.bytes)
	c.keepOnly(t.Context())
	assert.Equal(t, []string{c.path("w")}, files(t, dir))
	assert.Equal(t, int64(blockSize), c.bytes)
}
