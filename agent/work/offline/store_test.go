package offline

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/internal/names"
)

// appliedUID is the UID of the AppliedManifestWork of all works.
const appliedUID = "uid-of-applied"

// secretsClient is a client of the agent's namespace. Reads of Secrets fail with get, and creations with create, unless
// they are nil.
func secretsClient(t *testing.T, get, create error) client.Client {
	t.Helper()
	return failingClient(t, &get, &create)
}

// failingClient is a client whose reads fail with get, and creations with create, as long as they are not nil.
func failingClient(t *testing.T, get, create *error) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if *get != nil {
				return *get
			}
			return c.Get(ctx, key, o, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if *create != nil {
				return *create
			}
			return c.Create(ctx, o, opts...)
		},
	}).Build()
}

// openIn opens the store of a hub in a directory.
func openIn(t *testing.T, dir, hub string, secrets client.Client) *Store {
	t.Helper()
	s, err := Open(t.Context(), Config{
		Dir: dir, Secrets: secrets, Namespace: "agent", HubHash: hub, Cluster: "cluster1",
	})
	require.NoError(t, err)
	return s
}

// sync does for a work what a pass and the copier do.
func (s *Store) sync(t *testing.T, w *workv1.ManifestWork) {
	t.Helper()
	s.Invalidate(w.Name, w.UID, w.Generation)
	require.NoError(t, s.Sync(t.Context(), w, appliedUID))
}

// loadW returns the copy of the work w, which exists.
func (s *Store) loadW(t *testing.T) *Copy {
	t.Helper()
	found, err := s.Load(t.Context(), "w")
	require.NoError(t, err)
	require.NotNil(t, found)
	return found
}

// files returns the copies in a directory.
func files(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, folderName, "*"+copySuffix))
	require.NoError(t, err)
	return found
}

func TestACopyIsThereAfterARestart(t *testing.T) {
	dir, secrets := t.TempDir(), secretsClient(t, nil, nil)
	first := openIn(t, dir, "hub", secrets)
	first.sync(t, copiedWork("w", 7, configMap))
	first.sync(t, copiedWork("v", 1, configMap))

	second := openIn(t, dir, "hub", secrets)
	assert.Equal(t, []string{"v", "w"}, second.Works())
	found := second.loadW(t)
	assert.EqualValues(t, appliedUID, found.Applied)
	assert.Equal(t, copiedWork("w", 7, configMap), found.Work)
	for _, file := range append(files(t, dir), filepath.Join(dir, folderName, ownerFile)) {
		info, err := os.Stat(file)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	info, err := os.Stat(filepath.Join(dir, folderName))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	assert.Empty(t, openIn(t, dir, "another hub", secrets).Works())
	second.Delete("w")
	assert.Equal(t, []string{"v"}, openIn(t, dir, "hub", secrets).Works())
	var none *Store
	assert.Empty(t, none.Works())
}

// TestCopiesOfFormerVersionsAreRead writes what a former version of the agent left, without the code under test.
func TestCopiesOfFormerVersionsAreRead(t *testing.T) {
	const (
		head  = `{"hub":"hub","cluster":"cluster1","work":"w","uid":"uid-of-work","generation":7,"applied":"a","stamp":"s","learned":true}`
		first = `{"labels":{"l":"1"},"spec":{"workload":{}},"status":{"resourceStatus":{"manifests":[{"resourceMeta":{"name":"a"}}]}}}`
	)
	key := bytes.Repeat([]byte{7}, 32)
	block, err := aes.NewCipher(key)
	require.NoError(t, err)
	gcm, err := cipher.NewGCM(block)
	require.NoError(t, err)
	parts := append([]byte{byte(len(first))}, first...)
	parts = append(append(parts, byte(len(configMap))), configMap...)
	file := append([]byte("spkwork\x01\x00\x00\x00"), byte(len(head)))
	file = append(file, head...)
	nonce := []byte("twelve bytes")
	sealed := gcm.Seal(nil, nonce, parts, bytes.Clone(file))
	file = append(append(file, nonce...), sealed...)

	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "works"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "works", "owner"), []byte("name"), 0o600))
	// The hash is that of hub/cluster1/w.
	sum := sha256.Sum256([]byte("hub/cluster1/w"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "works", hex.EncodeToString(sum[:])+".work"), file, 0o600))
	secrets := secretsClient(t, nil, nil)
	secret := &corev1.Secret{Data: map[string][]byte{"key": key, "directory": []byte("name")}}
	secret.Namespace, secret.Name = "agent", names.SecretWorkCache
	require.NoError(t, secrets.Create(t.Context(), secret))

	s := openIn(t, dir, "hub", secrets)
	found := s.loadW(t)
	assert.EqualValues(t, "a", found.Applied)
	assert.Equal(t, "cluster1", found.Work.Namespace)
	assert.EqualValues(t, "uid-of-work", found.Work.UID)
	assert.EqualValues(t, 7, found.Work.Generation)
	assert.Equal(t, map[string]string{"l": "1"}, found.Work.Labels)
	require.Len(t, found.Work.Spec.Workload.Manifests, 1)
	assert.JSONEq(t, configMap, string(found.Work.Spec.Workload.Manifests[0].Raw))
	unreported, err := s.UnreportedStatus(t.Context(), "w", "uid-of-work")
	require.NoError(t, err)
	assert.Equal(t, &found.Work.Status, unreported)
	assert.Equal(t, "a", unreported.ResourceStatus.Manifests[0].ResourceMeta.Name)
}

