package faults_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/internal/causes"
)

const (
	// inTime is how long after a fault its cause must be named.
	inTime = 10 * time.Second
	// patience is how long anything else may take.
	patience = time.Minute
	// again is the pause between two questions.
	again = 250 * time.Millisecond
)

// answer is what the command says.
type answer struct {
	status  int
	code    causes.Code
	message string
	all     string
}

// first is the first line about the cause.
func (a answer) first() string { return fmt.Sprintf("%s: %s", a.code, a.message) }

// ask asks why.
func ask(t *testing.T, args string) answer {
	t.Helper()
	var out, errs bytes.Buffer
	line := append([]string{"--kubeconfig", world.viewer, "-o", "json", "why"}, strings.Fields(args)...)
	command := exec.CommandContext(t.Context(), world.program, line...)
	command.Env = append(os.Environ(), "KUBECONFIG=", "LANG=C.UTF-8")
	command.Stdout, command.Stderr = &out, &errs
	err := command.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		require.NoError(t, err)
	}
	a := answer{status: command.ProcessState.ExitCode(), all: out.String() + errs.String()}
	if a.status > 1 {
		return a
	}
	var decoded struct {
		Answer struct {
			Problem *struct {
				Code    causes.Code `json:"code"`
				Message string      `json:"message"`
			} `json:"problem"`
		} `json:"answer"`
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &decoded), out.String())
	if decoded.Answer.Problem != nil {
		a.code, a.message = decoded.Answer.Problem.Code, decoded.Answer.Problem.Message
	}
	return a
}

// until asks until the answer is as it should be, and returns it with the time that took.
func until(t *testing.T, limit time.Duration, args, what string, holds func(a answer) bool) (answer, time.Duration) {
	t.Helper()
	began := time.Now()
	ticker := time.NewTicker(again)
	defer ticker.Stop()
	for {
		a := ask(t, args)
		took := time.Since(began)
		if holds(a) {
			return a, took
		}
		if took > limit {
			t.Fatalf("why %s does not say within %s %s, but exit status %d, %s\n%s", args, limit, what, a.status, a.first(), a.all)
		}
		<-ticker.C
	}
}

// named waits until the command names the code.
func named(t *testing.T, limit time.Duration, args string, code causes.Code) {
	t.Helper()
	a, took := until(t, limit, args, string(code), func(a answer) bool { return a.status == 1 && a.code == code })
	t.Logf("after %.1fs: %s", took.Seconds(), a.first())
}

// isWell waits until the command finds nothing.
func isWell(t *testing.T, args string) {
	t.Helper()
	until(t, patience, args, "that all is well", func(a answer) bool { return a.status == 0 })
}
