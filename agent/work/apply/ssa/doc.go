// Package ssa computes what the update strategy ServerSideApply sends for an object, and when it need not send
// anything. It sends no request.
//
// A Configuration is a manifest with its ignored fields: the full object for the first request, and the parts to apply
// to an object that exists. The managed fields of the live object show which fields the manager of the work applied,
// which others own as well, and so whether the Configuration is in force. HandOver moves fields between the two
// managers of the agent, the one that applies and the one that writes the owner reference.
package ssa