func TestACopyIsWrittenOnlyWhenSomethingInItChanged(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*workv1.ManifestWork)
		applied types.UID
		written bool
	}{
		"nothing":         {func(*workv1.ManifestWork) {}, appliedUID, false},
		"a label":         {func(w *workv1.ManifestWork) { w.Labels = map[string]string{"l": "2"} }, appliedUID, true},
		"an annotation":   {func(w *workv1.ManifestWork) { w.Annotations = map[string]string{"l": "2"} }, appliedUID, false},
		"a new inventory": {func(*workv1.ManifestWork) {}, "another", true},
		"a message": {func(w *workv1.ManifestWork) {
			w.Status.ResourceStatus.Manifests[0].Conditions[0].Message = "m"
		}, appliedUID, false},
		"the condition Applied": {func(w *workv1.ManifestWork) {
			w.Status.ResourceStatus.Manifests[0].Conditions[0].Status = "False"
		}, appliedUID, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir, secrets := t.TempDir(), secretsClient(t, nil, nil)
			openIn(t, dir, "hub", secrets).sync(t, copiedWork("w", 7, configMap))
			s := openIn(t, dir, "hub", secrets)
			before, err := os.ReadFile(s.path("w"))
			require.NoError(t, err)
			w := copiedWork("w", 7, configMap)
			c.change(w)
			require.NoError(t, s.Sync(t.Context(), w, c.applied))
			after, err := os.ReadFile(s.path("w"))
			require.NoError(t, err)
			assert.Equal(t, c.written, !bytes.Equal(before, after))
			assert.Equal(t, c.applied, s.loadW(t).Applied)
		})
	}
}

func TestACopyIsDeletedBeforeItIsOutdated(t *testing.T) {
	dir, secrets := t.TempDir(), secretsClient(t, nil, nil)
	s := openIn(t, dir, "hub", secrets)
	w := copiedWork("w", 7, configMap)
	s.sync(t, w)
	s.Invalidate("w", w.UID, 7)
	assert.Len(t, files(t, dir), 1, "the same generation changes nothing")
	s.Invalidate("w", w.UID, 8)
	assert.Empty(t, files(t, dir))
	require.NoError(t, s.Sync(t.Context(), w, appliedUID))
	assert.Empty(t, files(t, dir), "a late write of a former generation is dropped")
	assert.Zero(t, s.bytes)
	s.sync(t, copiedWork("w", 8, configMap))
	s.Invalidate("w", "another work of the name", 8)
	assert.Empty(t, files(t, dir))
	s.Invalidate("w", w.UID, 8)
	s.sync(t, copiedWork("w", 8, configMap))
	s.Delete("w")
	assert.Empty(t, files(t, dir))
	s.Delete("w")
	require.NoError(t, s.Sync(t.Context(), copiedWork("w", 8, configMap), appliedUID))
	assert.Empty(t, files(t, dir), "a late write of a deleted work is dropped")
	active, err := s.Active(t.Context())
	require.NoError(t, err)
	assert.True(t, active)
}

