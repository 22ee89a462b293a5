// Package measure counts the size and the shape of the code: lines and exported names of each package, how long
// functions are, which files of a package are a knot, and how often the source does what test/arch forbids or bounds.
// The command "make house" prints it, so that each figure of a comparison comes from the repository; nothing fails
// because of it.
package measure
