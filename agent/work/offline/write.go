package offline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// DiskError means that a copy could not be written. The store has logged it.
type DiskError struct{ cause error }

// Error is the cause.
func (e DiskError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e DiskError) Unwrap() error { return e.cause }

// Active reports whether the store writes copies. If an outdated copy could not be deleted, it first deletes the key,
// which makes all copies invalid, and nothing is written any more. An error comes from the API server.
func (s *Store) Active(ctx context.Context) (bool, error) {
	s.mu.Lock()
	stale, closed := s.stale, s.closed
	s.mu.Unlock()
	if !stale {
		return !closed, nil
	}
	if err := s.deleteKey(ctx); err != nil {
		return false, err
	}
	log.FromContext(ctx).Info("the copies of works are given up, for one that is out of date cannot be removed")
	return false, nil
}

// Sync writes the copy of a work, unless it is up to date or Invalidate was called with another generation. applied is
// the UID of the AppliedManifestWork. An error is a DiskError or comes from the API server. If the API server refuses
// the key, nothing is written any more.
func (s *Store) Sync(ctx context.Context, work *workv1.ManifestWork, applied types.UID) error {
	short := *work
	short.Status = reduceStatus(&work.Status)
	head := s.headerOf(&short, applied)
	if s.upToDate(head) {
		return nil
	}
	err := s.ensureKey(ctx)
	if err == nil {
		s.deleteForeign(ctx)
		err = s.put(head, &short)
	}
	logger := log.FromContext(ctx)
	var refused keyRefusedError
	var api apierrors.APIStatus
	switch {
	case errors.As(err, &refused):
		s.close()
		logger.Error(err, "works are not kept on disk")
		return nil
	case errors.As(err, &api):
		return err
	}
	switch changed := s.recordWrite(err); {
	case changed && err != nil:
		logger.Error(err, "the copy of a work cannot be written; without it the work is not looked after when the agent "+
			"starts while the hub is away")
	case changed:
		logger.Info("the copies of works can be written again")
	}
	if err != nil {
		return DiskError{err}
	}
	return nil
}

// SaveStatus stores the status that a pass without the hub concluded for a copy that Load returned. The store keeps it
// until StatusReported, in memory even if the disk cannot be written. An error is about the disk.
func (s *Store) SaveStatus(known *Copy, status *workv1.ManifestWorkStatus) error {
	reduced := reduceStatus(status)
	if equality.Semantic.DeepEqual(reduceStatus(&known.Work.Status), reduced) {
		return nil
	}
	work := *known.Work
	work.Status = reduced
	head := s.headerOf(&work, known.Applied)
	head.Unreported = true
	err := s.put(head, &work)
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.entries[work.Name]; known.header.UID == work.UID {
		known.unreported = &work.Status
		s.entries[work.Name] = known
	}
	return err
}

// upToDate reports whether the copy of a work has the header, and no status is unreported.
func (s *Store) upToDate(head header) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.entries[head.Work]
	return known.size > 0 && known.header == head && known.unreported == nil
}

// noRoomError means that the copies take all the disk space that they may take.
type noRoomError struct{ size, have, limit int64 }

// Error has all three sizes.
func (e noRoomError) Error() string {
	return fmt.Sprintf("a copy of %d bytes does not fit: the copies have %d bytes and may have %d",
		e.size, e.have, e.limit)
}

// put writes the copy of a work, whose status is reduced, unless another generation came meanwhile.
func (s *Store) put(head header, work *workv1.ManifestWork) error {
	s.mu.Lock()
	known, aead, have := s.entries[head.Work], s.aead, s.bytes
	s.mu.Unlock()
	if aead == nil {
		return errors.New("there is no key")
	}
	content, err := encode(aead, head, work)
	if err != nil {
		return fmt.Errorf("copying work %s: %w", head.Work, err)
	}
	size := diskSpace(int64(len(content)))
	if have-known.size+size > s.MaxBytes {
		return noRoomError{size: size, have: have - known.size, limit: s.MaxBytes}
	}
	temp, err := s.writeTemp(content)
	if err != nil {
		return fmt.Errorf("copying work %s: %w", head.Work, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known = s.entries[head.Work]
	if known.header.UID != head.UID || known.header.Generation != head.Generation {
		_ = os.Remove(temp)
		return nil
	}
	if err := os.Rename(temp, s.path(head.Work)); err != nil {
		_ = os.Remove(temp)
		return fmt.Errorf("copying work %s: %w", head.Work, err)
	}
	s.bytes += size - known.size
	s.entries[head.Work] = entry{header: head, size: size}
	return nil
}

// writeTemp writes a file that only this user may read, and returns its path. The file is not synced to the disk: if a
// power failure truncates it, decryption fails.
func (s *Store) writeTemp(content []byte) (string, error) {
	file, err := os.CreateTemp(s.folder, tempPrefix)
	if err != nil {
		return "", err
	}
	_, err = file.Write(content)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return "", err
	}
	return file.Name(), nil
}

// deleteForeign deletes, once, the copies of other hubs and clusters, which nobody keeps up to date any more.
func (s *Store) deleteForeign(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cleaned {
		return
	}
	s.cleaned = true
	files, err := os.ReadDir(s.folder)
	if err != nil {
		log.FromContext(ctx).Error(err, "the works on disk cannot be listed")
		return
	}
	own := map[string]bool{}
	var bytes int64
	for name, known := range s.entries {
		own[filepath.Base(s.path(name))] = true
		bytes += known.size
	}
	for _, file := range files {
		if strings.HasSuffix(file.Name(), copySuffix) && !own[file.Name()] {
			_ = os.Remove(filepath.Join(s.folder, file.Name()))
		}
	}
	s.bytes = bytes
}

// close ends all writing.
func (s *Store) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// recordWrite records the result of a write, and reports whether writes began or ceased to fail.
func (s *Store) recordWrite(err error) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failures++
	}
	changed = s.failing != (err != nil)
	s.failing = err != nil
	return changed
}
