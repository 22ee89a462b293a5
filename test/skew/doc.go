// Package skew runs agents and hub managers of two versions together: the programs of this tree and those of another
// commit, each with the objects and rights that its own version ships, on real control planes. "make skew" plays four
// paths and prints one table:
//
//   - the old hub manager with new agents, and the new hub manager with old agents;
//   - an upgrade: the hub manager is replaced while a rollout is under way, then the agents one after another, while a
//     bad version has stopped, while its fix goes through, and while certificates are replaced;
//   - the way back, in the same order.
//
// On each path the same story happens: three clusters join and get an add-on by its template; a rollout to one cluster
// at a time ends; a bad version stops at the first cluster, and its fix goes through; the certificates of agents and
// add-ons, which live a minute, are replaced; one cluster loses the add-on. In the end everything is compared with what
// people asked for, nothing but heartbeats and certificates may be written, and where two paths end with the same hub
// manager, the works must be the same.
//
// There is no kubelet: the pods of the add-on are played, which is how a version is bad and how a rollout is held up.
package skew
