// Package windows says when changes may begin: in the occurrences of windows that allow them, and outside those of
// windows that deny them. It is a pure function of a list of windows and an instant.
//
// A window is a schedule of cron with five fields, a duration, and a time zone, by whose clock it begins. The clock of
// a zone jumps:
//
//   - An occurrence whose beginning the clock skips begins when the clock goes on.
//   - Where the clock shows the beginning twice, the first one counts; both do with a schedule that means every hour.
//   - A duration is of real time: a window of six hours in a night with 23 or 25 hours ends an hour later or earlier by
//     the clock.
//
// Occurrences of one window that touch or overlap are one. Where any window denies, nothing begins. Else it does where
// one allows, or where no window allows at any time. What Judge returns includes the instant at which its answer
// changes, so that nothing has to look at a clock in between.
package windows
