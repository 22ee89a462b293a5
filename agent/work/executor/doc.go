// Package executor decides what the ServiceAccount that spec.executor of a ManifestWork names may do with an object
// (docs/reference/work.md, "Executors").
//
// A Question names an object, the hash of its desired state and the verbs that applying it needs. A Decision is the
// answer: Allowed, Denied or Unknown, with the error to report and the instant at which to ask again.
//
//   - An Authorizer asks the API server by SubjectAccessReview, one review for each verb, and caches the decisions. The
//     key of the cache is the whole question: permission to read an object says nothing about writing it.
//   - roles and bindings grant permissions themselves. The API server compares them with those of the user who
//     writes them, so the executor tries such a manifest by a dry run before the agent applies it (escalation check).
//   - RBAC holds the subjects and roles of all bindings. When one changes, the decisions that may depend on it are
//     dropped and their works are reconciled.
//
// The agent writes all objects with its own identity and deletes them without a question: an executor limits which
// objects a work may have, not what is in them, unless they grant permissions.
package executor
