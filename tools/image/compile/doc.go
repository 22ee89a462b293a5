// Package compile compiles the programs of the images. The same source and the same Go release make the same bytes,
// whatever the machine: paths, version control and settings of the person who builds have no influence.
package compile
