package offline

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
	// DefaultMaxBytes is how much disk space the copies may take unless Config sets another limit, in bytes.
	DefaultMaxBytes = 64 << 20
	// folderName is the folder of the copies within the directory. The store touches nothing else in the directory.
	folderName = "works"
	// ownerFile contains the name of the directory, see directoryField. copySuffix ends the names of copies, tempPrefix
	// starts the names of unfinished files.
	ownerFile, copySuffix, tempPrefix = "owner", ".work", "tmp-"
	// blockSize is the least disk space of a file, in bytes.
	blockSize = 4 << 10
)

// Config is the place of the copies and the hub and cluster of their works.
type Config struct {
	// Dir is the directory. It must survive a restart of the process, and no other process may use it.
	Dir string
	// MaxBytes is how much disk space the copies may take, in bytes; 0 means DefaultMaxBytes.
	MaxBytes int64
	// Secrets reads and writes, without a cache, the Secret names.SecretWorkCache in Namespace, which contains the key.
	Secrets   client.Client
	Namespace string
	// HubHash and Cluster identify the works. The store never returns copies of another hub or cluster.
	HubHash, Cluster string
}

// Store has copies of the works of one cluster on disk. All methods may be called at the same time. A nil Store has no
// works.
type Store struct {
	Config
	folder string

	mu sync.Mutex
	// aead encrypts and decrypts copies; nil while the directory has no key.
	aead    cipher.AEAD
	entries map[string]entry
	// bytes is the disk space of all copies, those of other hubs included.
	bytes int64
	// closed means that nothing is written any more. stale means that an outdated copy could not be deleted, so that the
	// key has to be deleted.
	closed, stale bool
	// cleaned means that the copies of other hubs and clusters are deleted.
	cleaned bool
	// failing means that the last write failed; failures counts failed writes and deletions.
	failing  bool
	failures int64
}

// entry holds what the store knows of one work.
type entry struct {
	// header is that of the copy; without a copy it has the UID and the generation of the last pass, and size is 0.
	header header
	// size is the disk space of the copy in bytes.
	size int64
	// unreported is the status that passes without the hub concluded; nil when they concluded nothing.
	unreported *workv1.ManifestWorkStatus
}

// Open opens the copies of a hub and a cluster. The store is nil, and the log has the reason, when the agent may not
// read the key or cannot use the directory. An error means that it is unknown whether there is a key.
func Open(ctx context.Context, config Config) (*Store, error) {
	if config.MaxBytes == 0 {
		config.MaxBytes = DefaultMaxBytes
	}
	s := &Store{Config: config, folder: filepath.Join(config.Dir, folderName), entries: map[string]entry{}}
	logger := log.FromContext(ctx)
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		logger.Error(err, "works are not kept on disk, for the directory cannot be used", "directory", config.Dir)
		return nil, nil // no store is a valid result
	}
	owner, err := os.ReadFile(filepath.Join(s.folder, ownerFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		logger.Error(err, "works are not kept on disk, for the directory cannot be read", "directory", config.Dir)
		return nil, nil // no store is a valid result
	}
	key, err := s.readKey(ctx, string(owner))
	var refused keyRefusedError
	if errors.As(err, &refused) {
		// From now on the copies become outdated, so they must not be valid later.
		logger.Error(err, "works are not kept on disk")
		_ = os.Remove(filepath.Join(s.folder, ownerFile))
		return nil, nil // no store is a valid result
	}
	if err != nil {
		return nil, err
	}
	if key != nil {
		if s.aead, err = newAEAD(key); err != nil {
			return nil, fmt.Errorf("reading the key of the works on disk: %w", err)
		}
		s.scan(ctx)
	}
	return s, nil
}

// scan reads the headers of the copies and deletes unfinished files.
func (s *Store) scan(ctx context.Context) {
	files, err := os.ReadDir(s.folder)
	if err != nil {
		log.FromContext(ctx).Error(err, "the works on disk cannot be listed")
	}
	for _, file := range files {
		path := filepath.Join(s.folder, file.Name())
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
		size := diskSpace(info.Size())
		s.bytes += size
		head, err := readHeaderOf(path)
		if err == nil && info.Size() > maxFile {
			err = errors.New("it is too large")
		}
		if err != nil {
			log.FromContext(ctx).Info("a work on disk is of no use", "file", file.Name(), "reason", err.Error())
			continue
		}
		if head.Hub == s.HubHash && head.Cluster == s.Cluster && s.path(head.Work) == path {
			s.entries[head.Work] = entry{header: head, size: size}
		}
	}
}

// readHeaderOf reads the header of a file.
func readHeaderOf(path string) (header, error) {
	file, err := os.Open(path)
	if err != nil {
		return header{}, err
	}
	defer file.Close()
	start, err := io.ReadAll(io.LimitReader(file, int64(fixedSize+maxHeader)))
	if err != nil {
		return header{}, err
	}
	head, _, err := readHeader(start)
	return head, err
}

