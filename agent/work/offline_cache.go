package work

import (
	"context"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// DefaultCacheBytes is how much the copies of works may take on the disk when nothing is said.
	DefaultCacheBytes = 64 << 20
	// cacheFolder is the folder of the copies in the directory that was given; nothing else in there is touched.
	cacheFolder = "works"
	// ownerFile has the name of the directory, see ownerKey. copySuffix ends the names of copies, tempPrefix starts
	// those of files that are not ready.
	ownerFile, copySuffix, tempPrefix = "owner", ".work", "tmp-"
	// blockSize is what a file takes on the disk at least, in bytes.
	blockSize = 4 << 10
)

// CacheConfig says where the copies of works are and of which hub.
type CacheConfig struct {
	// Dir is the directory. It must survive a restart of the process, and no other process may use it.
	Dir string
	// MaxBytes is how much the copies may take there, in bytes; 0 means DefaultCacheBytes.
	MaxBytes int64
	// Secrets reads and writes the Secret with the key, names.SecretWorkCache in Namespace, without a cache.
	Secrets   client.Client
	Namespace string
	// HubHash and Cluster say whose works they are; copies of others are never used.
	HubHash, Cluster string
}

// Cache has copies of the works of one cluster on disk, so that a restarted agent knows them while the hub is away. It
// is no memory: what is missing there is missing, and what cannot be trusted is not there. All methods may be called at
// the same time; a nil Cache has nothing and keeps nothing.
type Cache struct {
	CacheConfig
	folder string

	mu sync.Mutex
	// seal opens and seals copies; nil while there is no key of this directory.
	seal    cipher.AEAD
	entries map[string]cached
	// bytes is what all copies take on the disk, those of other hubs too.
	bytes int64
	// closed tells that nothing is written any more; disowned that the key has to be taken back before, because a copy
	// that is out of date could not be removed.
	closed, disowned bool
	// ailing tells that the last write failed; failures counts what failed.
	ailing   bool
	failures int64
}

// cached is what is known of the copy of one work.
type cached struct {
	// label is that of the copy, or of the last pass when there is no copy; without a copy size is 0.
	label copyLabel
	size  int64
	// learned is the essence that passes without the hub came to; nil when they learned nothing.
	learned *workv1.ManifestWorkStatus
}