func TestOnlyTheDirectoryOfTheKeyIsValid(t *testing.T) {
	first, second, secrets := t.TempDir(), t.TempDir(), secretsClient(t, nil, nil)
	openIn(t, first, "hub", secrets).sync(t, copiedWork("w", 7, configMap))
	other := openIn(t, second, "hub", secrets)
	assert.Len(t, openIn(t, first, "hub", secrets).Works(), 1, "an agent that has written nothing yet invalidates nothing")
	other.sync(t, copiedWork("w", 8, configMap))
	again := openIn(t, first, "hub", secrets)
	assert.Empty(t, again.Works(), "the copies that another agent wrote since are newer")
	again.sync(t, copiedWork("v", 1, configMap))
	assert.Len(t, files(t, first), 1, "copies of a former key are deleted")
	assert.Empty(t, openIn(t, second, "hub", secrets).Works())

	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = "agent", names.SecretWorkCache
	require.NoError(t, secrets.Delete(t.Context(), secret))
	assert.Empty(t, openIn(t, first, "hub", secrets).Works(), "without the key there is nothing")
}

func TestAKeyThatCannotBeRead(t *testing.T) {
	dir, secrets := t.TempDir(), secretsClient(t, nil, nil)
	openIn(t, dir, "hub", secrets).sync(t, copiedWork("w", 7, configMap))
	config := Config{Dir: dir, Namespace: "agent", HubHash: "hub", Cluster: "cluster1"}

	config.Secrets = secretsClient(t, errors.New("the API server is away"), nil)
	_, err := Open(t.Context(), config)
	require.ErrorContains(t, err, names.SecretWorkCache, "the caller tries again")
	assert.Len(t, openIn(t, dir, "hub", secrets).Works(), 1, "and the copies stay valid")

	config.Secrets = secretsClient(t, forbidden(), nil)
	s, err := Open(t.Context(), config)
	require.NoError(t, err)
	assert.Nil(t, s)
	assert.Empty(t, openIn(t, dir, "hub", secrets).Works(), "copies that nobody kept up to date are not valid later")
}

// forbidden is the answer of the API server to an agent without the right to the Secret.
func forbidden() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, names.SecretWorkCache, nil)
}

func TestAKeyThatCannotBeWritten(t *testing.T) {
	w := copiedWork("w", 7, configMap)
	s := openIn(t, t.TempDir(), "hub", secretsClient(t, nil, apierrors.NewServiceUnavailable("away")))
	s.Invalidate("w", w.UID, 7)
	err := s.Sync(t.Context(), w, appliedUID)
	assert.True(t, apierrors.IsServiceUnavailable(err), "the caller tries again: %v", err)
	active, err := s.Active(t.Context())
	require.NoError(t, err)
	assert.True(t, active)

	s = openIn(t, t.TempDir(), "hub", secretsClient(t, nil, forbidden()))
	s.Invalidate("w", w.UID, 7)
	require.NoError(t, s.Sync(t.Context(), w, appliedUID))
	active, err = s.Active(t.Context())
	require.NoError(t, err)
	assert.False(t, active, "the store gives up")
	assert.Empty(t, s.Works())
}