// diskSpace is the disk space of a file with so many bytes.
func diskSpace(size int64) int64 { return (size + blockSize - 1) / blockSize * blockSize }

// path is the file of a work. The name of a work may be longer than that of a file, so the file has its hash.
func (s *Store) path(work string) string {
	sum := sha256.Sum256([]byte(s.HubHash + "/" + s.Cluster + "/" + work))
	return filepath.Join(s.folder, hex.EncodeToString(sum[:])+copySuffix)
}

// Works returns the sorted names of the works that have a copy.
func (s *Store) Works() []string {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for name := range s.entries {
		if s.entries[name].size > 0 {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// Size returns how many bytes the copy of a work has on disk; 0 when there is none.
func (s *Store) Size(work string) int {
	if s == nil {
		return 0
	}
	return int(s.entryOf(work).size)
}

// Copy is a work as the hub last had it.
type Copy struct {
	// Work has its name, UID, generation, labels and spec, and of its status the part that decides how objects are
	// treated.
	Work *workv1.ManifestWork
	// Applied is the UID of the AppliedManifestWork of the work.
	Applied types.UID
}

// Load returns the copy of a work; nil means that there is none that can be trusted.
func (s *Store) Load(ctx context.Context, work string) (*Copy, error) {
	s.mu.Lock()
	known, aead := s.entries[work], s.aead
	s.mu.Unlock()
	if known.size == 0 || aead == nil {
		return nil, nil // absence is a valid result
	}
	file, err := os.ReadFile(s.path(work))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the copy of work %s: %w", work, err)
	}
	var head header
	var found *workv1.ManifestWork
	if err == nil {
		head, found, err = decode(aead, file)
	}
	if err == nil && head != known.header {
		err = errors.New("it is the copy of something else")
	}
	if err != nil {
		log.FromContext(ctx).Info("the copy of a work is of no use", "work", work, "reason", err.Error())
		s.Delete(work)
		return nil, nil // absence is a valid result
	}
	if known.unreported != nil {
		found.Status = *known.unreported
	}
	return &Copy{Work: found, Applied: head.Applied}, nil
}

// Invalidate deletes the copy of a work if its generation is not the one that is about to be applied. It comes before
// anything is applied, so that a crash leaves no copy of a former generation.
func (s *Store) Invalidate(work string, uid types.UID, generation int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.entries[work]
	if known.header.UID == uid && known.header.Generation == generation {
		return
	}
	s.remove(work, known)
	next := entry{header: header{UID: uid, Generation: generation}}
	if known.header.UID == uid {
		next.unreported = known.unreported
	}
	s.entries[work] = next
}

// Delete deletes the copy of a work that is deleted or about to be.
func (s *Store) Delete(work string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, exists := s.entries[work]; exists {
		s.remove(work, known)
		delete(s.entries, work)
	}
}

// remove deletes the file of a work. If that fails, all copies become invalid, see Active.
func (s *Store) remove(work string, known entry) {
	if known.size == 0 {
		return
	}
	if err := os.Remove(s.path(work)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.stale = true
		s.failures++
		return
	}
	s.bytes -= known.size
}

// UnreportedStatus returns the status that passes without the hub concluded and that is not reported to the hub,
// whatever the generation of the work is now; nil when there is none.
func (s *Store) UnreportedStatus(ctx context.Context, work string, uid types.UID) (*workv1.ManifestWorkStatus, error) {
	known := s.entryOf(work)
	switch {
	case known.header.UID != uid:
		return nil, nil // absence is a valid result
	case known.unread() == 0:
		return known.unreported, nil
	}
	found, err := s.Load(ctx, work)
	if err != nil || found == nil {
		return nil, err
	}
	return &found.Work.Status, nil
}

// Unread returns how many bytes UnreportedStatus reads and decodes; 0 where what it returns is known.
func (s *Store) Unread(work string, uid types.UID) int {
	known := s.entryOf(work)
	if known.header.UID != uid {
		return 0
	}
	return known.unread()
}

// unread returns how many bytes have to be read for the unreported status.
func (e entry) unread() int {
	if e.unreported != nil || !e.header.Unreported {
		return 0
	}
	return int(e.size)
}

func (s *Store) entryOf(work string) entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entries[work]
}

// StatusReported records that the hub has the unreported status of a work.
func (s *Store) StatusReported(work string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.entries[work]; known.unreported != nil || known.header.Unreported {
		// Without its stamp the copy differs from the work, so that Sync writes it again.
		known.unreported, known.header.Unreported, known.header.Stamp = nil, false, ""
		s.entries[work] = known
	}
}
