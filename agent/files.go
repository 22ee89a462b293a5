package agent

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// blindPause is the pause between two looks at files that cannot be watched.
const blindPause = 30 * time.Second

// fileWatch tells when files may have changed. It watches directories, since files are usually replaced by renaming,
// and those of Secrets that are mounted by renaming a link beside them. It is a Runnable of a phase's manager.
type fileWatch struct {
	// paths returns the files; it is asked again after each change.
	paths func() []string
	// changed is called after every event near the files and once at the start; it must not block.
	changed func()
	clock   clock.Clock
}

// Start implements manager.Runnable.
func (w *fileWatch) Start(ctx context.Context) error {
	if len(w.paths()) == 0 {
		<-ctx.Done()
		return nil
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		log.FromContext(ctx).Error(err, "files cannot be watched, looking at them now and then", "pause", blindPause.String())
		w.lookBlindly(ctx)
		return nil
	}
	defer func() { _ = watcher.Close() }()
	for {
		w.arm(ctx, watcher)
		w.changed()
		select {
		case <-ctx.Done():
			return nil
		case _, open := <-watcher.Events:
			if !open {
				return errors.New("the watch of files ended")
			}
			drain(watcher.Events)
		case err := <-watcher.Errors:
			log.FromContext(ctx).Error(err, "watching files")
		}
	}
}

// arm watches the directories of the files, and where one does not exist the nearest one above it. A file that is a
// link is watched at both ends.
func (w *fileWatch) arm(ctx context.Context, watcher *fsnotify.Watcher) {
	for _, path := range w.paths() {
		ends := []string{path}
		if target, err := filepath.EvalSymlinks(path); err == nil && target != path {
			ends = append(ends, target)
		}
		for _, end := range ends {
			dir := nearest(filepath.Dir(end))
			if err := watcher.Add(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				log.FromContext(ctx).Error(err, "watching a directory", "directory", dir)
			}
		}
	}
}

// nearest returns the directory, or the first one above it that exists.
func nearest(dir string) string {
	for {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
		above := filepath.Dir(dir)
		if above == dir {
			return dir
		}
		dir = above
	}
}

// drain drops the events that are there already: all of them together lead to one look.
func drain(events <-chan fsnotify.Event) {
	for {
		select {
		case <-events:
		default:
			return
		}
	}
}

func (w *fileWatch) lookBlindly(ctx context.Context) {
	for {
		w.changed()
		timer := w.clock.NewTimer(blindPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
	}
}
