// Package causes says which condition of an object is the first cause of its trouble, and gives each kind of trouble a
// stable code. The hub manager names the first cause of an add-on that is stuck with it, and "kubectl spokelet" prints
// the same cause with its code, so that a condition and the command cannot disagree. It reads conditions as the API
// defines them, whoever wrote them: with the hub manager and agents of OCM the same codes are found.
//
// The functions are pure. A code never changes its meaning; docs/operations/messages.md has a heading for each, and a
// test compares both ways.
package causes
