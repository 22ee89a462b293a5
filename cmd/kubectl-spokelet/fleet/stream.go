package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LogOptions say which part of the log of a container is wanted.
type LogOptions struct {
	Namespace, Pod, Container string
	// Since is how long ago the first line was written at most; zero means ever.
	Since time.Duration
	// Tail is how many of the last lines are wanted; negative means all.
	Tail int64
	// Follow goes on until the container ends.
	Follow bool
	// Previous is the log of the container before it was started again.
	Previous bool
}

// Log opens the log of a container.
func (h *Hub) Log(ctx context.Context, o LogOptions) (io.ReadCloser, error) {
	path := "/api/v1/namespaces/" + url.PathEscape(o.Namespace) + "/pods/" + url.PathEscape(o.Pod) + "/log"
	request := h.client.Get().AbsPath(path)
	for name, value := range map[string]bool{"follow": o.Follow, "previous": o.Previous} {
		if value {
			request.Param(name, "true")
		}
	}
	if o.Container != "" {
		request.Param("container", o.Container)
	}
	if o.Since > 0 {
		request.Param("sinceSeconds", strconv.FormatInt(max(int64(o.Since/time.Second), 1), 10))
	}
	if o.Tail >= 0 {
		request.Param("tailLines", strconv.FormatInt(o.Tail, 10))
	}
	return request.Stream(ctx)
}

// OpenLog opens the log of a container; nil where that may not be read, which is a gap, or where there is none.
func (r *Reader) OpenLog(ctx context.Context, o LogOptions) (io.ReadCloser, error) {
	hub, is := r.Source.(*Hub)
	if !is {
		r.note(Gap{What: "logs", Why: "a bundle has no logs", Missing: true, Cluster: r.Cluster})
		return nil, nil
	}
	log, err := hub.Log(ctx, o)
	switch {
	case err == nil:
		return log, nil
	case apierrors.IsForbidden(err):
		q := Query{Resource: Resource{Plural: "pods/log"}}
		what := "pods/log in namespace " + o.Namespace
		r.note(Gap{What: what, Why: err.Error(), Cluster: r.Cluster, Rule: rule(q, "get")})
		return nil, nil
	case apierrors.IsNotFound(err), apierrors.IsBadRequest(err): // The pod has gone, or its container has not started.
		return nil, nil
	}
	return nil, r.fail(Query{Resource: Resource{Plural: "pods/log"}, Namespace: o.Namespace}, err)
}

// Pause waits, or returns the error of a context that ends before.
type Pause func(context.Context, time.Duration) error

// Changes watches a resource: first it gives all objects that there are, then each that is added or changed, until the
// context ends. A watch that the API server ends begins again, and gives all objects again; pause waits before that.
// Where a watch fails because the source does not answer, that is told once, by an error that is ErrUnreachable or
// ErrClusterUnreachable, and it is tried again for as long as the receiver wants more. An object that cannot be decoded
// is told once, too, by an error that is ErrUndecodable, and is a gap. Any other error is the last.
func Changes[T any](ctx context.Context, r *Reader, q Query, pause Pause) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		hub, is := r.Source.(*Hub)
		if !is {
			yield(zero, errors.New("a bundle does not change"))
			return
		}
		for told := false; ctx.Err() == nil; {
			on, err := watchOnce(ctx, hub, q, func(raw json.RawMessage) bool {
				var object T
				err := json.Unmarshal(raw, &object)
				switch {
				case err == nil:
					return yield(object, nil)
				case !r.undecoded(q, raw, err): // It has been told.
					return true
				}
				return yield(zero, fmt.Errorf("watching %s: %w, %s: %w", q.Resource, ErrUndecodable, objectOf(raw), err))
			})
			switch {
			case ctx.Err() != nil, err == nil && !on:
				return
			case apierrors.IsForbidden(err):
				r.note(Gap{What: q.Resource.String(), Why: err.Error(), Cluster: r.Cluster, Rule: rule(q, "watch")})
				return
			case err == nil, isExpired(err):
				told = false
			case errors.Is(err, errMalformed):
				yield(zero, err)
				return
			case apierrors.IsNotFound(err), apierrors.IsUnauthorized(err):
				if err = r.fail(q, err); err != nil {
					yield(zero, err)
				}
				return
			case !told:
				if told = true; !yield(zero, r.fail(q, err)) {
					return
				}
			}
			if pause(ctx, watchAgain) != nil {
				return
			}
		}
	}
}

// errMalformed is in errors of a watch that sends what cannot be decoded.
var errMalformed = errors.New("the answer cannot be decoded")

// watchAgain is the pause between two watches.
const watchAgain = time.Second

// watchOnce watches until the API server ends the watch, or the receiver of objects wants no more, which is false.
func watchOnce(ctx context.Context, hub *Hub, q Query, receive func(json.RawMessage) bool) (bool, error) {
	path, err := hub.path(ctx, q)
	if err != nil {
		return false, err
	}
	request := parameters(hub.client.Get().AbsPath(path), q, "").Param("watch", "true")
	stream, err := request.Stream(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = stream.Close() }()
	decoder := json.NewDecoder(stream)
	for {
		var change struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := decoder.Decode(&change); err != nil {
			return true, nil // However a watch ends, it begins again.
		}
		switch change.Type {
		case "ADDED", "MODIFIED":
			if !receive(change.Object) {
				return false, nil
			}
		case "ERROR":
			var status metav1.Status
			if err := json.Unmarshal(change.Object, &status); err != nil {
				return false, fmt.Errorf("watching %s: %w: %w", q.Resource, errMalformed, err)
			}
			return false, &apierrors.StatusError{ErrStatus: status}
		}
	}
}