// OpenCache opens the copies of a hub and a cluster. Without a key that can be read, or a directory that can be used,
// the cache is nil, and the log says why. An error means that it is not known whether there is a key.
func OpenCache(ctx context.Context, config CacheConfig) (*Cache, error) {
	if config.MaxBytes == 0 {
		config.MaxBytes = DefaultCacheBytes
	}
	c := &Cache{CacheConfig: config, folder: filepath.Join(config.Dir, cacheFolder), entries: map[string]cached{}}
	logger := log.FromContext(ctx)
	if err := os.MkdirAll(c.folder, 0o700); err != nil {
		logger.Error(err, "works are not kept on disk, for the directory cannot be used", "directory", config.Dir)
		return nil, nil //nolint:nilnil // no cache is a good answer
	}
	owner, err := os.ReadFile(filepath.Join(c.folder, ownerFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		logger.Error(err, "works are not kept on disk, for the directory cannot be read", "directory", config.Dir)
		return nil, nil //nolint:nilnil // no cache is a good answer
	}
	key, err := c.readKey(ctx, string(owner))
	var refused keyRefusedError
	if errors.As(err, &refused) {
		// What is not looked after from now on must not be believed later.
		logger.Error(err, "works are not kept on disk")
		_ = os.Remove(filepath.Join(c.folder, ownerFile))
		return nil, nil //nolint:nilnil // no cache is a good answer
	}
	if err != nil {
		return nil, err
	}
	if key != nil {
		if c.seal, err = newSeal(key); err != nil {
			return nil, fmt.Errorf("reading the key of the works on disk: %w", err)
		}
		c.scan(ctx)
	}
	return c, nil
}

// scan reads the labels of the copies that are there, and removes what was never finished.
func (c *Cache) scan(ctx context.Context) {
	files, err := os.ReadDir(c.folder)
	if err != nil {
		log.FromContext(ctx).Error(err, "the works on disk cannot be listed")
	}
	for _, file := range files {
		path := filepath.Join(c.folder, file.Name())
		info, err := file.Info()
		if err != nil || !file.Type().IsRegular() {
			continue
		}
		if strings.HasPrefix(file.Name(), tempPrefix) {
			_ = os.Remove(path)
			continue
		}
		if !strings.HasSuffix(file.Name(), copySuffix) {
			continue
		}
		size := onDisk(info.Size())
		c.bytes += size
		label, err := peek(path)
		if err == nil && info.Size() > maxCopy {
			err = errors.New("it is too large")
		}
		if err != nil {
			log.FromContext(ctx).Info("a work on disk is of no use", "file", file.Name(), "reason", err.Error())
			continue
		}
		if label.Hub == c.HubHash && label.Cluster == c.Cluster && c.path(label.Work) == path {
			c.entries[label.Work] = cached{label: label, size: size}
		}
	}
}

// peek reads the label of a file.
func peek(path string) (copyLabel, error) {
	file, err := os.Open(path)
	if err != nil {
		return copyLabel{}, err
	}
	defer file.Close()
	head, err := io.ReadAll(io.LimitReader(file, int64(copyFixed+maxCopyLabel)))
	if err != nil {
		return copyLabel{}, err
	}
	label, _, err := readLabel(head)
	return label, err
}

// onDisk is what a file takes.
func onDisk(size int64) int64 { return (size + blockSize - 1) / blockSize * blockSize }

// path is the file of a work.
func (c *Cache) path(work string) string {
	sum := sha256.Sum256([]byte(c.HubHash + "/" + c.Cluster + "/" + work))
	return filepath.Join(c.folder, hex.EncodeToString(sum[:])+copySuffix)
}

// works names the works of which there is a copy.
func (c *Cache) works() []string {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []string
	for name := range c.entries {
		if c.entries[name].size > 0 {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// load reads the copy of a work; nil means that there is none that can be trusted.
func (c *Cache) load(ctx context.Context, work string) (*workv1.ManifestWork, copyLabel, error) {
	c.mu.Lock()
	known, seal := c.entries[work], c.seal
	c.mu.Unlock()
	if known.size == 0 || seal == nil {
		return nil, copyLabel{}, nil
	}
	file, err := os.ReadFile(c.path(work))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, copyLabel{}, fmt.Errorf("reading the copy of work %s: %w", work, err)
	}
	var label copyLabel
	var found *workv1.ManifestWork
	if err == nil {
		label, found, err = decodeCopy(seal, file)
	}
	if err == nil && label != known.label {
		err = errors.New("it is the copy of something else")
	}
	if err != nil {
		log.FromContext(ctx).Info("the copy of a work is of no use", "work", work, "reason", err.Error())
		c.drop(work)
		return nil, copyLabel{}, nil
	}
	if known.learned != nil {
		found.Status = *known.learned
	}
	return found, label, nil
}

// outdate removes the copy of a work when it is of another generation than the one that is about to be applied. It
// comes first, so that a crash after it leaves no copy of what is not in force any more.
func (c *Cache) outdate(work string, uid types.UID, generation int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.entries[work]
	if known.label.UID == uid && known.label.Generation == generation {
		return
	}
	c.remove(work, known)
	next := cached{label: copyLabel{UID: uid, Generation: generation}}
	if known.label.UID == uid {
		next.learned = known.learned
	}
	c.entries[work] = next
}

// drop removes the copy of a work that is gone or going.
func (c *Cache) drop(work string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, there := c.entries[work]; there {
		c.remove(work, known)
		delete(c.entries, work)
	}
}

// remove removes the file of a work. A file that stays although it must go makes all of them worthless, which the
// copier sees to.
func (c *Cache) remove(work string, known cached) {
	if known.size == 0 {
		return
	}
	if err := os.Remove(c.path(work)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.disowned = true
		c.failures++
		return
	}
	c.bytes -= known.size
}

// holds reports whether the copy of a work is as the label says.
func (c *Cache) holds(label copyLabel) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.entries[label.Work]
	return known.size > 0 && known.label == label && known.learned == nil
}

// noRoomError says that the copies take all the room that they may have.
type noRoomError struct{ size, have, limit int64 }

// Error says how much is missing.
func (e noRoomError) Error() string {
	return fmt.Sprintf("a copy of %d bytes does not fit: the copies have %d bytes and may have %d",
		e.size, e.have, e.limit)
}

// put writes the copy of a work, whose status is an essence, unless another generation has come meanwhile.
func (c *Cache) put(label copyLabel, work *workv1.ManifestWork) error {
	c.mu.Lock()
	known, seal, have := c.entries[label.Work], c.seal, c.bytes
	c.mu.Unlock()
	if seal == nil {
		return errors.New("there is no key")
	}
	content, err := encodeCopy(seal, label, work)
	if err != nil {
		return fmt.Errorf("copying work %s: %w", label.Work, err)
	}
	size := onDisk(int64(len(content)))
	if have-known.size+size > c.MaxBytes {
		return noRoomError{size: size, have: have - known.size, limit: c.MaxBytes}
	}
	temp, err := c.writeTemp(content)
	if err != nil {
		return fmt.Errorf("copying work %s: %w", label.Work, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known = c.entries[label.Work]
	if known.label.UID != label.UID || known.label.Generation != label.Generation {
		_ = os.Remove(temp)
		return nil
	}
	if err := os.Rename(temp, c.path(label.Work)); err != nil {
		_ = os.Remove(temp)
		return fmt.Errorf("copying work %s: %w", label.Work, err)
	}
	c.bytes += size - known.size
	c.entries[label.Work] = cached{label: label, size: size}
	return nil
}

// writeTemp writes a file that only this user may read, and returns its path. It is not forced to the disk: a file that
// a power failure cut off is recognized when it is read.
func (c *Cache) writeTemp(content []byte) (string, error) {
	file, err := os.CreateTemp(c.folder, tempPrefix)
	if err != nil {
		return "", err
	}
	_, err = file.Write(content)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return "", err
	}
	return file.Name(), nil
}

// learn keeps what a pass without the hub came to: work is as load returned it, with another essence now.
func (c *Cache) learn(was copyLabel, work *workv1.ManifestWork) error {
	label := labelOf(c.HubHash, c.Cluster, work, was.Applied)
	label.Learned = true
	err := c.put(label, work)
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.entries[was.Work]; known.label.UID == was.UID {
		known.learned = &work.Status
		c.entries[was.Work] = known
	}
	return err
}

// learned returns what passes without the hub came to and the hub was not told, whatever the generation of the work is
// now; nil when there is nothing.
func (c *Cache) learned(ctx context.Context, work string, uid types.UID) (*workv1.ManifestWorkStatus, error) {
	c.mu.Lock()
	known := c.entries[work]
	c.mu.Unlock()
	switch {
	case known.label.UID != uid:
		return nil, nil //nolint:nilnil // absence is an answer here
	case known.learned != nil || !known.label.Learned || known.size == 0:
		return known.learned, nil
	}
	found, _, err := c.load(ctx, work)
	if err != nil || found == nil {
		return nil, err
	}
	return &found.Status, nil
}

// forgetLearned says that the hub knows what was learned without it.
func (c *Cache) forgetLearned(work string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, there := c.entries[work]; there {
		known.learned, known.label.Learned, known.label.Stamp = nil, false, "" // the file is to be written again
		c.entries[work] = known
	}
}

// keepOnly removes the copies of all other hubs and clusters, which are not looked after any more.
func (c *Cache) keepOnly(ctx context.Context) {
	files, err := os.ReadDir(c.folder)
	if err != nil {
		log.FromContext(ctx).Error(err, "the works on disk cannot be listed")
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ours := map[string]bool{}
	var bytes int64
	for name, known := range c.entries {
		ours[filepath.Base(c.path(name))] = true
		bytes += known.size
	}
	for _, file := range files {
		if strings.HasSuffix(file.Name(), copySuffix) && !ours[file.Name()] {
			_ = os.Remove(filepath.Join(c.folder, file.Name()))
		}
	}
	c.bytes = bytes
}
