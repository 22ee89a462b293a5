// Package hosting decides what a hosting cluster agrees to, and which of the works on hosting clusters are those of an
// add-on. A hosting cluster is another cluster than the one whose add-on it runs, so an add-on's own word about it does
// not count: the host consents, by annotation addon.spokelet.io/hosts; works count only on clusters that the hub
// recorded, in annotation addon.spokelet.io/hosted-on of the add-on; and what runs there does not depend on annotations
// that the agent of the managed cluster may write. Everything is pure.
package hosting
