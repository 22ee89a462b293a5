package apiserver

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// stream is an open watch: the body of its answer.
type stream struct {
	selection

	// resource names what it shows, in the form.
	resource *Resource
	form     form
	// after is the version after which changes are shown.
	after uint64
	// close takes it out of its table, once.
	close func()

	mu    sync.Mutex
	ready *sync.Cond
	// waiting are the lines that the client has not read, ended that none follow.
	waiting bytes.Buffer
	ended   bool
	err     error
}

func newStream(s selection, r *Resource, f form) *stream {
	one := &stream{selection: s, resource: r, form: f}
	one.ready = sync.NewCond(&one.mu)
	return one
}

// show shows a change, as far as it concerns the watch.
func (s *stream) show(c *change) {
	if c.version <= s.after {
		return
	}
	was := c.before != nil && s.selects(c.before)
	is := c.after != nil && s.selects(c.after)
	switch {
	case was && is:
		s.event(watch.Modified, c.after)
	case is:
		s.event(watch.Added, c.after)
	case was && c.after == nil:
		s.event(watch.Deleted, c.last())
	case was: // it is shown as it was, in the version in which it left
		s.event(watch.Deleted, store(c.before.copied(), c.version))
	}
}

// event adds an event about an object. The watch ends at one that cannot be converted.
func (s *stream) event(kind watch.EventType, o *stored) {
	body, err := s.resource.bytes(o, s.form)
	if err != nil {
		s.fail(statusOf(err))
		return
	}
	s.write(kind, body)
}

// write adds an event.
func (s *stream) write(kind watch.EventType, object []byte) {
	line := encode(struct {
		Type   watch.EventType `json:"type"`
		Object json.RawMessage `json:"object"`
	}{kind, object})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.waiting.Write(line)
	s.waiting.WriteByte('\n')
	s.ready.Broadcast()
}

// bookmark is the object of an event that tells a version, in the form of the stream.
func (s *stream) bookmark(version uint64, initial bool) []byte {
	o := object{"kind": s.resource.Kind, "apiVersion": s.resource.in(s.form.version).GroupVersion().String()}
	if s.form.partial {
		o = object{"kind": "PartialObjectMetadata", "apiVersion": metav1.SchemeGroupVersion.String()}
	}
	o.setMeta("resourceVersion", strconv.FormatUint(version, 10))
	if initial {
		o.setMeta("annotations", map[string]any{metav1.InitialEventsAnnotationKey: "true"})
	}
	return encode(o)
}

// fail adds an event that says why the watch ends, and ends it.
func (s *stream) fail(status metav1.Status) {
	s.write(watch.Error, encode(status))
	s.end(nil)
}

// end ends the watch; what is waiting can still be read unless err is set.
func (s *stream) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.ended, s.err = true, err
		s.ready.Broadcast()
	}
}

// Read implements io.Reader.
func (s *stream) Read(into []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.waiting.Len() == 0 && !s.ended {
		s.ready.Wait()
	}
	switch {
	case s.err != nil:
		return 0, s.err
	case s.waiting.Len() > 0:
		return s.waiting.Read(into)
	}
	return 0, io.EOF
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.end(io.ErrClosedPipe)
	s.close()
	return nil
}
