package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	head = "fuzz: elapsed: 9s, execs: 26000 (870/sec), new interesting: 65 (total: 105)\n" +
		"fuzz: elapsed: 10s, execs: 26991 (740/sec), new interesting: 65 (total: 105)\n"
	byTheClock = head + "--- FAIL: FuzzX (10.21s)\n    context deadline exceeded\nFAIL\nexit status 1\n"
)

func TestTheEndOfTheTimeIsNotAFailure(t *testing.T) {
	for sentence, c := range map[string]struct {
		out  string
		want bool
	}{
		"the time was over": {byTheClock, true},
		"an input failed with these words": {
			out: head + "--- FAIL: FuzzX (1.00s)\n    --- FAIL: FuzzX (0.00s)\n        x_test.go:1: context deadline exceeded\n" +
				"    \n    Failing input written to testdata/fuzz/FuzzX/1\nFAIL\n",
		},
		"an input failed as well":        {out: byTheClock + "Failing input written to testdata/fuzz/FuzzX/1\n"},
		"a seed failed":                  {out: "--- FAIL: FuzzX (0.01s)\n    x_test.go:1: no\nFAIL\n"},
		"the package does not compile":   {out: "FAIL\tx [build failed]\n"},
		"the time was over, and a panic": {out: head + "--- FAIL: FuzzX (10.21s)\n    panic: x\nFAIL\n"},
	} {
		t.Run(sentence, func(t *testing.T) { assert.Equal(t, c.want, endedByTheClock([]byte(c.out))) })
	}
}

func TestTheLastNumberOfInputsIsTold(t *testing.T) {
	assert.Equal(t, "execs: 26991", summary([]byte(head)))
	assert.Equal(t, "no inputs", summary(nil))
}

func TestATestWithoutAPackageIsRefused(t *testing.T) {
	require.ErrorContains(t, all(t.Context(), options{}, []string{"FuzzX"}), "FuzzX does not name a fuzz test")
}
