// Command bench measures the plugin on a fleet of any size. It serves the lists of a simulated hub, starts the program
// on it, and prints for each command its time, its memory, and what it asked for, and for each view of the page how
// long it takes and how large it is. "make bench-plugin" runs it.
package main
