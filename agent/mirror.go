package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	kit "github.com/spokelet/spokelet/internal/reconcile"
)

const (
	// dataLink is the link in a directory of a Secret that leads to its files, as where a kubelet mounts one.
	dataLink = "..data"
	// newLink is a link that is about to take the place of another.
	newLink = "..new"
)

// mirror shows the content of a Secret as files in a directory. All files change at once: they stand in a directory of
// their own, which the link ..data leads to, so a reader that opens that one directory never pairs an old certificate
// with a new key. What stays the same is not touched. A Secret that is gone leaves its files: who uses them is not
// helped by losing them.
type mirror struct {
	dir    string
	secret types.NamespacedName
	client client.Reader
	clock  clock.PassiveClock
}

// setup adds the mirror to the manager of a phase.
func (m *mirror) setup(mgr ctrl.Manager) error {
	own := predicate.NewPredicateFuncs(func(o client.Object) bool { return client.ObjectKeyFromObject(o) == m.secret })
	err := ctrl.NewControllerManagedBy(mgr).Named("agent.mirror").WithOptions(kit.Options(1)).
		WatchesRawSource(source.Kind(mgr.GetCache(), client.Object(&corev1.Secret{}),
			&handler.EnqueueRequestForObject{}, own)).
		Complete(reconcile.Func(func(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
			return ctrl.Result{}, m.sync(ctx)
		}))
	if err != nil {
		return fmt.Errorf("setting up agent.mirror: %w", err)
	}
	return nil
}

func (m *mirror) sync(ctx context.Context) error {
	var secret corev1.Secret
	switch err := m.client.Get(ctx, m.secret, &secret); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading Secret %s for --hub-kubeconfig-dir: %w", m.secret, err)
	}
	if err := m.write(secret.Data); err != nil {
		return fmt.Errorf("writing --hub-kubeconfig-dir: %w", err)
	}
	return nil
}

// write makes the directory show data.
func (m *mirror) write(data map[string][]byte) error {
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return err
	}
	former, err := os.Readlink(filepath.Join(m.dir, dataLink))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !m.shows(data) {
		if err := m.swap(data); err != nil {
			return err
		}
		if former != "" {
			// Only now, as readers may still be in it; and never anything that is not ours.
			if err := m.removeFormer(former); err != nil {
				return err
			}
		}
	}
	if err := m.link(data); err != nil {
		return err
	}
	return m.unlink(data)
}

// shows reports whether the files that ..data leads to are exactly data.
func (m *mirror) shows(data map[string][]byte) bool {
	entries, err := os.ReadDir(filepath.Join(m.dir, dataLink))
	if err != nil || len(entries) != len(data) {
		return false
	}
	for key, want := range data {
		have, err := os.ReadFile(filepath.Join(m.dir, dataLink, key))
		if err != nil || !bytes.Equal(have, want) {
			return false
		}
	}
	return true
}

// swap writes data into a new directory and makes ..data lead to it.
func (m *mirror) swap(data map[string][]byte) error {
	fresh, err := os.MkdirTemp(m.dir, ".."+m.clock.Now().UTC().Format("2006_01_02_15_04_05.")) // of mode 0700
	if err != nil {
		return err
	}
	for key, value := range data {
		if err := os.WriteFile(filepath.Join(fresh, key), value, 0o600); err != nil {
			return errors.Join(err, os.RemoveAll(fresh))
		}
	}
	return m.replace(dataLink, filepath.Base(fresh))
}

// link makes a link for each key that leads through ..data, in the place of whatever stood there.
func (m *mirror) link(data map[string][]byte) error {
	for key := range data {
		target := filepath.Join(dataLink, key)
		if have, err := os.Readlink(filepath.Join(m.dir, key)); err == nil && have == target {
			continue
		}
		if err := m.replace(key, target); err != nil {
			return err
		}
	}
	return nil
}

// unlink removes the links of keys that are gone.
func (m *mirror) unlink(data map[string][]byte) error {
	entries, err := os.ReadDir(m.dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path := filepath.Join(m.dir, entry.Name())
		target, err := os.Readlink(path)
		if err != nil || filepath.Dir(target) != dataLink {
			continue
		}
		if _, wanted := data[entry.Name()]; wanted {
			continue
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

// replace puts a link in its place in one step.
func (m *mirror) replace(name, target string) error {
	fresh := filepath.Join(m.dir, newLink)
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(target, fresh); err != nil {
		return err
	}
	return os.Rename(fresh, filepath.Join(m.dir, name))
}

// removeFormer removes the directory that ..data led to before, if it is one of ours.
func (m *mirror) removeFormer(former string) error {
	if !strings.HasPrefix(former, "..") || filepath.Base(former) != former || former == ".." {
		return nil
	}
	return os.RemoveAll(filepath.Join(m.dir, former))
}
