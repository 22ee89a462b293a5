package proxy

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"time"
)

const (
	// longestLine is the most that one event of a watch may have.
	longestLine = 16 << 20
	// expiredAfter is the most events that a watch shows before it loses some and ends with 410, longestSilence the
	// longest time in between.
	expiredAfter, longestSilence = 5, 2 * time.Second
	// hangAfter is the most events after which a watch hangs or is cut.
	hangAfter = 10
)

// expired is the event with which a watch ends whose version is too old.
const expired = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",` +
	`"message":"too old resource version","reason":"Expired","code":410}}` + "\n"

// script holds what happens to one watch.
type script struct {
	late, hangs, silent time.Duration
	twice, expire, lied bool
	// hang, cut and loses are after how many events that happens; -1 means never.
	hang, cut, loses int
	honest           <-chan struct{}
}

// write draws what happens to a watch.
func (a *asked) write() script {
	s := script{hang: -1, cut: -1, honest: a.honest}
	if hits(a.random, a.lies.Late) && a.lies.LateBy > 0 {
		s.late, s.lied = time.Duration(a.random.Int64N(int64(a.lies.LateBy))), true
	}
	if hits(a.random, a.lies.Twice) {
		s.twice, s.lied = true, true
	}
	if hits(a.random, a.lies.Expire) {
		s.expire, s.loses, s.lied = true, a.random.IntN(expiredAfter), true
		s.silent = time.Duration(a.random.Int64N(int64(longestSilence)))
	}
	if hits(a.random, a.lies.Hang) {
		s.hang, s.hangs, s.lied = a.random.IntN(hangAfter), a.lies.HangFor, true
	}
	if hits(a.random, a.lies.Cut) {
		s.cut, s.lied = a.random.IntN(hangAfter), true
	}
	return s
}

// stream returns the events of a watch as the client is to see them.
func (l *Liar) stream(ctx context.Context, events io.ReadCloser, a *asked) io.ReadCloser {
	s := a.write()
	if late := l.lag(a); late > s.late {
		s.late, s.lied = late, true
	}
	ended := context.AfterFunc(ctx, func() { _ = events.Close() })
	go func() {
		select {
		case <-a.turn:
			_ = events.Close()
		case <-ctx.Done():
		}
	}()
	if !s.lied {
		return events
	}
	for name, happens := range map[string]bool{
		"late": s.late > 0, "twice": s.twice, "expire": s.expire, "hang": s.hang >= 0, "cut": s.cut >= 0,
	} {
		if happens {
			l.tell(name)
		}
	}
	out, in := io.Pipe()
	go func() {
		defer ended()
		defer func() { _ = events.Close() }()
		_ = in.CloseWithError(s.play(ctx, events, in))
	}()
	return out
}

// play passes events on, and ends with the error with which the client sees the stream end. A watch that was lied to
// ends when the liar becomes honest, because its client cannot know what it missed.
func (s *script) play(ctx context.Context, from io.Reader, to io.Writer) error {
	lines := make(chan timedLine)
	go read(ctx, from, lines)
	for n := 0; ; n++ {
		if n == s.cut {
			return io.ErrUnexpectedEOF
		}
		if n == s.hang {
			s.pause(ctx, s.hangs)
			return io.ErrUnexpectedEOF
		}
		var one timedLine
		select {
		case <-s.honest:
			return io.ErrUnexpectedEOF
		case <-ctx.Done():
			return ctx.Err()
		case next, ok := <-lines:
			if !ok {
				return io.EOF
			}
			one = next
		}
		if s.expire && n == s.loses {
			s.pause(ctx, s.silent) // this event is lost, and those that come meanwhile
			_, _ = io.WriteString(to, expired)
			return io.EOF
		}
		s.pause(ctx, s.late-time.Since(one.at))
		if _, err := to.Write(one.text); err != nil {
			return err
		}
		if s.twice && !bytes.Contains(one.text, []byte(`"type":"BOOKMARK"`)) {
			if _, err := to.Write(one.text); err != nil {
				return err
			}
		}
	}
}

// pause waits, but no longer than the liar lies.
func (s *script) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-s.honest:
	case <-timer.C:
	}
}

// timedLine is an event as the API server sent it.
type timedLine struct {
	text []byte
	at   time.Time
}

// read reads events until the stream ends.
func read(ctx context.Context, from io.Reader, to chan<- timedLine) {
	defer close(to)
	scanner := bufio.NewScanner(from)
	scanner.Buffer(nil, longestLine)
	for scanner.Scan() {
		line := timedLine{text: append(bytes.Clone(scanner.Bytes()), '\n'), at: time.Now()}
		select {
		case to <- line:
		case <-ctx.Done():
			return
		}
	}
}
