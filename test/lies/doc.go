// Package lies plays what happens to a fleet whose API servers lie. Real control planes, the hub manager and an agent
// for each cluster run with the rights that we ship, and each program reaches each API server through a proxy of its
// own (package proxy), which lies in its own way.
//
// A seed draws a play (draw.go): the lies of each proxy, and some scenes with their clusters and pauses: rollouts, a
// bad image and its fix, removals, credentials that are lost, clusters that are denied or deleted, works that vanish,
// Placements that are replaced, objects that move, programs that are killed. The driver plays them on the API servers
// themselves (scenes.go) and knows what people want in the end (wants.go). A program that ends is started again, as a
// kubelet does.
//
// A judge watches the API servers themselves (judge.go). Before people do something by which an object may go, the
// driver tells it. All other deletions are violations, and so are contents of others that change, more clusters in
// motion than the rollout allows, an add-on that goes before its hook ran, a certificate for a cluster that is not
// accepted, and one that is asked for long before the last one ends.
//
// Then all proxies say the truth. Everything must become as people want; what is measured is whether it gets nearer to
// that, not how long it takes. Then nothing may be written but heartbeats and renewals of certificates. At last all is
// deleted, and nothing may be left. The fleet stays for the next play, which has names of its own.
//
// The same seed is the same lies and the same scenes. Which request meets which lie depends on the order of requests,
// so a seed is played some times to see what it found.
package lies
