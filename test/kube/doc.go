// Package kube pins the programs of the control plane that tests and the demo run on; see command build.
package kube
