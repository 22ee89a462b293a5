// Package storm edits a hub and its managed cluster at random, kills and cuts off what can be killed and cut off, waits
// until it is quiet, and then compares every work and every object with what must be.
//
// A model (model.go, draw.go) draws one edit after the other from a seed and keeps what must hold at the end: which
// works there are, which objects exist with which content and owners, and which must be gone. It makes no request, so
// the same seed leads to the same edits, whatever the timing. What depends on timing by nature is drawn so that it does
// not: the runner waits for the agent before an object leaves the last work that has it, and where it could not wait
// long enough it tells the model, which then leaves that one question open until the next calm.
//
// Two edits are judged on the spot (broken.go): a manifest with a typing error, which must not cost its object, and a
// namespace that is deleted while the hub is away and the agent was restarted, which must come back with its content.
//
// The runner (run.go, act.go) does the edits on real control planes with the agent that we build; the comparison
// (expect.go) is pure again. Every so often, and at the end, there is a calm: foreign finalizers are lifted and all
// must agree. After the last one all works are deleted, and nothing but orphans may be left. In the end the hub manager
// is uninstalled (farewell.go): what only it used goes, and the agent applies works as before.
package storm
