// Package soak watches the product under stress for as long as one likes. A soak starts real control planes and our
// programs, disturbs them by a plan that a seed decides, and reports figures; "make soak" runs the long forms and
// prints one table, the tests run a short form of each.
//
// Rotation is the one there is: certificates of a minute, an agent that is killed again and again, a hub that is away a
// fifth of the time, and a client that reads from the hub every second with the credential of its add-on.
package soak
