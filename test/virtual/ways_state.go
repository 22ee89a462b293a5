package virtual

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// settle waits until the state is the one that is wanted, or, for nil, until it does not change any more.
func (w way) settle(want map[string]string) error {
	// What failed is tried again after 16 minutes at the latest, and an edit explains removals for 15 minutes, after which
	// the hub manager notes that it is over.
	const patience, still = 80 * time.Minute, 40 * time.Minute
	before, since := map[string]string{}, time.Now()
	for end := time.Now().Add(patience); ; time.Sleep(time.Minute) {
		now, err := w.read()
		if err != nil {
			return err
		}
		if !maps.Equal(now, before) {
			before, since = now, time.Now()
		}
		quiet := time.Since(since) >= still
		if quiet && (want == nil || maps.Equal(now, want)) {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("the states differ: %s", difference(want, now))
		}
	}
}

// writes returns what the hub manager writes in a time in which nothing happens.
func (w way) writes() []string {
	before := w.way.written()
	var ofAuthor map[string]int
	if w.author != nil {
		ofAuthor = w.author.link.written()
	}
	time.Sleep(quietFor)
	more := w.way.more(before)
	if w.author != nil {
		more = append(more, w.author.link.more(ofAuthor)...)
	}
	return more
}

// read returns everything that the hub manager writes for add-ons, by kind and name, in each version. Instants, and
// what API servers count, are left out; UIDs are the names of their objects.
func (w way) read() (map[string]string, error) {
	all, uids := map[string]string{}, []string{}
	for _, kind := range w.kinds() {
		items, err := w.items(kind)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", kind, err)
		}
		for _, object := range items {
			u := unstructured.Unstructured{Object: object}
			name := fmt.Sprint(kind.Kind, " ", u.GetNamespace(), "/", u.GetName())
			uids = append(uids, string(u.GetUID()), "UID of "+name)
			if w.author != nil {
				withoutAccusation(object)
			}
			text, err := json.Marshal(without(object))
			if err != nil {
				return nil, err
			}
			all[name+" in "+kind.Version] = string(text)
		}
	}
	named := strings.NewReplacer(uids...)
	instants := regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	// What people intended is known by the UIDs and generations of Placements.
	intents := regexp.MustCompile(`(\\":\\")3:[A-Za-z0-9+/]+`)
	// A page of a Placement that is made again has another number while the former one goes.
	pages := regexp.MustCompile(`-decision-\d+|sum [0-9a-f]+`)
	parts := regexp.MustCompile(`(/decision-group\\*":\\*"[^"]*)/\d+`)
	read := make(map[string]string, len(all))
	for name, text := range all {
		text = intents.ReplaceAllString(instants.ReplaceAllString(named.Replace(text), "then"), "$1")
		text = parts.ReplaceAllString(pages.ReplaceAllString(text, "-decision"), "$1")
		read[pages.ReplaceAllString(name, "-decision")] = w.withoutAlpha(text)
	}
	return read, nil
}

// without returns a value without what counts changes, and with its conditions by type.
func without(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		for _, key := range []string{
			"resourceVersion", "generation", "observedGeneration", "lastObservedGeneration", "managedFields",
		} {
			delete(typed, key)
		}
		for key, item := range typed {
			typed[key] = without(item)
		}
		// A hub that serves v1alpha1 alone has owners in that version.
		if kind, _ := typed["kind"].(string); typed["uid"] != nil && strings.HasSuffix(kind, "AddOn") {
			typed["apiVersion"] = "addon.open-cluster-management.io/v1beta1"
		}
		if conditions, is := typed["conditions"].([]any); is {
			slices.SortFunc(conditions, func(a, b any) int { return cmp.Compare(typeOf(a), typeOf(b)) })
		}
	case []any:
		for i, item := range typed {
			typed[i] = without(item)
		}
	}
	return value
}

// withoutAccusation drops that the agent of a cluster writes no more too often, which is there only after it was said
// to. The hub manager counts what a program of an author writes on add-ons as writes of the agent; and while both are
// lied to, they may replace each other's hash of a configuration without a pause, because they have seen different
// contents.
func withoutAccusation(object map[string]any) {
	status, _ := object["status"].(map[string]any)
	if conditions, is := status["conditions"].([]any); is {
		status["conditions"] = slices.DeleteFunc(conditions, func(condition any) bool {
			content, _ := condition.(map[string]any)
			return typeOf(condition) == "cluster.spokelet.io/AgentQuiet" && content["status"] == "True"
		})
	}
}

// typeOf is the type of a condition.
func typeOf(condition any) string {
	content, _ := condition.(map[string]any)
	text, _ := content["type"].(string)
	return text
}

// difference tells where two states differ.
func difference(want, got map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			all = append(all, name+": "+firstDifference(want[name], got[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, wanted := want[name]; !wanted {
			all = append(all, name+" is there besides")
		}
	}
	return strings.Join(all, "\n")
}

// firstDifference quotes two texts where they begin to differ.
func firstDifference(want, got string) string {
	const before, length = 80, 400
	at := 0
	for at < min(len(want), len(got)) && want[at] == got[at] {
		at++
	}
	quoted := func(text string) string { return text[max(0, min(at-before, len(text))):min(len(text), at+length)] }
	return fmt.Sprintf("want %q\ngot %q", quoted(want), quoted(got))
}
