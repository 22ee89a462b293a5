// Package page serves a fleet as pages of HTML for the person who started it: on the loopback interface, behind a path
// that nobody can guess, and without a way to change anything. A fleet is read when a user looks, at most once for
// several requests, and not more often than every few seconds (keeper.go).
//
// What is wrong, how a cluster or an add-on stands, and which clusters are alike is judged by package report. Here that
// is arranged (fleet.go, addon.go, cluster.go), drawn (draw.go) and written by the templates. All of it can be read
// without script; page.js brings what changed into a page that is open.
//
// Texts of objects are hostile. The templates escape them where they stand, show.SafeHTML writes what does not show as
// its number, and the policy of the answers (guard.go) lets no script run but page.js.
package page
