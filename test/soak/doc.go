// Package soak watches the product under stress for as long as one likes. A soak starts real control planes and our
// programs and reports figures; "make soak" runs the long forms and prints one table, the tests run short forms.
//
// Rotation (rotation.go) has certificates of a minute, an agent that is killed again and again, a hub that is away a
// fifth of the time, and a client that reads from the hub every second with the credential of its add-on. A seed
// decides when.
//
// Rollouts (rollouts.go) disturb nothing: every minute the add-on of three clusters gets another template, one cluster
// at a time. Each rollout must be complete, by all that there is to read, and then nothing may be written until the
// next one.
package soak
