// Package policies measures what the admission policies of the hub cost a write: the same writes are sent to one API
// server, in turn with and without the policies in force, as the users who send most of them. Speed drifts on a shared
// machine by more than policies cost, so the API server says how long it judged, by its own clock.
package policies