func TestACopyThatIsDamagedIsDeleted(t *testing.T) {
	dir, secrets := t.TempDir(), secretsClient(t, nil, nil)
	openIn(t, dir, "hub", secrets).sync(t, copiedWork("w", 7, configMap))
	openIn(t, dir, "hub", secrets).sync(t, copiedWork("v", 7, configMap))
	s := openIn(t, dir, "hub", secrets)
	require.NoError(t, os.Truncate(s.path("w"), 300))
	require.NoError(t, os.Rename(s.path("v"), s.path("u")))
	require.NoError(t, os.WriteFile(filepath.Join(s.folder, tempPrefix+"1"), nil, 0o600))

	s = openIn(t, dir, "hub", secrets)
	assert.Equal(t, []string{"w"}, s.Works(), "the file of one work is no copy of another")
	found, err := s.Load(t.Context(), "w")
	require.NoError(t, err)
	assert.Nil(t, found)
	assert.Empty(t, s.Works())
	assert.NoFileExists(t, s.path("w"))
	assert.NoFileExists(t, filepath.Join(s.folder, tempPrefix+"1"))
}

func TestACopyOfAnOlderFileIsNotLoaded(t *testing.T) {
	dir, secrets := t.TempDir(), secretsClient(t, nil, nil)
	s := openIn(t, dir, "hub", secrets)
	s.sync(t, copiedWork("w", 7, configMap))
	former, err := os.ReadFile(s.path("w"))
	require.NoError(t, err)
	s.sync(t, copiedWork("w", 8, configMap))
	require.NoError(t, os.WriteFile(s.path("w"), former, 0o600))
	found, err := s.Load(t.Context(), "w")
	require.NoError(t, err)
	assert.Nil(t, found, "the store knows which file it wrote")
	assert.NoFileExists(t, s.path("w"))
}

func TestTheDiskSpaceOfCopiesIsLimited(t *testing.T) {
	dir, secrets := t.TempDir(), secretsClient(t, nil, nil)
	s := openIn(t, dir, "hub", secrets)
	s.MaxBytes = 3 * blockSize
	s.sync(t, copiedWork("w", 1, configMap))
	large := copiedWork("large", 1, strings.Repeat("x", 2*blockSize))
	s.Invalidate(large.Name, large.UID, large.Generation)
	err := s.Sync(t.Context(), large, appliedUID)
	require.ErrorAs(t, err, &DiskError{})
	require.ErrorContains(t, err, "a copy of 12288 bytes does not fit: the copies have 4096 bytes and may have 12288")
	grown := copiedWork("w", 1, strings.Repeat("x", 4*blockSize))
	grown.Labels = nil
	require.ErrorContains(t, s.Sync(t.Context(), grown, appliedUID),
		"a copy of 20480 bytes does not fit: the copies have 0 bytes and may have 12288")
	assert.False(t, s.recordWrite(err), "a second failure is not logged")
	assert.Equal(t, []string{"w"}, s.Works())
	assert.True(t, s.recordWrite(nil), "the end of the failures is logged")
	s.sync(t, copiedWork("small", 1, configMap))
	s.sync(t, copiedWork("w", 2, strings.Repeat("x", blockSize)))
	assert.Equal(t, int64(3*blockSize), s.bytes, "a copy that is replaced counts once")
	assert.Equal(t, int64(3*blockSize), openIn(t, dir, "hub", secrets).bytes)
	s.Delete("w")
	assert.Equal(t, int64(blockSize), s.bytes)
	assert.EqualValues(t, 3, s.failures)
}

func TestADiskThatCannotBeWritten(t *testing.T) {
	dir, secrets := t.TempDir(), secretsClient(t, nil, nil)
	s := openIn(t, dir, "hub", secrets)
	w := copiedWork("w", 7, configMap)
	s.sync(t, w)
	// A folder in place of the file can be neither deleted nor replaced.
	require.NoError(t, os.Remove(s.path("w")))
	require.NoError(t, os.MkdirAll(filepath.Join(s.path("w"), "x"), 0o700))
	require.ErrorAs(t, s.Sync(t.Context(), w, "another"), &DiskError{})
	active, err := s.Active(t.Context())
	require.NoError(t, err)
	assert.True(t, active, "a copy that cannot be replaced is tried again")
	s.Invalidate("w", w.UID, 8)
	assert.EqualValues(t, 2, s.failures)
	active, err = s.Active(t.Context())
	require.NoError(t, err)
	assert.False(t, active, "an outdated copy that cannot be deleted makes all of them invalid")
	assert.Empty(t, openIn(t, dir, "hub", secrets).Works(), "for their key is deleted")
	active, err = s.Active(t.Context())
	require.NoError(t, err)
	assert.False(t, active)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	assert.Nil(t, openIn(t, filepath.Join(dir, "file"), "hub", secrets), "a directory that is a file")
}

