// Package report judges the objects of a fleet: Problems lists what is wrong with a stable code and the next command,
// and Chain follows an add-on, a cluster, a work or a certificate request from the wish to the first cause. Its
// functions are pure; the causes are those of internal/causes, which the hub manager uses, too.
package report
