package storm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// look reads the world.
func (s *storm) look(ctx context.Context) (*world, error) {
	w := &world{
		hubHash: s.hubHash(), objects: map[int]*unstructured.Unstructured{},
		works: map[string]*workv1.ManifestWork{}, applied: map[string]*workv1.AppliedManifestWork{},
	}
	w.agentID = w.hubHash
	var works workv1.ManifestWorkList
	if err := s.hub.List(ctx, &works, client.InNamespace(clusterName)); err != nil {
		return nil, fmt.Errorf("listing the works: %w", err)
	}
	for i := range works.Items {
		w.works[works.Items[i].Name] = &works.Items[i]
	}
	var applied workv1.AppliedManifestWorkList
	if err := s.spoke.List(ctx, &applied); err != nil {
		return nil, fmt.Errorf("listing the applied records: %w", err)
	}
	for i := range applied.Items {
		w.applied[applied.Items[i].Name] = &applied.Items[i]
	}
	for _, k := range allKinds() {
		if err := s.lookAt(ctx, w, k); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// lookAt reads the objects of one kind.
func (s *storm) lookAt(ctx context.Context, w *world, k kind) error {
	list, err := s.objects.Resource(k.resource()).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing %s: %w", k.resource().Resource, err)
	}
	found := map[types.NamespacedName]*unstructured.Unstructured{}
	for i := range list.Items {
		one := &list.Items[i]
		found[types.NamespacedName{Namespace: one.GetNamespace(), Name: one.GetName()}] = one
	}
	for _, t := range s.model.things {
		if one := found[types.NamespacedName{Namespace: t.namespace, Name: t.name}]; t.kind == k && one != nil {
			w.objects[t.id] = one
		}
	}
	return nil
}

// get reads one object; nil without error means that it does not exist.
func (s *storm) get(ctx context.Context, t *thing) (*unstructured.Unstructured, error) {
	live, err := s.objects.Resource(t.kind.resource()).Namespace(t.namespace).Get(ctx, t.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil // absence is an answer here
	}
	return live, err
}

// audit counts the requests of the agent in an audit log.
type audit struct {
	path     string
	offset   int64
	requests int
	// last is the last request that was counted, kinds how many there were of each kind.
	last  string
	kinds map[string]int
}

// line holds what is needed of a line of an audit log.
type line struct {
	Verb string `json:"verb"`
	URI  string `json:"requestURI"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	At     string `json:"requestReceivedTimestamp"`
	Object *struct {
		Resource  string `json:"resource"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"objectRef"`
}

// read counts what was written since the last time: leases, watches and discovery aside.
func (a *audit) read() error {
	log, err := os.Open(a.path)
	if err != nil {
		return fmt.Errorf("reading the audit log: %w", err)
	}
	defer func() { _ = log.Close() }()
	if _, err := log.Seek(a.offset, io.SeekStart); err != nil {
		return fmt.Errorf("reading the audit log: %w", err)
	}
	users := []string{
		"system:serviceaccount:" + names.NamespaceAgent + ":" + names.ServiceAccountAgent,
		"system:open-cluster-management:" + clusterName + ":",
	}
	lines := bufio.NewReader(log)
	for {
		text, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // the last line may still be on its way
		}
		if err != nil {
			return fmt.Errorf("reading the audit log: %w", err)
		}
		a.offset += int64(len(text))
		var one line
		if json.Unmarshal(text, &one) != nil || one.Object == nil {
			continue
		}
		agent := slices.ContainsFunc(users, func(user string) bool { return strings.HasPrefix(one.User.Username, user) })
		if agent && one.Verb != "watch" && one.Object.Resource != "leases" && one.Object.Resource != "events" {
			a.requests++
			a.last = one.Verb + " " + one.URI
			if a.kinds == nil {
				a.kinds = map[string]int{}
			}
			a.kinds[one.Verb+" "+one.Object.Resource]++
		}
	}
}

// rest waits until the agent has asked nothing of either side for a while.
func (s *storm) rest(ctx context.Context) error {
	last, since := -1, time.Now()
	return fleet.Wait(ctx, "the agent to be at rest", nil, func(context.Context) error {
		if err := errors.Join(s.spokeAudit.read(), s.hubAudit.read()); err != nil {
			return err
		}
		if n := s.spokeAudit.requests + s.hubAudit.requests; n != last {
			last, since = n, time.Now()
		}
		if time.Since(since) < restFor {
			return fleet.NotYet("the last requests were %q and %q", s.spokeAudit.last, s.hubAudit.last)
		}
		return nil
	})
}
