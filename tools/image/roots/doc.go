// Package roots has the root certificates that go into the images: those that Mozilla trusts for servers, from a Go
// module with a version. So they do not depend on the machine that builds, and an SBOM can name where they come from.
package roots
