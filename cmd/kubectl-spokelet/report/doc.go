// Package report judges the objects of a fleet: Problems lists what is wrong with a stable code and the next command,
// and Chain follows an add-on, a cluster, a work or a certificate request from the wish to the first cause. Its
// functions are pure; the causes are those of internal/causes, which the hub manager uses, too.
//
// There is one judgement: AddOnFacts.judge says what is wrong with an add-on, and which trouble of its cluster explains
// that. Problems lists by it, trees are made of that list, and a chain goes on to the works, which no list reads.
//
// Well is what works, whoever wrote the conditions. A condition that is not there says nothing, because OCM's hub and
// agents leave some out. What moves is well as long as it works: an add-on that gets a new configuration, or waits for
// its turn in a rollout, and a rollout that goes on. What does not work yet is not well, from its first second on: an
// add-on that was just installed is named with what it waits for, so that exit status 0 means that it works and "check
// --wait" ends then. A test judges a thousand random states that are well, as both hubs and agents write them.
package report
