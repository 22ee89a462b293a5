// Package approve judges certificate requests on the hub. The hub approves a request only if it equals the request that
// the hub itself would have written (package csr).
//
// A judgement is a pure function from a request to a Verdict:
//
//   - approve.go: JudgeCluster judges a request for the credential of a cluster, and JudgeAddon judges a request for a
//     credential of an add-on.
//   - vouch.go: JudgeIdentity judges only the identity in a request of an add-on that the program of an author runs.
//   - content.go decodes a request without loss and compares it with the expected one.
//   - requester.go and trust.go judge the user that asks for the credential of a cluster. Trust names the users
//     whose first requests need no person.
//   - signer.go limits what an add-on gets: it has identities of its own for the API server of the hub, and only a
//     signer in a domain of its author signs for other subjects.
//   - trim.go bounds what a cache of the hub keeps of a request.
//
// The hub never denies a request. A person may approve a request that the hub refuses.
package approve