func TestTheKeyIsDeletedOnceTheAPIServerAnswers(t *testing.T) {
	var get, create error
	dir, secrets := t.TempDir(), failingClient(t, &get, &create)
	s := openIn(t, dir, "hub", secrets)
	s.sync(t, copiedWork("w", 7, configMap))
	s.stale = true
	get = errors.New("the API server is away")
	active, err := s.Active(t.Context())
	require.ErrorContains(t, err, "the API server is away")
	assert.False(t, active)
	get = nil
	assert.Len(t, openIn(t, dir, "hub", secrets).Works(), 1)
	active, err = s.Active(t.Context())
	require.NoError(t, err)
	assert.False(t, active)
	assert.Empty(t, openIn(t, dir, "hub", secrets).Works())
	s.stale = true
	active, err = s.Active(t.Context())
	require.NoError(t, err, "a key that is gone already")
	assert.False(t, active)
	assert.True(t, s.closed)
	assert.False(t, s.stale)
}

func TestFilesThatAreNoCopies(t *testing.T) {
	dir, secrets := t.TempDir(), secretsClient(t, nil, nil)
	s := openIn(t, dir, "hub", secrets)
	s.sync(t, copiedWork("w", 1, configMap))
	s.sync(t, copiedWork("large", 1, configMap))
	s.sync(t, copiedWork("largest", 1, configMap))
	require.NoError(t, os.Truncate(s.path("largest"), maxFile))
	require.NoError(t, os.Truncate(s.path("large"), maxFile+1))
	require.NoError(t, os.Mkdir(filepath.Join(s.folder, "folder"+copySuffix), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(s.folder, "other"), []byte(magic), 0o600))
	// A header of another hub or cluster, in the file of a work of this one.
	for name, head := range map[string]header{
		"u": {Hub: "another", Cluster: "cluster1", Work: "u"}, "v": {Hub: "hub", Cluster: "another", Work: "v"},
	} {
		file, err := encode(s.aead, head, copiedWork(name, 1))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(s.path(name), file, 0o600))
	}
	again := openIn(t, dir, "hub", secrets)
	assert.Equal(t, []string{"largest", "w"}, again.Works())
	assert.Equal(t, int64(3*blockSize+2*maxFile+blockSize), again.bytes, "all copies count, whatever they are")
	assert.FileExists(t, filepath.Join(s.folder, "other"))
}

func TestACopyThatCannotBeReadStays(t *testing.T) {
	s := openIn(t, t.TempDir(), "hub", secretsClient(t, nil, nil))
	s.sync(t, copiedWork("w", 1, configMap))
	require.NoError(t, os.Remove(s.path("w")))
	require.NoError(t, os.Mkdir(s.path("w"), 0o700))
	_, err := s.Load(t.Context(), "w")
	require.ErrorContains(t, err, "reading the copy of work w")
	assert.Equal(t, []string{"w"}, s.Works())

	v := copiedWork("v", 1, configMap)
	s.Invalidate("v", v.UID, 1)
	found, err := s.Load(t.Context(), "v")
	require.NoError(t, err)
	assert.Nil(t, found)
	require.NoError(t, s.Sync(t.Context(), v, appliedUID))
	assert.Equal(t, []string{"v", "w"}, s.Works(), "a work without a copy is still expected")
}

func TestTheDiskSpaceOfFiles(t *testing.T) {
	for size, want := range map[int64]int64{0: 0, 1: blockSize, blockSize: blockSize, blockSize + 1: 2 * blockSize} {
		assert.Equal(t, want, diskSpace(size), "%d bytes", size)
	}
}

