// Package pause says how long to wait before something is tried again: soon at first, then ever later, because what
// failed many times seldom works a moment later, and many clusters may try the same. It is arithmetic: it reads no
// clock and remembers nothing, so that a pause follows from what its caller knows, such as the last pause, how often
// something failed in a row, or since when it fails. The latter two survive a restart where they are in the cluster.
// Spread adds a share that depends on names only, so that a fleet does not come at once, and each of it always at its
// own instant.
package pause
