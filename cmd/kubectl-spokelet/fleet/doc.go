// Package fleet reads the objects of a fleet, from the API server of a hub or from a bundle that another person took of
// one. It keeps of each object what the commands judge and print, so that 60,000 add-ons fit into memory. What a user
// may not read is a Gap of the answer and not the end of it. It writes nothing to the hub.
package fleet
