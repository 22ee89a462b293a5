// Package apply brings one object to the desired state of its manifest. It takes a Step, which says what to do and why,
// and returns a Result; it does not decide whether to do it.
//
// How an object is brought there depends on the update strategy. Update merges by kind (package merge) and leaves alone
// what the API server fills in and what was set through the scale subresource. ServerSideApply compares the managed
// fields with the configuration first, so that an unchanged object costs a read and no write (package ssa); fields
// under ignoreFields are left out, unless nobody else holds them. CreateOnly and ReadOnly set the owner reference only.
//
// Where an executor writes an object that grants permissions, it sends each write as a dry run first, because the API
// server compares the object after that very request with the permissions of the user who sends it.
package apply
