// Package addon is the contract between the hub manager and the author of an add-on.
//
// An author describes an add-on by an Agent: what configuration it understands, what credentials and rights its agent
// gets on the hub, and which objects make up the agent on a managed cluster. The hub manager asks an Agent these
// questions for one cluster at a time, and does the rest: it installs, configures, rolls out, deploys, approves, signs
// and reports health.
//
// The answers are values computed from values. An Agent writes nothing, keeps nothing between two calls and may be
// asked the same question at any time and from several goroutines; the same facts must give the same answer. What it
// is handed it must not change.
//
// An Agent that has no answer says why by its error:
//
//   - NotReadyError: another client must move first. Nothing is reported, everything stays as it is, and the question
//     is asked again when one of the add-on, its cluster or its configuration changes.
//   - InvalidError: only a person can help. The message is shown in the conditions of the add-on, everything stays as
//     it is, and the question is asked again when something changes.
//   - any other error: it may go away by itself. The message is shown too, and the question is asked again soon.
//
// An author need not implement Agent: New makes one of Options, which are values and functions. The objects come from
// a function (ManifestsFunc), from a folder of YAML (package raw) or from a Helm chart (package helm, a module of its
// own). docs/operations/write-an-addon.md has a program.
//
// Add-ons without code, made of an AddOnTemplate, are an Agent like any other: see package hub/template.
package addon