func TestAnUnreportedStatusIsKeptUntilTheHubHasIt(t *testing.T) {
	dir, secrets := t.TempDir(), secretsClient(t, nil, nil)
	w := copiedWork("w", 7, configMap)
	openIn(t, dir, "hub", secrets).sync(t, w)
	s := openIn(t, dir, "hub", secrets)
	found := s.loadW(t)
	require.NoError(t, s.SaveStatus(found, &found.Work.Status))
	status, err := s.UnreportedStatus(t.Context(), "w", w.UID)
	require.NoError(t, err)
	assert.Nil(t, status, "the status that the hub has is not unreported")
	concluded := *found.Work.Status.DeepCopy()
	concluded.ResourceStatus.Manifests[0].ResourceMeta.Name = "concluded"
	require.NoError(t, s.SaveStatus(found, &concluded))

	for range 2 {
		s = openIn(t, dir, "hub", secrets)
		assert.Equal(t, concluded, s.loadW(t).Work.Status)
		status, err := s.UnreportedStatus(t.Context(), "w", w.UID)
		require.NoError(t, err)
		assert.Equal(t, &concluded, status)
	}
	status, err = s.UnreportedStatus(t.Context(), "w", "another work")
	require.NoError(t, err)
	assert.Nil(t, status)
	s.StatusReported("w")
	status, err = s.UnreportedStatus(t.Context(), "w", w.UID)
	require.NoError(t, err)
	assert.Nil(t, status)
	assert.False(t, s.upToDate(s.headerOf(w, appliedUID)), "the copy is written again")
}

func TestAnUnreportedStatusOutlivesItsGenerationAndTheDisk(t *testing.T) {
	dir, secrets := t.TempDir(), secretsClient(t, nil, nil)
	w := copiedWork("w", 7, configMap)
	openIn(t, dir, "hub", secrets).sync(t, w)
	s := openIn(t, dir, "hub", secrets)
	found := s.loadW(t)
	concluded := *found.Work.Status.DeepCopy()
	concluded.ResourceStatus.Manifests[0].ResourceMeta.Name = "concluded"
	s.MaxBytes = 0
	require.ErrorContains(t, s.SaveStatus(found, &concluded), "does not fit")
	assert.Equal(t, concluded, s.loadW(t).Work.Status)
	s.Invalidate("w", w.UID, 8)
	status, err := s.UnreportedStatus(t.Context(), "w", w.UID)
	require.NoError(t, err)
	assert.Equal(t, &concluded, status)
	s.Invalidate("w", "another work of the name", 1)
	status, err = s.UnreportedStatus(t.Context(), "w", "another work of the name")
	require.NoError(t, err)
	assert.Nil(t, status)
}

func TestCopiesOfOtherHubsAreDeletedOnce(t *testing.T) {
	dir, secrets := t.TempDir(), secretsClient(t, nil, nil)
	openIn(t, dir, "former hub", secrets).sync(t, copiedWork("w", 7, configMap))
	s := openIn(t, dir, "hub", secrets)
	assert.Equal(t, int64(blockSize), s.bytes)
	s.sync(t, copiedWork("w", 1, configMap))
	assert.Equal(t, []string{s.path("w")}, files(t, dir))
	assert.Equal(t, int64(blockSize), s.bytes)
}

func TestTheMetricsOfTheCopies(t *testing.T) {
	s := openIn(t, t.TempDir(), "hub", secretsClient(t, nil, nil))
	s.sync(t, copiedWork("w", 1, configMap))
	s.sync(t, copiedWork("v", 1, configMap))
	s.recordWrite(errors.New("the disk is full"))
	offline := true
	metrics := NewCollector(s, func() bool { return offline })
	expect := func(isOffline float64) {
		t.Helper()
		registry := prometheus.NewPedanticRegistry()
		require.NoError(t, registry.Register(metrics))
		families, err := registry.Gather()
		require.NoError(t, err)
		values := map[string]float64{}
		for _, family := range families {
			metric := family.GetMetric()[0]
			values[family.GetName()] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
		assert.Equal(t, map[string]float64{
			"spokelet_work_copies": 2, "spokelet_work_copy_bytes": 2 * blockSize, "spokelet_work_copy_failures_total": 1,
			"spokelet_work_offline": isOffline,
		}, values)
	}
	expect(1)
	offline = false
	expect(0)
}
