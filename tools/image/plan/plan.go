package plan

// User is the user and group, by number, that every image runs as. No image has a file of users.
const User = "65532:65532"

// Certificates is the path of the root certificates in every image. Go looks for them there, among other places.
const Certificates = "/etc/ssl/certs/ca-certificates.crt"

// versionVariable holds what the linker sets to the version.
const versionVariable = "github.com/spokelet/spokelet/internal/version.version"

// Image describes an image: one program, and names for it.
type Image struct {
	// Name of the image. The program in it is called the same, and the image starts it.
	Name string
	// Stage is the name of its stage in the Dockerfile.
	Stage string
	// Description is one line for its labels.
	Description string
	// Package is the folder of the program, from the top of the repository.
	Package string
	// Stamped reports whether the program contains its version.
	Stamped bool
	// Names are paths that lead to the program, too.
	Names []string
	// Limit is the most that the image may take unpacked, in bytes; 0 is not a limit.
	Limit int64
}

// All returns the images that the project ships.
func All() []Image {
	return []Image{
		{
			Name: "spokelet", Stage: "agent", Package: "./cmd/spokelet", Stamped: true,
			Description: "Spoke side of add-on management for Kubernetes fleets",
			// The Deployments of an OCM Klusterlet begin their arguments with these.
			Names: []string{"/registration", "/registration-operator", "/work"},
			Limit: 45 << 20,
		},
		{
			Name: "spokelet-hub", Stage: "hub", Package: "./cmd/spokelet-hub", Stamped: true,
			Description: "Hub side of add-on management for Kubernetes fleets",
		},
		{
			Name: "hello-agent", Stage: "hello-agent", Package: "./test/hello",
			Description: "Agent of the sample add-on hello",
		},
	}
}

// Program is the path of the program in the image, which the image starts.
func (i Image) Program() string { return "/" + i.Name }

// Flags returns the flags of the linker for the program in a version.
func (i Image) Flags(version string) string {
	flags := "-s -w"
	if i.Stamped {
		flags += " -X " + versionVariable + "=" + version
	}
	return flags
}

// Labels returns the labels of the image for a version and the commit that it was built from.
func (i Image) Labels(version, revision string) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       i.Name,
		"org.opencontainers.image.description": i.Description,
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     version,
		"org.opencontainers.image.revision":    revision,
	}
}
