// Package missing decides about works that this agent applied and that the hub does not have any more although the
// agent never saw them being deleted. A hub that comes back from an older backup looks so, and so does a hub whose
// works a user removed by force. A single one goes as with OCM, after its grace period. When many are missing at
// once, their objects stay until a person confirms on the hub that they may go (docs/reference/work.md, "Missing
// works"). It reports works that are older than what was applied, too, whose objects are held likewise.
package missing
