// Package merge computes what the update strategy Update writes: the live object with the content, labels, annotations
// and owner that the manifest wants. Kinds differ in which parts of their content belong to the cluster. The package
// sends no request.
package merge
