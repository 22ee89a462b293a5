// Package credentialdir keeps the credential of the agent as files, for agents that only do works
// (--hub-kubeconfig-dir).
package credentialdir

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
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	kit "github.com/spokelet/spokelet/internal/reconcile"
)

const (
	// dataLink is the link to the directory with the files, as where a kubelet mounts a Secret.
	dataLink = "..data"
	// newLink is a link that is about to replace another.
	newLink = "..new"
)

// Dir is the directory with the stored credential as files, laid out as a kubelet mounts a Secret: each file is a link
// through ..data, which is replaced in one step. So a reader that opens ..data once never pairs an old certificate with
// a new key. The files of a Secret that is gone stay.
type Dir struct {
	// Path is the directory.
	Path string
	// Secret is the Secret with the credential, and Client reads it.
	Secret types.NamespacedName
	Client client.Reader
}

// SetupWithManager adds the directory to the manager of a phase.
func (d *Dir) SetupWithManager(mgr ctrl.Manager) error {
	own := predicate.NewPredicateFuncs(func(o client.Object) bool { return client.ObjectKeyFromObject(o) == d.Secret })
	err := ctrl.NewControllerManagedBy(mgr).Named("agent.credentialdir").WithOptions(kit.Options(1)).
		WatchesRawSource(source.Kind(mgr.GetCache(), client.Object(&corev1.Secret{}),
			&handler.EnqueueRequestForObject{}, own)).
		Complete(reconcile.Func(func(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
			var secret corev1.Secret
			if err := d.Client.Get(ctx, d.Secret, &secret); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			return ctrl.Result{}, d.write(secret.Data)
		}))
	if err != nil {
		return fmt.Errorf("setting up agent.credentialdir: %w", err)
	}
	return nil
}

// write makes the directory contain data. It leaves files alone that it did not write.
func (d *Dir) write(data map[string][]byte) error {
	err := os.MkdirAll(d.Path, 0o700)
	if err == nil && !d.contains(data) {
		err = d.swap(data)
	}
	for key := range data {
		target := filepath.Join(dataLink, key)
		if have, _ := os.Readlink(filepath.Join(d.Path, key)); err == nil && have != target {
			err = d.link(key, target)
		}
	}
	if err == nil {
		err = d.prune(data)
	}
	if err != nil {
		return fmt.Errorf("writing --hub-kubeconfig-dir: %w", err)
	}
	return nil
}

// contains reports whether the files behind ..data are exactly data.
func (d *Dir) contains(data map[string][]byte) bool {
	entries, err := os.ReadDir(filepath.Join(d.Path, dataLink))
	if err != nil || len(entries) != len(data) {
		return false
	}
	for key, want := range data {
		have, err := os.ReadFile(filepath.Join(d.Path, dataLink, key))
		if err != nil || !bytes.Equal(have, want) {
			return false
		}
	}
	return true
}

// swap writes data into a new directory, makes ..data lead to it, and removes the former one.
func (d *Dir) swap(data map[string][]byte) error {
	former, err := os.Readlink(filepath.Join(d.Path, dataLink))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	fresh, err := os.MkdirTemp(d.Path, dataLink+"-") // of mode 0700
	if err != nil {
		return err
	}
	for key, value := range data {
		if err := os.WriteFile(filepath.Join(fresh, key), value, 0o600); err != nil {
			return errors.Join(err, os.RemoveAll(fresh))
		}
	}
	if err := d.link(dataLink, filepath.Base(fresh)); err != nil {
		return errors.Join(err, os.RemoveAll(fresh))
	}
	if !strings.HasPrefix(former, "..") || filepath.Base(former) != former || former == ".." {
		return nil // there was none, or it is not ours
	}
	return os.RemoveAll(filepath.Join(d.Path, former))
}

// prune removes the links of keys that are gone.
func (d *Dir) prune(data map[string][]byte) error {
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path := filepath.Join(d.Path, entry.Name())
		target, err := os.Readlink(path)
		if _, wanted := data[entry.Name()]; err != nil || wanted || filepath.Dir(target) != dataLink {
			continue
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

// link replaces whatever has the name by a link, in one step.
func (d *Dir) link(name, target string) error {
	fresh := filepath.Join(d.Path, newLink)
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(target, fresh); err != nil {
		return err
	}
	return os.Rename(fresh, filepath.Join(d.Path, name))
}
