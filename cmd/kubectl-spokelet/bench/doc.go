// Command bench measures the plugin on a fleet of any size. It serves the lists of a hub as an API server does, in
// pages and with the managed fields of real objects, starts the program on it, and prints for each command its time,
// its memory, and what it asked for. "make bench-plugin" runs it.
package main
