package work

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is asked about a manifest changes with what is done with it, and so must the answer that is remembered.
// Weakness: W20
func TestAnAnswerCountsForTheSameQuestionOnly(t *testing.T) {
	get, all := map[string]bool{"get": true}, map[string]bool{
		"create": true, "update": true, "patch": true, "get": true, "delete": true,
	}
	without := map[string]bool{"create": true, "update": true, "patch": true, "get": true}
	stirred := func(t *task) {
		t.frozen, t.heard = true, newsChanged
		t.prior.wish = t.wish
	}
	for name, c := range map[string]struct {
		// allowed is what the executor may do, before is asked about first and after then.
		allowed       map[string]bool
		before, after func(*task)
		// denied and asked are what is said of the second, and whether that takes a question.
		denied, asked bool
	}{
		"the same manifest":                        {allowed: all, before: func(*task) {}, after: func(*task) {}},
		"a complete manifest stays complete":       {allowed: get, before: frozenTask, after: frozenTask},
		"a complete manifest is stirred":           {allowed: get, before: frozenTask, after: stirred},
		"a complete manifest thaws":                {allowed: get, before: frozenTask, after: func(*task) {}, denied: true, asked: true},
		"a complete manifest is stirred and thaws": {allowed: get, before: stirred, after: func(*task) {}, denied: true, asked: true},
		"a manifest that was only read is applied": {allowed: get, before: readOnlyTask, after: func(*task) {}, denied: true, asked: true},
		"an orphan is to go with its work":         {allowed: without, before: orphanedTask, after: func(*task) {}, denied: true, asked: true},
		"another manifest":                         {allowed: all, before: func(*task) {}, after: func(t *task) { t.wish.content[9]++ }, asked: true},
		"another version":                          {allowed: all, before: func(*task) {}, after: func(t *task) { t.resource.Version = "v2" }, asked: true},
	} {
		t.Run(name, func(t *testing.T) {
			api := &reviews{allowed: c.allowed}
			g := newTestAuthorizer(api)
			pass := func(at time.Duration, change func(*task)) *task {
				f := executedWork(asked.Add(at))
				tasks := []task{*taskOn("configmaps", "x", func(t *task) { t.now = f.now }, change)}
				tasks[0].freeze()
				g.authorize(t.Context(), f, tasks)
				return &tasks[0]
			}
			require.Nil(t, pass(0, c.before).denied)
			n := len(api.asked)
			assert.Equal(t, c.denied, pass(time.Second, c.after).denied != nil)
			assert.Equal(t, c.asked, len(api.asked) > n)
		})
	}
}
