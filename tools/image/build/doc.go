// Package build makes the images of a plan: it compiles each program for each platform, assembles and checks the
// image, writes its SBOM, and puts all into a folder. It is what the command calls, and what its test calls with small
// programs.
package build
