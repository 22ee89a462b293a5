// Package plan lists the images that the project ships, with all that distinguishes them. The Dockerfile describes the
// same images for people with a container engine; a test compares both.
package plan
