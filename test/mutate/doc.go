// Package mutate measures whether unit tests notice a change of one operator. It copies the module, leaves the change
// to a tool that is pinned in tools/, and reports per package how many changes made a test fail. Only files that import
// no context are changed: those decide, and a decision needs no API server to be tested.
package mutate
