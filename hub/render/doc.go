// Package render shows what add-ons would deploy, from files and without a hub: the ManifestWorks that the hub manager
// would write, or the objects in them.
//
// It does so with the code of the hub manager and not with a copy of it. The files become the objects of a hub in
// memory (objects.go), and install, configure, template and deploy look at that hub and decide as they do in their
// passes; only their writes are left out. Therefore this package knows several reconcilers, as a composition root does
// (docs/adr/0024-authors.md).
//
//   - command.go is the subcommand "render" of a program: its flags, and the files that they name.
//   - read.go takes the files apart, and schema.go checks each object of an API of OCM against its definition, as the
//     API server would: a field that does not exist is an error, and defaults are set.
//   - assume.go adds what the files leave out and can be assumed safely, with a sentence for the reader about each.
//   - render.go asks the reconcilers, and print.go writes their answers: stable and sorted, with comments.
//
// Nothing is printed when anything is wrong.
package render
