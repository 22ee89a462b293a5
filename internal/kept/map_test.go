package kept

import (
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAMapKeepsAValueForEachKey(t *testing.T) {
	m := &Map[string, int]{}
	_, known := m.Get("a")
	assert.False(t, known, "it begins empty")
	m.Forget("a")
	m.Put("a", 1)
	m.Put("b", 2)
	m.Change("a", func(was int) (int, bool) { return was + 10, true })
	m.Change("b", func(int) (int, bool) { return 0, false })
	m.Change("c", func(was int) (int, bool) { return was, true })
	value, known := m.Get("a")
	assert.True(t, known)
	assert.Equal(t, 11, value)
	_, known = m.Get("b")
	assert.False(t, known, "a change forgets it")
	_, known = m.Get("c")
	assert.True(t, known, "a zero value is one")
	assert.Equal(t, 2, m.Len())
	sum := map[string]int{}
	m.Each(func(key string, value int) { sum[key] = value })
	assert.Equal(t, map[string]int{"a": 11, "c": 0}, sum)
	m.Forget("c")
	assert.Equal(t, 1, m.Len())
}

func TestATakenKeyIsForgotten(t *testing.T) {
	m := &Map[int, string]{}
	for key, value := range []string{"even", "odd", "even"} {
		m.Put(key, value)
	}
	taken := m.Take(func(_ int, value string) bool { return value == "even" })
	slices.Sort(taken)
	assert.Equal(t, []int{0, 2}, taken)
	assert.Equal(t, 1, m.Len())
	assert.Empty(t, m.Take(func(_ int, value string) bool { return value == "even" }))
}

func TestAMapIsForManyAtATime(t *testing.T) {
	m, group := &Map[int, int]{}, sync.WaitGroup{}
	for range 8 {
		group.Go(func() {
			for key := range 100 {
				m.Change(key, func(was int) (int, bool) { return was + 1, true })
			}
		})
	}
	group.Wait()
	m.Each(func(key, value int) { assert.Equal(t, 8, value, "key %d", key) })
	assert.Equal(t, 100, m.Len())
}
