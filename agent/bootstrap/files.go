package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/oauth2"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// pollPause is the pause between two reads of files that cannot be watched.
const pollPause = 30 * time.Second

// FileWatch watches files. It watches their directories, because most writers replace a file by renaming another one,
// and a kubelet replaces the files of a mounted Secret by renaming a link beside them. It is a Runnable of a phase's
// manager.
type FileWatch struct {
	// Paths returns the files; it is called again after each change.
	Paths func() []string
	// Changed is called after every event near the files and once at the start; it must not block.
	Changed func()
	// Clock measures the pauses where files cannot be watched.
	Clock clock.Clock
	// Poll reads the files now and then and does not watch them.
	Poll bool
}

// Start implements manager.Runnable.
func (w *FileWatch) Start(ctx context.Context) error {
	if len(w.Paths()) == 0 {
		<-ctx.Done()
		return nil
	}
	if w.Poll {
		w.poll(ctx)
		return nil
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		log.FromContext(ctx).Error(err, "files cannot be watched, reading them now and then", "pause", pollPause.String())
		w.poll(ctx)
		return nil
	}
	defer func() { _ = watcher.Close() }()
	for {
		w.arm(ctx, watcher)
		w.Changed()
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

// arm watches the directories of the files, and the nearest existing ancestor of one that does not exist. A directory
// may be created while its ancestor is not watched yet, so arm looks again until there is none that is new.
func (w *FileWatch) arm(ctx context.Context, watcher *fsnotify.Watcher) {
	for watched := map[string]bool{}; ; {
		before := len(watched)
		for _, dir := range w.directories() {
			if watched[dir] {
				continue
			}
			watched[dir] = true
			if err := watcher.Add(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				log.FromContext(ctx).Error(err, "watching a directory", "directory", dir)
			}
		}
		if len(watched) == before {
			return
		}
	}
}

// directories returns the directories to watch. If a file is a link, that of its target is one of them.
func (w *FileWatch) directories() []string {
	var list []string
	for _, path := range w.Paths() {
		list = append(list, nearest(filepath.Dir(path)))
		if target, err := filepath.EvalSymlinks(path); err == nil && target != path {
			list = append(list, nearest(filepath.Dir(target)))
		}
	}
	return list
}

// nearest returns the directory, or its first ancestor that exists.
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

// drain drops pending events: all of them together lead to one read.
func drain(events <-chan fsnotify.Event) {
	for {
		select {
		case <-events:
		default:
			return
		}
	}
}

func (w *FileWatch) poll(ctx context.Context) {
	for {
		w.Changed()
		timer := w.Clock.NewTimer(pollPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
	}
}

// tokenPeriod is how long a token from a file is used before the file is read again, as client-go has it for tokens of
// ServiceAccounts.
const tokenPeriod = time.Minute

// tokenFile reads the file of a token, each time by way of its directory: the file may have become a link since the
// kubeconfig was checked, and the server that the kubeconfig names must not get a file from elsewhere.
type tokenFile struct {
	dir, path string
	clock     clock.PassiveClock
}

// rereadToken makes the clients of a configuration read the file of the token again, if there is one, without following
// a link that leads out of the directory. While it cannot be read, they use the last token, until the server refuses
// it.
func rereadToken(config *rest.Config, dir string, clk clock.PassiveClock) error {
	if config.BearerTokenFile == "" {
		return nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("finding the directory of the kubeconfig: %w", err)
	}
	path, err := filepath.Rel(dir, config.BearerTokenFile)
	if err != nil {
		return fmt.Errorf("finding the file of the token: %w", err)
	}
	source := transport.NewCachedTokenSource(tokenFile{dir: dir, path: path, clock: clk})
	if _, err := source.Token(); err != nil {
		return err
	}
	config.BearerToken, config.BearerTokenFile = "", ""
	config.Wrap(transport.ResettableTokenSourceWrapTransport(source))
	return nil
}

// Token implements oauth2.TokenSource.
func (f tokenFile) Token() (*oauth2.Token, error) {
	raw, err := f.read()
	token := strings.TrimSpace(string(raw))
	if err == nil && token == "" {
		err = errors.New("the file is empty")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the token in %s: %w", filepath.Join(f.dir, f.path), err)
	}
	return &oauth2.Token{AccessToken: token, Expiry: f.clock.Now().Add(tokenPeriod)}, nil
}

// read returns the content of the file.
func (f tokenFile) read() ([]byte, error) {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return nil, err
	}
	raw, err := root.ReadFile(f.path)
	return raw, errors.Join(err, root.Close())
}
