package proxy

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"sync"
	"time"
)

// Lies are how often the liar lies, each between 0 and 1, and how. The zero value is honest.
type Lies struct {
	// Seed decides which requests are lied about.
	Seed uint64
	// Refuse is the share of requests that are refused, Lose that of writes whose answer is lost, Stale that of lists from
	// a cache that are earlier ones.
	Refuse, Lose, Stale float64
	// RetryAfter is when a client is told to try again that asked too often, in seconds; 0 tells it nothing.
	RetryAfter int
	// Late, Twice, Expire, Hang and Cut are the shares of watches to which that happens.
	Late, Twice, Expire, Hang, Cut float64
	// LateBy is the most that an event is late, HangFor the most that a watch hangs.
	LateBy, HangFor time.Duration
	// Date is by how much the Date of answers is off.
	Date time.Duration

	// Those that follow need a real connection, and Draw draws none of them.

	// Stall is the share of requests that are not answered: half of them never arrive, half are carried out. Their
	// connections hang until HangFor has passed.
	Stall float64
	// Behind is the share of lists from a cache that come from a second API server, which is BehindBy behind the first.
	Behind   float64
	BehindBy time.Duration
	// Away is the share of requests that a proxy answers with 503, because it does not reach the API server. Astray is by
	// how much the Date of that is off.
	Away   float64
	Astray time.Duration
	// Rate is how many bytes a second a link carries in each direction, and Delay how late it delivers each packet; the
	// link is as fast as the machine where Rate is 0.
	Rate  int
	Delay time.Duration
}

// Draw returns lies of a seed: some of all kinds, so that most programs get on, but slowly.
func Draw(seed uint64) Lies {
	random := rand.New(rand.NewPCG(seed, 1))
	some := func(most float64) float64 {
		if random.IntN(3) == 0 {
			return 0 // lies of one kind show best without the others
		}
		return random.Float64() * most
	}
	lies := Lies{
		Seed: seed, RetryAfter: 1, Refuse: some(0.2), Lose: some(0.2), Stale: some(0.8),
		Late: some(1), Twice: some(1), Expire: some(0.5), Hang: some(0.3), Cut: some(0.5),
		LateBy: time.Duration(random.IntN(3000)) * time.Millisecond, HangFor: time.Duration(1+random.IntN(10)) * time.Second,
	}
	if random.IntN(3) == 0 {
		lies.Date = time.Duration(random.IntN(7200)-3600) * time.Second
	}
	return lies
}

// DrawReal returns lies of a seed that need a real connection, besides those of Draw.
func DrawReal(seed uint64) Lies {
	lies, random := Draw(seed), rand.New(rand.NewPCG(seed, 2))
	if random.IntN(2) == 0 {
		lies.Stall = random.Float64() * 0.05
	}
	if random.IntN(2) == 0 {
		lies.Behind, lies.BehindBy = random.Float64(), time.Duration(1+random.IntN(8))*time.Second
	}
	if random.IntN(2) == 0 {
		lies.Astray = time.Duration(random.IntN(2*astray)-astray) * time.Second
		lies.Away = 0.1
	}
	if random.IntN(3) == 0 {
		lies.Rate = 10_000 << random.IntN(5)
		lies.Delay = time.Duration(random.IntN(300)) * time.Millisecond
	}
	return lies
}

// astray is by how many seconds the clock of a proxy may be wrong: a month.
const astray = 30 * 24 * 3600

// String lists the lies that are told.
func (l Lies) String() string {
	var parts []string
	for _, one := range []struct {
		name  string
		share float64
	}{
		{"refuse", l.Refuse}, {"lose", l.Lose}, {"stale", l.Stale}, {"late", l.Late}, {"twice", l.Twice},
		{"expire", l.Expire}, {"hang", l.Hang}, {"cut", l.Cut}, {"stall", l.Stall}, {"behind", l.Behind},
		{"away", l.Away},
	} {
		if one.share > 0 {
			parts = append(parts, fmt.Sprintf("%s %.2f", one.name, one.share))
		}
	}
	if l.Date != 0 {
		parts = append(parts, fmt.Sprintf("date %s", l.Date))
	}
	if l.Astray != 0 {
		parts = append(parts, fmt.Sprintf("astray %s", l.Astray))
	}
	if l.Rate > 0 {
		parts = append(parts, fmt.Sprintf("slow %d B/s %s", l.Rate, l.Delay))
	}
	return fmt.Sprintf("seed %d: %s", l.Seed, strings.Join(parts, ", "))
}

// Liar lies about an API server to the clients whose requests pass through it. Its methods may be called at any time.
type Liar struct {
	mu     sync.Mutex
	lies   Lies
	honest chan struct{} // closed while it is honest
	turn   chan struct{} // closed when the lies change
	drawn  map[string]int
	told   map[string]int
	bursts map[string]int
	lists  map[string][]answer
	// seen are the versions of the API server of the last while, behind the lists that come from another one, with the
	// time at which that has caught up.
	seen   []version
	behind map[string]time.Time
	// wrote are the last requests that wrote.
	wrote []Write
}

// NewLiar returns an honest Liar.
func NewLiar() *Liar {
	l := &Liar{
		honest: make(chan struct{}), turn: make(chan struct{}), drawn: map[string]int{}, told: map[string]int{},
		bursts: map[string]int{}, lists: map[string][]answer{}, behind: map[string]time.Time{},
	}
	close(l.honest)
	return l
}

// Lie lets the liar lie from now on. It ends all watches, because what a watch shows is drawn when it begins.
func (l *Liar) Lie(lies Lies) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lies = lies
	select {
	case <-l.honest:
		l.honest = make(chan struct{})
	default:
	}
	clear(l.drawn)
	clear(l.behind)
	close(l.turn)
	l.turn = make(chan struct{})
}

// Honest lets the liar say the truth from now on. What hangs ends, and so does each watch that was lied to.
func (l *Liar) Honest() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lies = Lies{}
	clear(l.bursts)
	clear(l.behind)
	select {
	case <-l.honest:
	default:
		close(l.honest)
	}
}

// Told counts the lies since NewLiar, by their names.
func (l *Liar) Told() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	told := map[string]int{}
	for name, count := range l.told {
		told[name] = count
	}
	return told
}

// Rows are the counts of Told as lines of a table.
func (l *Liar) Rows() [][2]string {
	var rows [][2]string
	for name, count := range l.Told() {
		rows = append(rows, [2]string{name, fmt.Sprint(count)})
	}
	sort.Slice(rows, func(i, j int) bool { return rows[i][0] < rows[j][0] })
	return rows
}

// tell counts a lie.
func (l *Liar) tell(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told[name]++
}

// hits reports whether something of a share happens.
func hits(random *rand.Rand, share float64) bool { return random.Float64() < share }
