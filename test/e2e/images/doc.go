// Package images makes the images that the end-to-end tests load, without a container engine: one program each, in an
// image with nothing else. The images of the product come from "make image" when they were built; this package makes
// another build of them, for upgrades, and that of cmd/workload.
package images
