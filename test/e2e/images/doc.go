// Package images makes the image files that the end-to-end tests load, without a container engine: those of the
// product, by the program of "make image", that of cmd/workload, and those of the sample add-ons.
package images
