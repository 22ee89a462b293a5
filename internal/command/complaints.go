package command

import (
	"errors"
	"fmt"
	"math"
)

// Complaints are what is wrong with the values of flags.
type Complaints struct{ all []error }

// About complains about a flag.
func (c *Complaints) About(flag, format string, args ...any) {
	c.Add(fmt.Errorf("--%s: %s", flag, fmt.Sprintf(format, args...)))
}

// Add adds an error that names its flag; nil adds nothing.
func (c *Complaints) Add(err error) { c.all = append(c.all, err) }

// Number is the value of a flag, with the least value that it takes.
type Number struct {
	Flag         string
	Value, Least float64
}

// Numbers complains about the values that are too low.
func (c *Complaints) Numbers(numbers ...Number) {
	for _, number := range numbers {
		if math.IsNaN(number.Value) || number.Value < number.Least {
			c.About(number.Flag, "must not be below %v", number.Least)
		}
	}
}

// Err returns all complaints at once; nil when there are none.
func (c *Complaints) Err() error { return errors.Join(c.all...) }
