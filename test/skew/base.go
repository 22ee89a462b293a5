package skew

import (
	"errors"
	"fmt"
	"time"
)

// age is how old a base is at least, where there is one.
const age = 7 * 24 * time.Hour

// Commit is a commit of the main line.
type Commit struct {
	// Hash is its full name, Subject the first line of what it says.
	Hash, Subject string
	// Time is when it was committed.
	Time time.Time
}

// String returns its short name, its day and its subject.
func (c Commit) String() string {
	return fmt.Sprintf("%.7s of %s, %q", c.Hash, c.Time.UTC().Format(time.DateOnly), c.Subject)
}

// Choose returns the commit to compare the first one of a line with, newest first: the newest usable one that is at
// least a week older, and otherwise the oldest usable one.
func Choose(line []Commit, usable func(Commit) (bool, error)) (Commit, error) {
	if len(line) < 2 {
		return Commit{}, errors.New("the history has no earlier commit: a clone that is not shallow has one")
	}
	young := 1
	for young < len(line) && line[0].Time.Sub(line[young].Time) < age {
		young++
	}
	for _, c := range line[young:] {
		if ok, err := usable(c); ok || err != nil {
			return c, err
		}
	}
	for i := young - 1; i > 0; i-- {
		if ok, err := usable(line[i]); ok || err != nil {
			return line[i], err
		}
	}
	return Commit{}, errors.New("no earlier commit has both programs with the flags that are needed")
}
