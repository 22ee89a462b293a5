// Package images makes the image files that the end-to-end tests load, without a container engine: those of the
// product, by the program of "make image", and that of cmd/workload.
package images
