package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// DefaultTimeout is how long a scenario may take that names no other time. Two cores run everything, so this is for a
// scenario that hangs and not for one that is slow.
const DefaultTimeout = 5 * time.Minute

// cleanupTimeout is how long the cleanups of one scenario may take together.
const cleanupTimeout = 3 * time.Minute

// Suite is a list of scenarios that play on the same clusters.
type Suite struct {
	// Name names the suite in the report.
	Name string
	// Clusters are the clusters that it needs.
	Clusters []ClusterSpec
	// Samples loads the images of the sample add-ons, too.
	Samples bool
	// Scenarios are played in this order.
	Scenarios []Scenario
}

// ClusterSpec is a cluster that a suite needs.
type ClusterSpec struct {
	// Role names the cluster in the suite.
	Role Role
	// SigningDuration is the longest lifetime of a certificate that the cluster issues; zero means a year.
	SigningDuration time.Duration
	// SecretSync is how long its kubelet may take to bring a changed Secret into a pod; zero means a minute or two.
	SecretSync time.Duration
}

// Role says what a cluster is for.
type Role string

// The roles of clusters.
const (
	Hub     Role = "hub"
	Managed Role = "managed"
	Hosting Role = "hosting"
)

// Scenario is something that a user does or that goes wrong, with all that must hold then.
type Scenario struct {
	// Name is unique in its suite: lower-case words with hyphens.
	Name string
	// Doc is a sentence about what is shown.
	Doc string
	// Needs are the names of earlier scenarios that must have passed.
	Needs []string
	// Timeout ends a scenario that hangs; zero means DefaultTimeout.
	Timeout time.Duration
	// Run plays the scenario; an error states what did not hold.
	Run func(ctx context.Context, s *Session) error
}

// Session holds what one scenario works with.
type Session struct {
	// Fleet has the clusters.
	Fleet *Fleet

	notes    []string
	cleanups []cleanup
}

type cleanup struct {
	what string
	do   func(context.Context) error
}

// Cleanup runs do when the scenario has ended; what completes the sentence "could not ...".
func (s *Session) Cleanup(what string, do func(ctx context.Context) error) {
	s.cleanups = append(s.cleanups, cleanup{what: what, do: do})
}

// Note adds a sentence or a figure to the report.
func (s *Session) Note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// clean runs the cleanups, the last one first. It runs also when ctx has ended.
func (s *Session) clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), cleanupTimeout,
		fmt.Errorf("gave up after %s", cleanupTimeout))
	defer cancel()
	var errs []error
	for _, c := range slices.Backward(s.cleanups) {
		if err := c.do(ctx); err != nil {
			errs = append(errs, fmt.Errorf("could not %s: %w", c.what, err))
		}
	}
	s.cleanups = nil
	return errors.Join(errs...)
}

// play runs a scenario with its deadline and its cleanups.
func (s *Session) play(ctx context.Context, scenario Scenario) error {
	timeout := scenario.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	limited, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("gave up after %s", timeout))
	defer cancel()
	return errors.Join(scenario.Run(limited, s), s.clean(ctx))
}

// Select returns the scenarios whose names contain one of some words, with those that they need; without words, all.
func (s *Suite) Select(words []string) []Scenario {
	if len(words) == 0 {
		return s.Scenarios
	}
	wanted := map[string]bool{}
	for _, scenario := range slices.Backward(s.Scenarios) {
		named := slices.ContainsFunc(words, func(word string) bool { return strings.Contains(scenario.Name, word) })
		if !named && !wanted[scenario.Name] {
			continue
		}
		wanted[scenario.Name] = true
		for _, need := range scenario.Needs {
			wanted[need] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(s.Scenarios), func(scenario Scenario) bool { return !wanted[scenario.Name] })
}

// Check returns an error if the suite is not well formed: a name that is not unique, a need that is not met before.
func (s *Suite) Check() error {
	var errs []error
	seen := map[string]bool{}
	for _, scenario := range s.Scenarios {
		if seen[scenario.Name] {
			errs = append(errs, fmt.Errorf("suite %s has two scenarios %s", s.Name, scenario.Name))
		}
		for _, need := range scenario.Needs {
			if !seen[need] {
				errs = append(errs, fmt.Errorf("suite %s: %s needs %s, which does not come before it", s.Name, scenario.Name,
					need))
			}
		}
		seen[scenario.Name] = true
	}
	return errors.Join(errs...)
}
