package apiserver

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// watchTime is how long a watch lasts that asks for no time.
	watchTime = 30 * time.Minute
	// bookmarkPeriod is how often a watch that wants bookmarks gets one.
	bookmarkPeriod = time.Minute
)

// chosen reads the selectors of a list or a watch.
func (r *request) chosen() (selection, error) {
	query := r.http.URL.Query()
	one := selection{namespace: r.Namespace, name: r.Name}
	var err error
	if one.labels, err = labels.Parse(query.Get("labelSelector")); err != nil {
		return one, apierrors.NewBadRequest(err.Error())
	}
	wanted, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return one, apierrors.NewBadRequest(err.Error())
	}
	for _, f := range wanted.Requirements() {
		switch {
		case f.Field == "metadata.name" && (f.Operator == "=" || f.Operator == "=="):
			one.name = f.Value
		case f.Field == "metadata.namespace" && (f.Operator == "=" || f.Operator == "=="):
			one.namespace = f.Value
		case r.resource.definition != nil && !strings.HasPrefix(f.Field, "metadata."):
			return one, apierrors.NewBadRequest("field label not supported: " + f.Field)
		default:
			one.matches = func(o object) bool { return wanted.Matches(fieldsOf{o}) }
		}
	}
	return one, nil
}

// fieldsOf are the fields of an object for a selector.
type fieldsOf struct{ object }

// Has implements fields.Fields.
func (f fieldsOf) Has(field string) bool { return f.Get(field) != "" }

// Get implements fields.Fields.
func (f fieldsOf) Get(field string) string {
	value, _, _ := unstructured.NestedFieldNoCopy(f.object, strings.Split(field, ".")...)
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// versionOf reads the version of a list or watch; zero is any.
func versionOf(query url.Values) (uint64, error) {
	text := query.Get("resourceVersion")
	if text == "" {
		return 0, nil
	}
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest("invalid resource version: " + text)
	}
	return version, nil
}

// serveList answers a list.
func (s *Server) serveList(r *request) *http.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, meta, err := s.page(r)
	if err != nil {
		return s.answerError(r, err)
	}
	body, err := listBody(r, meta, all)
	if err != nil {
		return s.answerError(r, err)
	}
	return s.answer(r, http.StatusOK, body)
}

// continuation is where a list goes on.
type continuation struct {
	Version         uint64
	Namespace, Name string
}

// page returns the objects that a request selects, or one page of them, and the metadata of the list.
func (s *Server) page(r *request) ([]*stored, map[string]any, error) {
	query := r.http.URL.Query()
	chosen, err := r.chosen()
	if err != nil {
		return nil, nil, err
	}
	wanted, err := versionOf(query)
	if err != nil {
		return nil, nil, err
	}
	if wanted > s.version {
		return nil, nil, tooLarge(wanted, s.version)
	}
	from := continuation{Version: s.version}
	if query.Get("resourceVersionMatch") == string(metav1.ResourceVersionMatchExact) {
		from.Version = wanted
	}
	if text := query.Get("continue"); text != "" {
		raw, err := base64.RawURLEncoding.DecodeString(text)
		if err == nil {
			err = json.Unmarshal(raw, &from)
		}
		if err != nil {
			return nil, nil, apierrors.NewBadRequest("continue key is not valid: " + err.Error())
		}
	}
	// Pages are cut before selectors are looked at: the last one may be empty.
	present, err := r.table.at(from.Version, chosen.namespace, func(o *stored) bool {
		return from.Name == "" || o.key.compare(key{from.Namespace, from.Name}) > 0
	})
	if err != nil {
		return nil, nil, err
	}
	meta := map[string]any{"resourceVersion": strconv.FormatUint(from.Version, 10)}
	limit, _ := strconv.Atoi(query.Get("limit"))
	var all []*stored
	for i, o := range present {
		if !chosen.selects(o) {
			continue
		}
		all = append(all, o)
		if left := len(present) - i - 1; limit > 0 && len(all) == limit && left > 0 {
			next := encode(continuation{from.Version, o.key.namespace, o.key.name})
			meta["continue"] = base64.RawURLEncoding.EncodeToString(next)
			if chosen.labels.Empty() && chosen.name == "" && chosen.matches == nil {
				meta["remainingItemCount"] = left
			}
			break
		}
	}
	return all, meta, nil
}

