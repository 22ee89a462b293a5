// Package crash_test kills the agent after every single write that it makes to a hub or to its own cluster, one write
// after the other, and lets a new agent go on: while it joins, while it registers an add-on, and while it rotates both.
//
// The agent runs inside the test, with a transport that counts writes. At the write in question the request reaches the
// API server and takes effect; its answer never arrives, and from that instant nothing the agent sends leaves it: no
// further write, no lease that is released, no clean-up. What it knew is lost with it, as after kill -9. The hub
// manager is the program that we ship, with the rights that we ship; add-ons are approved and signed by the test.
package crash_test
