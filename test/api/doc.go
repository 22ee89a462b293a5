// Package api keeps the exported declarations of the libraries for add-on authors in files, so that a change of them is
// seen in review. "go test ./test/api -update" writes the files again.
package api