// listBody writes a list.
func listBody(r *request, meta map[string]any, all []*stored) ([]byte, error) {
	f := r.form()
	kind, version := r.resource.Kind+"List", r.resource.GroupVersion().String()
	if f.partial {
		kind, version = "PartialObjectMetadataList", metav1.SchemeGroupVersion.String()
	}
	var body bytes.Buffer
	fmt.Fprintf(&body, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":[`, kind, version, encode(meta))
	for i, one := range all {
		if i > 0 {
			body.WriteByte(',')
		}
		raw, err := r.table.resource.bytes(one, f)
		if err != nil {
			return nil, err
		}
		body.Write(raw)
	}
	body.WriteString("]}")
	return body.Bytes(), nil
}

// tooLarge is the error for a version that is not reached yet.
func tooLarge(wanted, have uint64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", wanted, have), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version",
	}}
	return err
}

// serveWatch answers a watch.
func (s *Server) serveWatch(r *request) *http.Response {
	query := r.http.URL.Query()
	chosen, err := r.chosen()
	if err != nil {
		return s.answerError(r, err)
	}
	from, err := versionOf(query)
	if err != nil {
		return s.answerError(r, err)
	}
	initial, _ := strconv.ParseBool(query.Get("sendInitialEvents"))
	bookmarks, _ := strconv.ParseBool(query.Get("allowWatchBookmarks"))
	one := newStream(chosen, r.table.resource, r.form())
	s.mu.Lock()
	defer s.mu.Unlock()
	if expired := s.begin(r.table, one, from, initial); expired != nil {
		one.fail(statusOf(expired))
	}
	if initial && bookmarks {
		one.write(watch.Bookmark, one.bookmark(s.version, true))
	}
	s.follow(r, one, bookmarks)
	return s.respond(r, http.StatusOK, "application/json", -1, one)
}

// begin shows a watch what it has to see first.
func (s *Server) begin(t *table, one *stream, from uint64, initial bool) error {
	if from == 0 || initial {
		present, err := t.at(s.version, one.namespace, one.selects)
		for _, o := range present {
			one.event(watch.Added, o)
		}
		return err
	}
	one.after = from
	later, err := t.since(min(from, s.version))
	for _, c := range later {
		one.show(c)
	}
	return err
}

// follow shows a watch what happens from now on, until its time is over or the client leaves.
func (s *Server) follow(r *request, one *stream, bookmarks bool) {
	limit := watchTime
	if seconds, _ := strconv.Atoi(r.http.URL.Query().Get("timeoutSeconds")); seconds > 0 {
		limit = time.Duration(seconds) * time.Second
	}
	t := r.table
	if t.watches[one.namespace] == nil {
		t.watches[one.namespace] = map[*stream]bool{}
	}
	t.watches[one.namespace][one] = true
	over := s.clock.AfterFunc(limit, func() { one.end(nil) })
	left := context.AfterFunc(r.Context, func() { one.end(context.Cause(r.Context)) })
	stopBookmarks := func() {}
	if bookmarks {
		stopBookmarks = s.bookmark(one)
	}
	one.close = func() {
		over.Stop()
		left()
		s.mu.Lock()
		defer s.mu.Unlock()
		stopBookmarks()
		delete(t.watches[one.namespace], one)
		if len(t.watches[one.namespace]) == 0 {
			delete(t.watches, one.namespace)
		}
	}
}

// bookmark sends a watch the version that is reached, now and then, until it is stopped.
func (s *Server) bookmark(one *stream) (stop func()) {
	stopped := false
	var next func()
	timer := s.clock.AfterFunc(bookmarkPeriod, func() { next() })
	next = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !stopped {
			one.write(watch.Bookmark, one.bookmark(s.version, false))
			timer = s.clock.AfterFunc(bookmarkPeriod, next)
		}
	}
	return func() { stopped = true; timer.Stop() }
}
