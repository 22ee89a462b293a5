// Package spokes plays the managed clusters of a fleet from one process, for benchmarks of the hub manager.
//
// Join creates accepted ManagedClusters and, as soon as the hub manager has let them in, writes the status that their
// agents would write. Start watches all ManifestWorks of the hub with one watch and answers each: the finalizer, then
// one status write with the conditions of the work and its manifests and with the feedback that the work asks for; when
// a work is deleted, the finalizer goes. What it answers is a pure function, Responder.Answer, which is made of the
// very parts of our agent that compute a status. The objects are invented: every Deployment has the pods of its spec
// ready, every Job is complete.
//
// A few writers send the answers, as a user of their own, so that the audit log separates their requests from those of
// the hub manager. Stats reports how much of the time the writers were the bottleneck. The clusters request no
// certificates, and renew no leases unless Options.Heartbeat is set: their lease duration is a day.
package spokes
