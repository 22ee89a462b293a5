package virtual

import "time"

const (
	// quietSpans are looked at, of quietFor each.
	quietSpans, quietFor = 12, 5 * time.Minute
	// quietSpan counts those in which nothing happened.
	quietSpan = "quiet spans"
)

// beQuiet waits until a fleet has recovered, and then looks for writes on links in times in which nothing happens.
func (w *World) beQuiet(links []*link) {
	time.Sleep(recovered)
	for range quietSpans {
		w.lookFor(links)
	}
	if w.judge.counted()[quietSpan] == 0 {
		w.judge.violated("quiet: certificates were renewed all the time")
	}
}

// lookFor looks for writes in one such time.
func (w *World) lookFor(links []*link) {
	certificates := w.judge.counted()[certificate]
	before := make([]map[string]int, len(links))
	for i, l := range links {
		before[i] = l.written()
	}
	time.Sleep(quietFor)
	if w.judge.counted()[certificate] > certificates {
		return // one that is renewed costs writes
	}
	w.judge.count(quietSpan)
	for i, l := range links {
		if more := l.more(before[i]); len(more) > 0 {
			w.judge.violated("quiet: %s wrote in %s in which nothing happened: %v", l.name, quietFor, l.saying(more))
		}
	}
}
