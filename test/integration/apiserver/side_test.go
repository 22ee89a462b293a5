package apiserver_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// side is one of the API servers, with the names that the test gives to what they draw themselves.
type side struct {
	t    *testing.T
	http *http.Client
	host string
	// space stands for the namespace of the test.
	space string
	names *naming
}

// naming gives what an API server draws names of its own: UIDs, and versions by the object.
type naming struct {
	mu       sync.Mutex
	uids     map[string]string
	versions map[string]string
	seen     map[string]int
}

func newNaming() *naming {
	return &naming{uids: map[string]string{}, versions: map[string]string{}, seen: map[string]int{}}
}

// ask is one request, the same for both sides but for what they draw themselves.
type ask struct {
	method, path, query, kind, accept string
	body                              any
}

func (a *ask) String() string {
	body, _ := json.Marshal(a.body)
	return fmt.Sprintf("%s %s?%s %s %s", a.method, a.path, a.query, a.kind, body)
}

// reply is an answer in the names of the test.
type reply struct {
	Code   int
	Reason string
	Body   any
}

// send sends a request. Names of the test in it become those of the side.
func (s *side) send(a *ask) (reply, map[string]any) {
	s.t.Helper()
	raw := []byte{}
	if a.body != nil {
		text, err := json.Marshal(a.body)
		require.NoError(s.t, err)
		raw = []byte(s.own(string(text)))
	}
	r, err := http.NewRequestWithContext(s.t.Context(), a.method, s.host+s.own(a.path)+"?"+s.own(a.query), bytes.NewReader(raw))
	require.NoError(s.t, err)
	r.Header.Set("Content-Type", a.kind)
	r.Header.Set("Accept", "application/json"+a.accept)
	answer, err := s.http.Do(r)
	require.NoError(s.t, err)
	defer func() { assert.NoError(s.t, answer.Body.Close()) }()
	body, err := io.ReadAll(answer.Body)
	require.NoError(s.t, err)
	content := map[string]any{}
	require.NoError(s.t, json.Unmarshal(body, &content), "%s", body)
	got := reply{Code: answer.StatusCode}
	if content["kind"] == "Status" {
		got.Reason = fmt.Sprint(content["reason"])
		if got.Code == http.StatusOK {
			got.Body = s.named(content["details"])
		}
		return got, content
	}
	got.Body = s.named(content)
	if named, ok := got.Body.(map[string]any); ok && strings.HasSuffix(fmt.Sprint(named["kind"]), "List") {
		items, _ := named["items"].([]any)
		for _, one := range items { // the kind is that of the list, and clients of what is built in do not read it
			item, _ := one.(map[string]any)
			delete(item, "kind")
			delete(item, "apiVersion")
		}
		named["items"] = append([]any{}, items...)
	}
	return got, content
}

// own replaces the names of the test by those of the side.
func (s *side) own(text string) string {
	s.names.mu.Lock()
	defer s.names.mu.Unlock()
	for own, name := range s.names.versions { // they have UIDs in them
		text = strings.ReplaceAll(text, name, own)
	}
	for own, name := range s.names.uids {
		text = strings.ReplaceAll(text, name, own)
	}
	return strings.ReplaceAll(text, "SPACE", s.space)
}

// named replaces what the side draws by names of the test, and drops what is not compared.
func (s *side) named(value any) any {
	s.names.mu.Lock()
	defer s.names.mu.Unlock()
	return s.names.walk(value, s.space)
}

func (n *naming) walk(value any, space string) any {
	switch value := value.(type) {
	case map[string]any:
		return n.walkMap(value, space)
	case []any:
		all := make([]any, len(value))
		for i := range value {
			all[i] = n.walk(value[i], space)
		}
		return all
	case string:
		if name, known := n.uids[value]; known {
			return name
		}
		return strings.ReplaceAll(value, space, "SPACE")
	}
	return value
}

func (n *naming) walkMap(value map[string]any, space string) map[string]any {
	all := map[string]any{}
	for key, one := range value {
		if meta, ok := one.(map[string]any); ok && key == "metadata" {
			all[key] = n.walkMeta(meta, space)
			continue
		}
		all[key] = n.walk(one, space)
	}
	return all
}

// walkMeta is walkMap for metadata.
func (n *naming) walkMeta(meta map[string]any, space string) map[string]any {
	uid, _ := meta["uid"].(string)
	if uid != "" && n.uids[uid] == "" {
		name := fmt.Sprint(n.walk(meta["name"], space))
		n.seen[name]++
		n.uids[uid] = fmt.Sprintf("UID-%d-OF-%s!", n.seen[name], name)
	}
	all := map[string]any{}
	for key, one := range meta {
		switch key {
		case "managedFields":
		case "creationTimestamp", "deletionTimestamp":
			all[key] = one != nil
		case "continue":
			if one != "" {
				all[key] = true
			}
		case "resourceVersion":
			if uid != "" { // that of a list is not compared
				all[key] = n.version(n.uids[uid], fmt.Sprint(one))
			}
		default:
			all[key] = n.walk(one, space)
		}
	}
	return all
}

// version names the versions of an object in the order in which they are seen.
func (n *naming) version(object, version string) string {
	if name := n.versions[version]; name != "" {
		return name
	}
	n.seen[object]++
	n.versions[version] = fmt.Sprintf("VERSION-%d-OF-%s", n.seen[object], object)
	return n.versions[version]
}

// seen holds what a watch showed, by object.
type seen struct {
	mu     sync.Mutex
	events map[string][]string
}

// follow watches a path from its present state until the test ends.
func (s *side) follow(path, query string) *seen {
	s.t.Helper()
	_, list := s.send(&ask{method: http.MethodGet, path: path, query: query})
	version, _, err := unstructured.NestedString(list, "metadata", "resourceVersion")
	require.NoError(s.t, err)
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet,
		fmt.Sprintf("%s%s?watch=true&resourceVersion=%s&%s", s.host, s.own(path), version, query), nil)
	require.NoError(s.t, err)
	answer, err := s.http.Do(r) //nolint:bodyclose // when the test ends
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusOK, answer.StatusCode)
	shown := &seen{events: map[string][]string{}}
	own := &side{t: s.t, space: s.space, names: newNaming()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			shown.add(own, lines.Bytes())
		}
	}()
	s.t.Cleanup(func() {
		_ = answer.Body.Close()
		<-done
	})
	return shown
}

func (e *seen) add(s *side, line []byte) {
	var event struct {
		Type   string
		Object map[string]any
	}
	if json.Unmarshal(line, &event) != nil {
		return
	}
	name, _, _ := unstructured.NestedString(event.Object, "metadata", "name")
	if name == "kube-root-ca.crt" { // a controller makes it in each namespace, in its own time
		return
	}
	text, _ := json.Marshal(s.perObject(event.Object))
	e.mu.Lock()
	defer e.mu.Unlock()
	e.events[name] = append(e.events[name], event.Type+" "+string(text))
}

// perObject is the content of an event without the names of other objects, which are seen in no order.
func (s *side) perObject(o map[string]any) any {
	meta, _ := o["metadata"].(map[string]any)
	owners, _ := meta["ownerReferences"].([]any)
	delete(meta, "ownerReferences")
	named, _ := s.named(o).(map[string]any)
	own, _ := named["metadata"].(map[string]any)
	delete(own, "uid")
	named["owners"] = len(owners)
	return named
}

// texts returns the events so far.
func (e *seen) texts() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []string
	for name, events := range e.events {
		all = append(all, name+":\n  "+strings.Join(events, "\n  "))
	}
	sort.Strings(all)
	return all
}
