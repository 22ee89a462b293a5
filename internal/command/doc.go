// Package command has the parts that the composition roots share: parsing of arguments, flags of the process, of the
// leader election and of TLS, flags and feature gates that are accepted without an effect, the logger, the version in
// the log and in the metrics (build.go), and the namespace of the pod.
package command
